"""Scorers without a model, to be named as a file: one knows the answer, one has favourites."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import RowScorer, ScorerEntry


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


RIGHT, FAVOURITES = (
    ScorerEntry(name=name, label=name, needs=Capability.NOTHING, make=lambda _, kind=kind: kind())
    for name, kind in (("right", Right), ("favourites", Favourites))
)

NAMES = {name: f"{Path(__file__)}:{name.upper()}" for name in ("right", "favourites")}
