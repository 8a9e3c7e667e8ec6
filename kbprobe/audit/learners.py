"""What is fitted on train: a linear model of choices, and counts of answers.

The linear model is a conditional logit: one of the K choices of a row is the gold. scikit-learn has
no such model (its logistic regression takes each choice by itself and does worse), and its import
takes longer than the fit. The matrices are those of scipy.sparse, whose products leave texts with
the same features exactly tied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kbprobe.arrays import Floats, Ints, weighted_counts

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
