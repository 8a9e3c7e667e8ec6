"""Models that tell the gold from the other choices by numbers about each choice.

They run on one thread: the order of sums would depend on the number of threads, and with it
now and then a split of a tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from kbprobe.arrays import Floats
from release.adversaries.types import Rows

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
        iterations: how many trees a class has.

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
        features: (used rows, K, features), of which those without a choice are not looked at.
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
    """Return for each choice the mean over the row's other choices that are not NaN.

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
    """Return how many of a row's other choices are less, ties by half; (rows, K).

    >>> ranks(np.array([[1.0, 2.0, 1.0]])).tolist()
    [[0.5, 2.0, 0.5]]
    """
    one, other = values[:, :, None], values[:, None, :]
    found = (one > other).sum(axis=2) + 0.5 * (one == other).sum(axis=2) - 0.5
    return np.where(np.isnan(values), np.nan, found)
