"""Rows as sequences, for scorers that take all choices of a row together, or need no batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.scorers.base import Encoded, Scorer
from kbprobe.arrays import Floats, Ints


def row_sequences(items: Sequence[Item], lengths: Ints, choice_tokens: Ints) -> dict[str, Any]:
    """Return arguments of :class:`Encoded` that make each item a sequence with a slot per choice.

    Args:
        items: the items.
        lengths: the cost of each item in a batch, shape [items].
        choice_tokens: the number of tokens of each choice, shape [choices].
    """
    starts = choice_starts(items)
    return {
        "lengths": np.maximum(lengths, 1),
        "item": np.arange(len(items)),
        "slot_starts": starts,
        "slot_choice": np.arange(starts[-1]),
        "choice_tokens": choice_tokens,
    }


@dataclass(frozen=True, kw_only=True)
class ScoredRows(Encoded):
    """Rows whose scores have already been computed.

    Attributes:
        scores: the score of each choice, shape [choices].
    """

    scores: Floats


class RowScorer(Scorer):
    """Scores choices with a cheap function of their rows, computed for all rows at once."""

    divisible = False

    @abstractmethod
    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the score of each choice of each item, and notes (:attr:`Encoded.notes`)."""

    def encode(self, items: Sequence[Item]) -> ScoredRows:
        """Score all items; see :meth:`Scorer.encode`."""
        scores, notes = self.choice_scores(items)
        ones = np.ones(len(scores), dtype=np.int64)
        rows = row_sequences(items, ones[: len(items)], ones)
        return ScoredRows(**rows, notes=notes, scores=scores)

    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Return the scores of the choices of some rows."""
        scores: Floats = encoded.scores[encoded.slots(sequences)[1]]
        return scores
