"""Adversaries that use other rows, ids and positions, but do not read a row's texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from release.adversaries.models import boosted, gold_scores, others_mean, ranks
from release.adversaries.types import Guesses, Rows

FOLDS = 5


def elimination(rows: Rows) -> Iterator[Guesses]:
    """Pick the choice that is least, or most, often right in rows of other folds.

    Each choice of a group is right once by design, so the results for clusters are reported but not
    judged.
    """
    for name, group in (("clusters", rows.cluster), ("choices", _same_choices(rows))):
        fold = _folds(group[rows.scored])
        rate = _right_elsewhere(rows, fold)
        judged = name == "choices"
        yield Guesses(f"elimination:{name}:least", -rate, trained=False, judged=judged)
        yield Guesses(f"elimination:{name}:most", rate, trained=False, judged=judged)


def _right_elsewhere(rows: Rows, fold: Ints) -> Floats:
    """Return the share of the rows of other folds that show a choice in which it is right."""
    choices, gold = rows.choices[rows.scored], rows.is_gold[rows.scored]
    shown = rows.shown[rows.scored]
    counts = np.zeros((2, len(rows.texts), FOLDS))
    line, column = np.nonzero(shown)
    np.add.at(counts[0], (choices[line, column], fold[line]), 1.0)
    np.add.at(counts[1], (choices[line, column], fold[line]), gold[line, column])
    elsewhere = counts.sum(axis=2, keepdims=True) - counts
    rate = np.full(choices.shape, -np.inf)
    times, right = elsewhere[:, choices[line, column], fold[line]]
    mean = 1.0 / shown.sum(axis=1).mean()
    # A text that no other fold shows is as likely as any other.
    rate[line, column] = (right + mean) / (times + 1.0)
    return rate


def _folds(group: Ints) -> Ints:
    """Deal groups into folds, the largest first, each to the fold that has the fewest rows."""
    groups, local, sizes = np.unique(group, return_inverse=True, return_counts=True)
    rows = np.zeros(FOLDS, dtype=np.int64)
    fold = np.zeros(groups.size, dtype=np.int64)
    for at in np.argsort(-sizes, kind="stable"):
        fold[at] = rows.argmin()
        rows[fold[at]] += sizes[at]
    return fold[local]


def _same_choices(rows: Rows) -> Ints:
    """Return (rows,) a number for each row, equal for rows with the same choices in any order."""
    ordered = np.sort(rows.choices, axis=1)
    return np.unique(ordered, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def recurrence(rows: Rows) -> Iterator[Guesses]:
    """Pick the choice shown in most, or fewest, rows of the same question (or cluster).

    It sees all rows of the split: golds that are asked for several times recur, while their
    distractors change. A model that answers rows one by one cannot exploit this, so it is only
    reported. For the whole split, where the pattern is weaker, gradient boosting is fitted on the
    counts, and is judged.
    """
    for name, group in (("question", rows.question), ("cluster", rows.cluster)):
        times = _times_shown(rows, group)[rows.scored]
        yield Guesses(f"recurrence:{name}:most", times, trained=False, judged=False)
        yield Guesses(f"recurrence:{name}:least", -times, trained=False, judged=False)

    if rows.train.size:
        times = np.where(rows.shown, np.log(_times_shown(rows, np.zeros_like(rows.answer))), np.nan)
        times = times[rows.used]
        # Only relative values: absolute counts depend on the size of the split.
        features = np.stack([times - others_mean(times), ranks(times)], axis=2)
        yield Guesses("recurrence:split", gold_scores(rows, features))


def _times_shown(rows: Rows, group: Ints) -> Floats:
    """Count the rows of the same split and group that show a choice; at least 1."""
    keys = (group * 2 + rows.is_train)[:, None] * (len(rows.texts) + 1) + rows.choices
    found, times = np.unique(keys[rows.shown], return_counts=True)
    at = np.minimum(np.searchsorted(found, keys), found.size - 1)
    return np.asarray(times[at], dtype=np.float64)


CYCLES = range(2, 9)
BITS = 64


def order(rows: Rows) -> Iterator[Guesses]:
    """Predict the gold's position without any text."""
    counts = np.bincount(rows.answer[rows.train], minlength=rows.choices.shape[1])
    yield Guesses("order:position", np.tile(counts.astype(np.float64), (rows.scored.size, 1)))
    if np.count_nonzero(counts) > 1:
        for name, features in (
            ("number", _numbers(rows)),
            ("id", _bits([rows.ids[row] for row in rows.used])),
            ("previous", _previous(rows)),
        ):
            yield Guesses(f"order:{name}", _of_position(rows, features))


def _of_position(rows: Rows, features: Floats) -> Floats:
    positions, chances = boosted(features, rows.answer[rows.train], iterations=60)
    scores = np.zeros((rows.scored.size, rows.choices.shape[1]))
    scores[:, positions] = chances
    return scores


def _numbers(rows: Rows) -> Floats:
    """Return each row's index in its split: as it is, as a share, and modulo small numbers."""
    place = rows.place[rows.used]
    sizes = np.where(rows.is_train, rows.is_train.sum(), (~rows.is_train).sum())[rows.used]
    return np.stack([place, place / sizes, *(place % cycle for cycle in CYCLES)], axis=1)


def _bits(ids: list[str]) -> Floats:
    """Return the bits of ids: of hexadecimal numbers, or of the last characters."""
    found = np.array([_integer(one) % 2**BITS for one in ids], dtype=np.uint64)
    return (found[:, None] >> np.arange(BITS, dtype=np.uint64) & np.uint64(1)).astype(np.float64)


def _integer(name: str) -> int:
    try:
        return int(name, 16)
    except ValueError:
        return int.from_bytes(name.encode(), "big")


def _previous(rows: Rows) -> Floats:
    """Return the gold positions of the two preceding rows, and whether they ask the same."""
    columns: list[Ints] = []
    for back in (1, 2):
        inside = rows.place >= back
        columns.append(np.where(inside, np.roll(rows.answer, back), -1))
        columns.append(inside & (np.roll(rows.question, back) == rows.question))
    return np.stack(columns, axis=1)[rows.used].astype(np.float64)
