"""Words and word pairs of texts as flat arrays, and a linear model of choices that reads them.

Used by the audit: features of a model that reads only the choices. Everything stays in Arrow and
NumPy.

If it beats chance, the probe can be solved without its questions: Richardson & Sabharwal
(TACL 2020, section 4.1) call such models partial-input baselines, and their published
hypernymy probe falls to them. So does any probe whose distractors are drawn uniformly.

The model is a conditional logit: one of the K choices of a row is the gold. scikit-learn has no
such model (its logistic regression takes each choice by itself and does worse), and its import
takes longer than the fit. The matrices are those of scipy.sparse, whose products leave texts with
the same features exactly tied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kbprobe.arrays import Floats, Ints, ragged_ranges, weighted_counts
from kbprobe.tokens import tokenise

if TYPE_CHECKING:
    from scipy.sparse import csr_array


HASHED_WIDTH = 1 << 18
_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def ngram_features(texts: pa.Array) -> csr_array:
    """Return hashed counts of each word and each pair of adjacent words, and the length in words.

    The last column is the length in units of ten words. Texts are rows. Hashing into 2**18 columns
    costs nothing here: a training split of 3,000 rows shows about 10**5 distinct n-grams.
    """
    from scipy.sparse import csr_array

    (tokens,) = tokenise(texts)
    size = len(texts)
    owner = np.repeat(np.arange(size, dtype=np.int64), tokens.lengths)
    word = tokens.ids.astype(np.uint64)
    with np.errstate(over="ignore"):
        pair = (word[:-1] * np.uint64(tokens.vocabulary) + word[1:]) * _PAIR_FACTOR
        word = word * _PAIR_FACTOR
    shift = np.uint64(64 - HASHED_WIDTH.bit_length() + 1)
    follows = owner[1:] == owner[:-1]
    # Laid out text by text: all its words, then all its pairs, then its length.
    pairs = np.maximum(tokens.lengths - 1, 0)
    indptr = np.concatenate([[0], np.cumsum(tokens.lengths + pairs + 1)])
    column = np.full(int(indptr[-1]), HASHED_WIDTH, dtype=np.int64)
    value = np.ones(int(indptr[-1]))
    starts = indptr[:-1]
    column[ragged_ranges(starts, tokens.lengths)] = word >> shift
    column[ragged_ranges(starts + tokens.lengths, pairs)] = pair[follows] >> shift
    value[indptr[1:] - 1] = tokens.lengths / 10.0
    return csr_array((value, column, indptr), shape=(size, HASHED_WIDTH + 1))


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
