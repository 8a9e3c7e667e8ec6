"""Scorers without a model, of a test's own: one knows the answer, one has favourites."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import RowScorer, ScorerEntry
from evaluation.scorers.registry import SCORERS


class Right(RowScorer):
    """Knows the answer, and nothing else."""

    score_kind = "right"

    def choice_scores(self, items):
        right = [n == item.answer for item in items for n in range(len(item.choices))]
        return np.array(right, dtype=float), {}


class Favourites(RowScorer):
    """Likes some words better than others, whatever is asked."""

    score_kind = "liking"

    def choice_scores(self, items):
        liked = [sum(map(ord, choice)) for item in items for choice in item.choices]
        return np.array(liked, dtype=float), {}


OWN = [
    ScorerEntry(name=name, label=name, needs=Capability.NOTHING, make=lambda _, kind=kind: kind())
    for name, kind in (("right", Right), ("favourites", Favourites))
]


@pytest.fixture
def own_scorers():
    """Register the scorers ``right`` and ``favourites`` for a test."""
    for entry in OWN:
        SCORERS.add(entry)
    yield
    for entry in OWN:
        SCORERS.remove(entry.name)
