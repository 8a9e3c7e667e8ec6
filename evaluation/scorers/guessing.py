"""Guessing: a random score for each choice, as a baseline without any knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from evaluation.items.types import LABELLED_SETUPS, SCORED_SETUPS, Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import RowScorer, Scorer, ScorerEntry, ScorerInputs
from kbprobe.arrays import Floats
from kbprobe.options import RARE, Options


class GuessingOptions(Options):
    """Which guesses are made."""

    guess_seed: Annotated[int, RARE] = Field(0, ge=0, description="Random seed of the guesses.")


class GuessingScorer(RowScorer):
    """Scores choices at random, by a hash of seed, id and choice, regardless of their order."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Draw a number between 0 and 1 for each choice."""
        drawn = (drawn_share(self._seed, item.id, text) for item in items for text in item.choices)
        return np.fromiter(drawn, dtype=np.float64), {}

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``random number``."""
        return "random number"


def drawn_share(seed: int, *texts: str) -> float:
    """Return a number strictly between 0 and 1, a hash of seed and texts.

    >>> round(drawn_share(0, "row-1", "a dog"), 3), round(drawn_share(1, "row-1", "a dog"), 3)
    (0.189, 0.906)
    """
    key = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return ((number >> 11) + 0.5) * 2.0**-53


def _make(inputs: ScorerInputs) -> Scorer:
    return GuessingScorer(inputs.options.guess_seed)


RANDOM = ScorerEntry(
    name="random",
    label="guessing",
    version=1,
    needs=Capability.NOTHING,
    make=_make,
    options=GuessingOptions,
    setups=(*SCORED_SETUPS, *LABELLED_SETUPS),
)
