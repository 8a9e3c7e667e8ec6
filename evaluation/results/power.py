"""Power of the paired comparison of two models over clusters of rows.

D is the difference of two accuracies, a ratio of two totals over K clusters. Its standard error is
s / sqrt(K), where s**2 is the variance of a cluster's differences about D times its rows, over the
square of the mean number of rows. The test swaps models in whole clusters, so that its own
standard error, s0 / sqrt(K), is about 0: s0**2 = s**2 + D**2 E[n**2] / E[n]**2. The power is
Phi((|D| sqrt(K) - z s0) / s) with z the normal quantile at half the level. Where each cluster is
a row this is Connor's (1987) formula for McNemar's test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints


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
