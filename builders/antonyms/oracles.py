"""What the questions need: oracles that know only one of the two words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from builders.antonyms.pairs import Pair
from builders.engine.oracles import Oracle, Oracles, credit

TARGET = 0.75
"""The most that one word should do: half way between chance and certainty."""


def antonym_oracles(asked: Sequence[Pair], pairs: Iterable[Pair]) -> Oracles:
    """Return what oracles reach that know which antonyms and synonyms one of the words has.

    Args:
        asked: the questions, each with its words in the order in which they are shown.
        pairs: all pairs that could be asked about.
    """
    words: dict[bool, set[str]] = {True: set(), False: set()}
    for pair in pairs:
        words[pair.antonym].update(pair.words)
    oracles = {}
    for place, name in enumerate("xy"):
        possible = np.array(
            [
                [pair.words[place] in words[answer] for answer in (pair.antonym, not pair.antonym)]
                for pair in asked
            ],
            dtype=np.bool_,
        ).reshape(-1, 2)
        knows = f"{name}, and whether it has antonyms, and synonyms"
        oracles[f"{name} alone"] = Oracle(knows, credit(possible), TARGET)
    return oracles
