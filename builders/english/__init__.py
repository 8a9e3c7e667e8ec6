"""English text of questions: articles, inflection, number words, countability, word lists.

All probes use these functions, so that a noun takes the same article in all of them. Inflection is
lemminflect's; frequencies (:mod:`kb_cache.frequency`) are wordfreq's; rare cases of *a* and *an*
are left to inflect. Word lists are the text files in ``data/``.
"""
