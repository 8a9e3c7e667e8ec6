"""Universal parts of speech for the tags of the Penn Treebank.

The table is a data file. It approximates Universal Dependencies' own conversion, which needs a
parse: prepositions and subordinating conjunctions share a tag (IN), as do auxiliaries and verbs.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

#: The forms of the auxiliaries that are always so (Universal Dependencies of English), if tagged
#: as verbs: "be". "Have" and "do" are main verbs as well and stay VERB.
_BE = frozenset(("be", "am", "is", "are", "was", "were", "been", "being", "'m", "'re", "’m", "’re"))
_SYMBOLS = frozenset("$%&+=<>@/\\|~^*_°#£€§©®™×÷±√∞∫≈≥≤")


@cache
def _table() -> dict[str, str]:
    with files("kb_cache.corpora").joinpath("data/penn_universal.csv").open(encoding="utf-8") as f:
        return {row["penn"]: row["universal"] for row in csv.DictReader(f)}


def universal(word: str, tag: str) -> str | None:
    """Return the universal part of speech of a word with a Penn Treebank tag; None if unknown.

    What has neither letter nor digit is punctuation or a symbol whatever its tag: MASC tags
    typographic quotation marks NN.

    >>> universal("dogs", "NNS"), universal("was", "VBD"), universal("”", "NN"), universal("x", "?")
    ('NOUN', 'AUX', 'PUNCT', None)
    """
    if not any(char.isalnum() for char in word) and tag != "POS":
        return "SYM" if all(char in _SYMBOLS for char in word) else "PUNCT"
    if tag.startswith("VB") and word.lower() in _BE:
        return "AUX"
    return _table().get(tag)
