"""Draws: choosing rows and distractors so that only the question reveals the answer.

Two strategies, each with its guarantee in its module; families choose one and parametrise it.

======================  ==============================================  ===========================
Strategy                What it balances                                Probes
======================  ==============================================  ===========================
balanced selection      Rows of each label are equally many in every    ``antonym_negation``,
(:mod:`.selection`)     stratum, exactly, and alike in further          ``object_comparison``
                        features, as nearly as a local search finds.
choice groups           K rows show the same K choices, each of them    ``wordnet_*``,
(:mod:`.pools`)         the gold of one: chance is exact.               ``dictionary_wordsense``
======================  ==============================================  ===========================

The property probes form their own choice groups (:mod:`builders.properties.groups`), and
compositions have their own draws (:mod:`builders.compositions.choices`). Uniform draws from all
candidates are in :mod:`.balanced`. Comparisons of ages need no strategy: every set of ages is asked
about in all orders, which makes it a choice group by itself.

All of them depend only on the rows and the random generator, not on the order in which rows are
drawn.
"""
