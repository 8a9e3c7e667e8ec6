"""Guessing: a random score for each choice, as a baseline without any knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from evaluation.items.types import Item
from evaluation.scorers.base import RowScorer, ScorerInputs
from kbprobe.arrays import Floats


class GuessingScorer(RowScorer):
    """Scores choices at random, by a hash of seed, id and choice, regardless of their order."""

    score_kind = "random number"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are ``GuessingOptions``."""
        return cls(inputs.options.guess_seed)

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Draw a number between 0 and 1 for each choice."""
        drawn = (drawn_share(self._seed, item.id, text) for item in items for text in item.choices)
        return np.fromiter(drawn, dtype=np.float64), {}


def drawn_share(seed: int, *texts: str) -> float:
    """Return a number strictly between 0 and 1, a hash of seed and texts.

    >>> round(drawn_share(0, "row-1", "a dog"), 3), round(drawn_share(1, "row-1", "a dog"), 3)
    (0.189, 0.906)
    """
    key = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return ((number >> 11) + 0.5) * 2.0**-53
