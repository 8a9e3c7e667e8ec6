"""Paired results: their predictions read and checked, tests of a difference, and its power.

D is the difference of two accuracies, a ratio of two totals over K clusters. Its standard error is
s / sqrt(K), where s**2 is the variance of a cluster's differences about D times its rows, over the
square of the mean number of rows. A test takes the standard error about 0, s0 / sqrt(K), with
s0**2 = s**2 + D**2 E[n**2] / E[n]**2, which for small differences is that of the resamples. The
power is Phi((|D| sqrt(K) - z s0) / s) with z the normal quantile at half the level. Where each
cluster is a row this is Connor's (1987) formula for McNemar's test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluation.results.breakdown import bools, drop_unscored, headline_rows
from evaluation.results.metrics import compared_values
from evaluation.results.types import (
    AGAIN,
    PREDICTIONS,
    RESULTS,
    Metrics,
    Normalization,
    Results,
    read_predictions,
    read_results,
)
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


_FILLED = ("id", "question", "choices", "answer", "setup", "cluster")
"""Columns that every row has a value in."""
_OF_SCORED = ("correct", "margin", "probability", "tie")
"""Columns that every scored row has a value in, and no other row."""
_ROUNDOFF = 1e-5
"""Relative difference by which a picked score may be below the best, for float32 rounding."""


def read_pair(folder: Path) -> tuple[Results, pa.Table]:
    """Read the results and the predictions of a folder.

    What follows from the scores in the predictions is recomputed: which choice is picked, whether
    it is right, and how many are right.

    Raises:
        UsageError: one of the two is missing, damaged or edited, or they disagree.
    """
    results, predictions = read_results(folder), read_predictions(folder)
    problem = _damage(predictions) or _other_picks(predictions, results.metrics.normalization)
    if problem:
        raise UsageError(f"{folder / PREDICTIONS}: {problem}. {AGAIN}")
    if problem := _other_counts(results.metrics, predictions):
        raise UsageError(f"{folder}: {problem}: they are not of the same run. {AGAIN}")
    return results, predictions


def _damage(predictions: pa.Table) -> str:
    """Describe what cannot occur in the rows of any run; "" if there is nothing."""
    import pyarrow.compute as pc

    for name in _FILLED:
        if nulls := predictions[name].null_count:
            return f"the column {name!r} lacks {nulls:,} values"
    for name in ("choices", "scores", "tokens"):
        if single_chunk(predictions[name]).flatten().null_count:
            return f"a list in the column {name!r} lacks a value"
    scored = bools(predictions["prediction"].is_valid())
    if (bools(predictions["set_aside"].is_null()) != scored).any():
        return "the columns 'prediction' and 'set_aside' disagree about which rows are scored"
    for name in _OF_SCORED:
        if (bools(predictions[name].is_valid()) != scored).any():
            return f"the columns 'prediction' and {name!r} disagree about which rows are scored"
    widths = _widths(predictions["choices"])
    for name in ("scores", "tokens"):
        if (_widths(predictions[name]) != np.where(scored, widths, 0)).any():
            return f"the column {name!r} has not one value for each choice of a scored row"
    for name in ("answer", "prediction"):
        index = to_numpy(pc.fill_null(predictions[name], 0))
        if ((index < 0) | (index >= widths)).any():
            return f"the column {name!r} names a choice that is not there"
    right = to_numpy(predictions["answer"]) == to_numpy(pc.fill_null(predictions["prediction"], -1))
    if (bools(predictions["correct"]) != right).any():
        return "the column 'correct' is not whether 'prediction' is the 'answer'"
    return ""


def _other_picks(predictions: pa.Table, normalization: Normalization) -> str:
    """Describe picks that are not the choices with the best scores; "" if there are none."""
    scored = drop_unscored(predictions)
    raw, tokens = (to_numpy(single_chunk(scored[name]).flatten()) for name in ("scores", "tokens"))
    if np.isnan(raw).any() or (tokens < 0).any():
        return "a score is not a number, or its number of tokens is negative"
    if not len(raw):
        return ""
    try:
        values, starts, _ = compared_values(scored, normalization)
    except UsageError as error:
        return str(error)
    picked = values[starts[:-1] + to_numpy(scored["prediction"])]
    best = np.maximum.reduceat(values, starts[:-1])
    with np.errstate(invalid="ignore"):
        worse = picked < best - _ROUNDOFF * np.maximum(np.abs(best), 1.0)
    if worse.any():
        row = scored["id"][int(np.flatnonzero(worse)[0])].as_py()
        return f"the prediction of row {row} is not the choice with the best score"
    return ""


def _other_counts(metrics: Metrics, predictions: pa.Table) -> str:
    """Describe counts that differ between results and predictions; "" if there are none."""
    scored = predictions["correct"].drop_null()
    right = int(bools(headline_rows(predictions)["correct"].drop_null()).sum())
    held = (predictions.num_rows, len(scored), right)
    accuracy = metrics.accuracy
    counted = (metrics.items, metrics.scored, round(accuracy.value * accuracy.n))
    if held == counted:
        return ""
    return (
        f"{RESULTS} counts {counted[0]:,} items, {counted[1]:,} scored and {counted[2]:,} right, "
        f"{PREDICTIONS} {held[0]:,}, {held[1]:,} and {held[2]:,}"
    )


def _widths(lists: pa.ChunkedArray) -> Ints:
    import pyarrow.compute as pc

    return to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of McNemar's exact test from the discordant counts.

    >>> mcnemar(0, 0)
    1.0
    """
    from scipy.stats import binom

    fewer, both = min(only_first, only_second), only_first + only_second
    return min(2 * float(binom.cdf(fewer, both, 0.5)), 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple testing (Holm, 1979); the order is kept.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    raised = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(raised), 1.0)
    return [float(p) for p in adjusted[np.argsort(order)]]


