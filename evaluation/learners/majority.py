"""Majority: each choice is scored by how often it is the answer in the training rows.

Where all rows have the same choices (labels, fixed answers) that is the most frequent answer;
elsewhere the choice whose text answers most training rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from evaluation.items.types import Item
from evaluation.learners.base import Training
from evaluation.scorers.base import ReadyScorer, RowScorer
from evaluation.scorers.model_free import drawn_share
from kbprobe.arrays import Floats


class MajorityScorer(RowScorer):
    """Scores a choice by the log of how often its text is the answer in the training rows.

    To each count a number below 1 is added, a hash of seed and text: it breaks ties, the same way
    in all rows, and never by the choice's place.
    """

    score_kind = "log frequency"

    def __init__(self, items: Sequence[Item], seed: int) -> None:
        self._answers = Counter(item.choices[item.answer] for item in items)
        self._seed = seed

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the score of each choice."""
        texts = dict.fromkeys(text for item in items for text in item.choices)
        score = {
            text: math.log(self._answers[text] + drawn_share(self._seed, text)) for text in texts
        }
        scores = (score[text] for item in items for text in item.choices)
        return np.fromiter(scores, dtype=np.float64), {}


@contextmanager
def fitted(training: Training) -> Iterator[ReadyScorer]:
    """Count the answers of the training rows."""
    yield ReadyScorer(MajorityScorer(training.items, training.seed), 0)
