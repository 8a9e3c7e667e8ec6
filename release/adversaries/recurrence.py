"""Choices that recur in the rows of one question, cluster or split, and those that do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from release.adversaries.models import gold_scores, others_mean, ranks
from release.adversaries.types import Guesses, Rows


def recurrence(rows: Rows) -> Iterator[Guesses]:
    """Take the choice that most rows of the question (or cluster) show, or the fewest.

    All rows of the split are seen: golds that are asked for several times recur, while their
    distractors change. That is no fault for a model that answers row by row, so it is reported.
    Over the whole split, where that is less plain, gradient boosting tells from the numbers of
    rows.
    """
    for name, group in (("question", rows.question), ("cluster", rows.cluster)):
        times = _times_shown(rows, group)[rows.scored]
        yield Guesses(f"recurrence:{name}:most", times, trained=False, judged=False)
        yield Guesses(f"recurrence:{name}:least", -times, trained=False, judged=False)

    if rows.train.size:
        times = np.where(rows.shown, np.log(_times_shown(rows, np.zeros_like(rows.answer))), np.nan)
        times = times[rows.used]
        # Only compared: as such it depends on the size of the split.
        features = np.stack([times - others_mean(times), ranks(times)], axis=2)
        yield Guesses("recurrence:split", gold_scores(rows, features))


def _times_shown(rows: Rows, group: Ints) -> Floats:
    """Count the rows of the same split and group that show a choice; at least 1."""
    keys = (group * 2 + rows.is_train)[:, None] * (len(rows.texts) + 1) + rows.choices
    found, times = np.unique(keys[rows.shown], return_counts=True)
    at = np.minimum(np.searchsorted(found, keys), found.size - 1)
    return np.asarray(times[at], dtype=np.float64)
