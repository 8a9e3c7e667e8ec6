"""Which definitions may not be choices of the same row, and how definitions are shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kbprobe.arrays import Ints, sorted_unique
from kbprobe.function_words import FUNCTION_WORDS

COMMON_CLAUSE = 64
"""Clauses shared by more definitions than this ("esp", "hence") say nothing about meaning."""

STEM = 5
"""Number of letters by which words are compared."""

_LABELS = re.compile(
    r"^(?:(?:Hence|Fig|Figuratively|Specifically|Specif|Especially|Esp|Also)\b[.:,;\s]+)+"
)
_LEFT_HANGING = re.compile(
    r"(?<=[.:,;])\s*(?:[Hh]ence|[Ff]ig|[Ss]pecif(?:ically)?|[Aa]lso)[.:,;\s]*$"
)
_NOTE = re.compile(
    r"[;,.]\s*(?:(?:also|chiefly|commonly|formerly|generally|now|often|rarely|sometimes|usually|"
    r"when) )*(?:(?:used|followed) \w|with (?:a|from|in|into|of|on|out|to|up|upon|against|at|away|"
    r"off|the|for)\b)[^;.]{0,50}\.?$",
    re.IGNORECASE,
)
"""A note on usage after a definition ("followed by up")."""

_WORD = re.compile(r"[^\W_]+")
_CLAUSE_ENDS = re.compile(r"[;:.,()]")
_LEADING = re.compile(r"^(?:(?:also|hence|or|and|esp|especially|the|an?|to)\s+)+")
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())


def shown_definition(definition: str) -> str:
    """Return a definition as a choice: without links to the previous sense, and without notes.

    >>> shown_definition("Hence, a descendant; an heir. Hence:")
    'A descendant; an heir.'
    >>> shown_definition("To look for; to search; usually followed by up.")
    'To look for; to search.'
    """
    bare = _LEFT_HANGING.sub("", _LABELS.sub("", definition)).rstrip(" ,:;") or definition
    while (shorter := _NOTE.sub("", bare).rstrip(" ,:;")) != bare and shorter:
        bare = shorter + "." * (not shorter.endswith((".", "!", "?")))
    return bare[:1].upper() + bare[1:]


def normalised(text: str) -> str:
    """Return a text in lower case, without punctuation and runs of spaces."""
    return " ".join(_WORD.findall(text.lower()))


def clauses(definition: str) -> set[str]:
    """Return the clauses of a definition, without the small words that they begin with."""
    parts = _CLAUSE_ENDS.split(definition.lower())
    return {bare for part in parts if (bare := _LEADING.sub("", " ".join(_WORD.findall(part))))}


def content_words(definition: str) -> set[str]:
    """Return a definition's content words, cut to their stems."""
    words = _WORD.findall(definition.lower())
    return {word[:STEM] for word in words if len(word) > 2 and word not in _FUNCTION_WORDS}


def alike_pairs(senses: Ints, definitions: Sequence[str], word: Ints, size: int) -> Ints:
    """Find senses that may not be in one row, since both might be right or both are wrong.

    These are senses whose definitions are equal or share a clause ("to adorn"), and senses of one
    word whose definitions share a content word. Readers accepted such another sense of the word as
    right in 18 of 100 pairs, and one without a shared word in 6 (``builders/judged``).

    Args:
        senses: the senses that may be shown.
        definitions: the definition of each sense.
        word: the headword of each sense.
        size: number of senses in the dictionary.

    Returns:
        Sorted keys ``sense * size + other``, both ways.
    """
    by_clause: dict[str, list[int]] = defaultdict(list)
    by_text: dict[str, list[int]] = defaultdict(list)
    by_word: dict[int, list[int]] = defaultdict(list)
    for at, definition in enumerate(definitions):
        by_text[normalised(definition)].append(at)
        by_word[int(word[at])].append(at)
        for clause in clauses(definition):
            by_clause[clause].append(at)
    shared = [some for some in by_clause.values() if len(some) <= COMMON_CLAUSE]
    pairs = [pair for some in (*shared, *by_text.values()) for pair in combinations(some, 2)]
    for some in by_word.values():
        words = {at: content_words(definitions[at]) for at in some}
        pairs += [(one, other) for one, other in combinations(some, 2) if words[one] & words[other]]
    if not pairs:
        return np.empty(0, dtype=np.int64)
    one, other = senses[np.array(pairs, dtype=np.int64)].T
    return sorted_unique(np.concatenate([one * size + other, other * size + one]))