@dataclass(frozen=True)
class Spread:
    """How much differences vary from cluster to cluster.

    Attributes:
        null_variance: the variance of the estimated difference about 0, times the number of
            clusters: s0**2. The test uses it; if each cluster is a row, it is the share of rows
            that only one model gets right.
        unevenness: mean square of cluster sizes over their squared mean; 1 if all are equal.
    """

    null_variance: float
    unevenness: float

    def variance(self, difference: float) -> float:
        """Return the variance about a difference, times the number of clusters: s**2."""
        return max(self.null_variance - difference**2 * self.unevenness, 0.0)


def observed_spread(right: Bools, also_right: Bools, cluster: Ints) -> Spread:
    """Measure the spread of the differences of two finished runs; arrays have shape [rows]."""
    _, local, rows = np.unique(cluster, return_inverse=True, return_counts=True)
    gains = also_right.astype(np.float64) - right
    totals = np.bincount(local, weights=gains, minlength=rows.size)
    off = totals - gains.mean() * rows
    clusters = max(rows.size, 2)
    variance = float((off**2).sum()) / (clusters - 1) / float(rows.mean()) ** 2
    unevenness = _unevenness(rows)
    return Spread(variance + float(gains.mean()) ** 2 * unevenness, unevenness)


def assumed_spread(sizes: Ints, discordant: float, difference: float, correlation: float) -> Spread:
    """Return the spread implied by assumptions about two models.

    Args:
        sizes: the number of rows of each cluster of the probe, shape [clusters].
        discordant: the share of rows that only one model gets right.
        difference: the difference of the accuracies, as a share.
        correlation: the correlation of the differences of two rows of a cluster.
    """
    mean = float(sizes.mean())
    by_row = discordant - difference**2
    unevenness = _unevenness(sizes)
    variance = by_row / mean * (1 + (unevenness * mean - 1) * correlation)
    return Spread(variance + difference**2 * unevenness, unevenness)


def row_correlation(right: Bools, also_right: Bools, cluster: Ints) -> float | None:
    """Estimate the correlation of the differences of two rows of one cluster.

    Returns:
        None if no cluster has two rows, or the differences do not vary.
    """
    _, local, rows = np.unique(cluster, return_inverse=True, return_counts=True)
    gains = also_right.astype(np.float64) - right
    off = gains - gains.mean()
    pairs = float((rows * (rows - 1)).sum())
    variance = float((off**2).mean())
    if pairs == 0 or variance == 0:
        return None
    totals = np.bincount(local, weights=off, minlength=rows.size)
    together = float((totals**2).sum() - (off**2).sum())
    return together / pairs / variance


def independent_discordance(accuracy: float, difference: float) -> float:
    """Return the share of rows that only one of two independent models gets right.

    >>> independent_discordance(0.5, 0.0)
    0.5
    """
    other = accuracy + difference
    return accuracy * (1 - other) + other * (1 - accuracy)


def power_of(clusters: float | Floats, difference: float, spread: Spread, level: float) -> Floats:
    """Return the probability that the test finds a difference (a share) with this many clusters."""
    from scipy.special import ndtr, ndtri

    quantile = -float(ndtri(level / 2))
    reach = abs(difference) * np.sqrt(clusters)
    reach = reach - quantile * math.sqrt(spread.null_variance)
    variance = spread.variance(difference)
    if variance <= 0:
        return np.where(reach >= 0, 1.0, 0.0)
    found: Floats = ndtr(reach / math.sqrt(variance))
    return found


def clusters_needed(difference: float, spread: Spread, power: float, level: float) -> int:
    """Return the smallest number of clusters with which the test has this power.

    >>> clusters_needed(0.1, Spread(0.3, 1.0), power=0.8, level=0.05)  # Connor (1987)
    234
    """
    from scipy.special import ndtri

    reach = -float(ndtri(level / 2)) * math.sqrt(spread.null_variance)
    reach += float(ndtri(power)) * math.sqrt(spread.variance(difference))
    return max(2, math.ceil((reach / difference) ** 2 - 1e-9))


def least_difference(clusters: int, spread: Spread, power: float, level: float) -> float | None:
    """Return the smallest difference that this many clusters show; None if not even 100 points."""
    from scipy.optimize import brentq

    def short(difference: float) -> float:
        return float(power_of(clusters, difference, spread, level)) - power

    if short(1.0) < 0:
        return None
    return float(brentq(short, 1e-9, 1.0))


def _unevenness(sizes: Ints) -> float:
    return float((sizes.astype(np.float64) ** 2).mean() / float(sizes.mean()) ** 2)
