"""Scores of a split's choices: what metrics are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbprobe.arrays import Floats, Ints


@dataclass(frozen=True)
class Scores:
    """The scores of all items.

    Attributes:
        scores: a number a choice, all items' choices one after another; nan where set aside.
        tokens: tokens that each sums over.
        set_aside: items that were not scored, and why.
        notes: counts that the scorer reported.
        score_name: ``logit`` or ``log-likelihood``.
        sequences, sequence_tokens: how many were run in all, and their tokens.
        parameters: how many the model has.
    """

    scores: Floats
    tokens: Ints
    set_aside: Mapping[int, str]
    notes: Mapping[str, int]
    score_name: str
    sequences: int
    sequence_tokens: int
    parameters: int
