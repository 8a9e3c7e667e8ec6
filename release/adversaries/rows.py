"""Adversaries that do not read a row's texts, but use other rows, ids and positions; their models.

Models run on one thread, so that their scores are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from kbprobe.arrays import Floats, Ints
from release.adversaries.types import Guesses, Rows

SEED = 0
DIMENSIONS = 64
FITTED_TEXTS = 10_000
"""Maximum number of texts that the dimensions are fitted on."""


def boosted(
    features: npt.NDArray[Any], target: npt.NDArray[Any], iterations: int
) -> tuple[npt.NDArray[Any], Floats]:
    """Fit gradient boosting on the first rows; predict the others.

    There is no early stopping: rows held out for it would divide clusters.

    Args:
        features: (rows, features); NaN is allowed.
        target: the class of each of the first rows; at least two classes.
        iterations: the number of trees per class.

    Returns:
        The classes, and the probability of each for the other rows, (other rows, classes).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    known = ~np.isnan(features[: target.size]).all(axis=0)
    model = HistGradientBoostingClassifier(
        learning_rate=0.06,
        max_iter=iterations,
        max_leaf_nodes=15,
        min_samples_leaf=30,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=SEED,
    )
    with threadpool_limits(1):
        model.fit(features[: target.size, known], target)
        return model.classes_, model.predict_proba(features[target.size :, known])


def gold_scores(rows: Rows, features: npt.NDArray[Any]) -> Floats:
    """Fit "this choice is the gold" on train; return the scores of the scored rows' choices.

    Args:
        rows: what to train on and what to score.
        features: (used rows, K, features); those without a choice are ignored.
    """
    shown = rows.shown[rows.used]
    target = rows.is_gold[rows.train][shown[: rows.train.size]]
    _, chances = boosted(features[shown], target, iterations=150)
    scores = np.full((rows.scored.size, shown.shape[1]), -np.inf)
    scores[shown[rows.train.size :]] = chances[:, 1]
    return scores


def reduced(matrix: Any) -> npt.NDArray[np.float32]:
    """Reduce the columns of a matrix, dense or sparse, to ``DIMENSIONS`` or fewer."""
    from sklearn.decomposition import TruncatedSVD

    size = min(DIMENSIONS, min(matrix.shape) - 1)
    if size < 1:
        return np.zeros((matrix.shape[0], 1), dtype=np.float32)
    some = np.random.default_rng(SEED).permutation(matrix.shape[0])[:FITTED_TEXTS]
    svd = TruncatedSVD(min(size, some.size), random_state=SEED)
    with threadpool_limits(1):
        return np.asarray(svd.fit(matrix[some]).transform(matrix), dtype=np.float32)


def others_mean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for each choice, the mean over the row's other choices that are not NaN.

    Args:
        values: (rows, K, ...).

    >>> others_mean(np.array([[1.0, 2.0, 6.0]])).tolist()
    [[4.0, 3.5, 1.5]]
    """
    known = ~np.isnan(values)
    total = np.where(known, values, 0)
    others = known.sum(axis=1, keepdims=True) - known
    rest = total.sum(axis=1, keepdims=True) - total
    return np.where(others > 0, rest / np.maximum(others, 1), np.nan).astype(values.dtype)


def ranks(values: Floats) -> Floats:
    """Return how many of a row's other choices are smaller, counting ties as half; (rows, K).

    >>> ranks(np.array([[1.0, 2.0, 1.0]])).tolist()
    [[0.5, 2.0, 0.5]]
    """
    one, other = values[:, :, None], values[:, None, :]
    found = (one > other).sum(axis=2) + 0.5 * (one == other).sum(axis=2) - 0.5
    return np.where(np.isnan(values), np.nan, found)


FOLDS = 5


def elimination(rows: Rows) -> Iterator[Guesses]:
    """Pick the choice that is right least, or most, often in rows of other folds.

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
    """Return the gold positions of the two rows before, and whether they ask the same question."""
    columns: list[Ints] = []
    for back in (1, 2):
        inside = rows.place >= back
        columns.append(np.where(inside, np.roll(rows.answer, back), -1))
        columns.append(inside & (np.roll(rows.question, back) == rows.question))
    return np.stack(columns, axis=1)[rows.used].astype(np.float64)
