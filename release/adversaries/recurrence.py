"""Choices that recur in the rows of one question, or of one cluster, and those that do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from release.adversaries.types import Guesses, Rows


def recurrence(rows: Rows) -> Iterator[Guesses]:
    """Take the choice that most rows of the question (or cluster) show, or the fewest.

    Nothing is trained, and all rows of the split are seen: golds that are asked for several times
    recur, while their distractors change; or distractors recur, while golds change.
    """
    for name, group in (("question", rows.question), ("cluster", rows.cluster)):
        times = _times_shown(rows, group)
        yield Guesses(f"recurrence:{name}:most", times, trained=False)
        yield Guesses(f"recurrence:{name}:least", -times, trained=False)


def _times_shown(rows: Rows, group: Ints) -> Floats:
    """Count the rows of the scored split and of the same group that show a choice."""
    keys = group[:, None] * (len(rows.texts) + 1) + rows.choices
    seen = keys[~rows.is_train]
    found, times = np.unique(seen[rows.shown[~rows.is_train]], return_counts=True)
    at = np.searchsorted(found, keys[rows.scored])
    return np.asarray(times[np.minimum(at, found.size - 1)], dtype=np.float64)
