"""What is fitted on rows: linear models, gradient boosting, and counts of answers.

The models of a build are quick. The linear one is a conditional logit: one of the K choices of a
row is the gold. scikit-learn has no such model (its logistic regression takes each choice by itself
and does worse), and its import takes longer than the fit. The matrices are those of scipy.sparse,
whose products leave texts with the same features exactly tied.

The models of the deep check are scikit-learn's, and run on one thread, so that their scores are the
same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Floats, Ints, weighted_counts
from kbprobe.audit.rows import Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STEPS = 80
RIDGE = 1.0


def fit_choice_model(features: csr_array, choices: Ints, answer: Ints) -> Floats:
    """Fit a conditional logit: P(choice) is proportional to exp(weights . features).

    Args:
        features: (texts, features) of the distinct choice texts.
        choices: (rows, K) indices of texts.
        answer: (rows,) the gold's column in ``choices``.

    Returns:
        One weight for each feature: the minimum of the summed negative log-likelihood plus
        half the squared norm, after a fixed number of accelerated gradient steps.
    """
    rows = np.arange(choices.shape[0])
    shown, local = np.unique(choices, return_inverse=True)
    local = local.reshape(choices.shape)
    part = features[shown]
    # Features that no shown text has keep a weight of 0.
    used = np.unique(part.indices)
    part = part[:, used]
    across = part.T.tocsr()
    weights = ahead = np.zeros(used.size)
    # The logistic loss curves at most half the squared norm of the features, row by row; the
    # power iteration finds the sharpest direction, so that one step size serves throughout.
    step = 1.0 / (_curvature(part, across, local) + RIDGE)
    momentum = 1.0
    for _ in range(STEPS):
        scores = (part @ ahead)[local]
        scores -= scores.max(axis=1, keepdims=True)
        residual = np.exp(scores)
        residual /= residual.sum(axis=1, keepdims=True)
        residual[rows, answer] -= 1.0
        pull = weighted_counts(local.ravel(), residual.ravel(), shown.size)
        updated = ahead - step * (across @ pull + RIDGE * ahead)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = updated + (momentum - 1) / following * (updated - weights)
        weights, momentum = updated, following
    fitted = np.zeros(features.shape[1])
    fitted[used] = weights
    return fitted


def _curvature(features: csr_array, across: csr_array, choices: Ints) -> float:
    """Return the largest eigenvalue of the loss's Hessian at zero weights, plus a margin."""
    # No constant: if all answers have the same features, they should have the same score.
    direction = np.cos(np.arange(features.shape[1]))
    size = 1.0
    for _ in range(8):
        direction /= np.linalg.norm(direction)
        scores = (features @ direction)[choices]
        scores = (scores - scores.mean(axis=1, keepdims=True)) / choices.shape[1]
        pull = weighted_counts(choices.ravel(), scores.ravel(), features.shape[0])
        direction = across @ pull
        size = float(np.linalg.norm(direction))
        if size == 0.0:
            return 1.0
    # At zero weights a row's curvature is (K-1)/K^2 .. 1/K; away from it at most 1/2.
    return float(size * max(1.0, choices.shape[1] / 2))


def fit_answer_model(
    features: csr_array, question: Ints, answers: Ints, gold: Ints, kinds: int
) -> Floats:
    """Fit weights (answers, features): P(answer) proportional to exp(weights . features).

    Features that occur in a single question get no weight, since they do not generalize.

    Args:
        features: (questions, features).
        question: (rows,) index into the questions.
        answers: (rows, K) the answers to choose from, as codes 0 .. ``kinds`` - 1.
        gold: (rows,) the right one's column.
        kinds: the number of answers.
    """
    from scipy.sparse import block_diag

    lines, local = np.unique(question, return_inverse=True)
    seen = features[lines]
    shared = np.flatnonzero(np.bincount(seen.indices, minlength=features.shape[1]) > 1)
    # As choices of a conditional logit: each pair of answer and question is a choice, whose
    # features are in the columns of that answer.
    pairs = block_diag([seen[:, shared]] * kinds, format="csr")
    fitted = fit_choice_model(pairs, answers * lines.size + local[:, None], gold)
    weights = np.zeros((kinds, features.shape[1]))
    weights[:, shared] = fitted.reshape(kinds, shared.size)
    return weights


def counts_in_train(label: Ints, target: Ints, size: int, train: Ints, scored: Ints) -> Floats:
    """Count how often each target occurs in the train rows with the label of each scored row.

    Args:
        label: (rows,) integer labels.
        target: (rows,) targets, 0 .. ``size`` - 1.
        size: the number of targets.
        train: the rows to count.
        scored: the rows to score.

    Returns:
        (scored rows, targets).
    """
    counts = np.zeros((int(label.max(initial=0)) + 1, size))
    np.add.at(counts, (label[train], target[train]), 1.0)
    return np.asarray(counts[label[scored]])


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
    from threadpoolctl import threadpool_limits

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
    from threadpoolctl import threadpool_limits

    size = min(DIMENSIONS, min(matrix.shape) - 1)
    if size < 1:
        return np.zeros((matrix.shape[0], 1), dtype=np.float32)
    some = np.random.default_rng(SEED).permutation(matrix.shape[0])[:FITTED_TEXTS]
    svd = TruncatedSVD(min(size, some.size), random_state=SEED)
    with threadpool_limits(1):
        return np.asarray(svd.fit(matrix[some]).transform(matrix), dtype=np.float32)


def linear_ngrams(texts: list[str], gold: Ints, **ngrams: Any) -> tuple[Ints, Floats]:
    """Fit a linear model of n-grams on the first texts; predict the others.

    Returns:
        The classes, and the probability of each for the other texts, (other texts, classes).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    features = TfidfVectorizer(**ngrams).fit_transform(texts)
    model = LogisticRegression(C=3.0, max_iter=500).fit(features[: gold.size], gold)
    return model.classes_, model.predict_proba(features[gold.size :])


FOLDS = 5


def right_elsewhere(rows: Rows, group: Ints) -> Floats:
    """Return how often each choice is right in the scored rows of other folds that show it.

    Args:
        rows: the rows.
        group: (scored rows,) labels; the rows of a group are in one fold.

    Returns:
        (scored rows, K) shares, smoothed by one row at chance: a text that no other fold shows is
        as likely as any other.
    """
    fold = _folds(group)
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
