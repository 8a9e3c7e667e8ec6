"""Confidence intervals that know that the rows of one concept are not independent.

All are at 95%. The methods, each named in the estimate it made:

- ``wilson``: the units (rows, or whole clusters) are independent of each other (Wilson, 1927).
- ``cluster bootstrap``: percentiles over resamples of whole clusters; the number is a ratio of
  two totals, since clusters differ in size.
- ``wilson, effective n``: Wilson's interval for as many independent rows as the clustered rows
  are worth (design effect), with Student's t for the number of clusters (Korn & Graubard, 1998).
  Taken where the bootstrap is too narrow: with few clusters, and with nearly all rows right or
  nearly all wrong, where resamples hardly differ.
- ``combined wilson``: of a difference in those cases, from the intervals of its two sides
  (Newcombe, 1998; Zou & Donner, 2008).
- ``t over clusters``: of a mean of numbers that are no shares (:func:`mean`).

On simulated rows as alike as a probe's (intra-cluster correlation 0.3) these hold the truth 90 to
97 times in 100, from 5 clusters to 300; Wilson's over the rows does so 69 to 76 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from evaluation.results.types import Estimate
from kbprobe.arrays import Bools, Floats, Ints

RESAMPLES = 10_000
FEWEST = 30
"""So many clusters must hold an error, and so many something right, for the bootstrap: with fewer
its intervals are too narrow."""

_TAILS = (0.025, 0.975)
_BLOCK = 1 << 22
"""Draws held at a time: 32 MiB."""


class _Clusters(NamedTuple):
    """Rows counted by cluster: arrays [clusters]."""

    rows: Ints
    right: Ints

    @property
    def independent(self) -> bool:
        return int(self.rows.max()) == 1

    @property
    def suit_bootstrap(self) -> bool:
        return bool(min((self.right > 0).sum(), (self.right < self.rows).sum()) >= FEWEST)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of ``n`` independent units (``n`` may be fractional).

    The same to the last digit as statsmodels' ``proportion_confint``, which takes seconds to
    import; scipy's takes whole ``n`` only.

    >>> low, high = wilson(0.5, 100)
    >>> round(low, 4), round(high, 4)
    (0.4038, 0.5962)
    """
    from scipy.special import ndtri

    z, share = float(-ndtri(_TAILS[0])), share * n / n
    scale = 1 + z**2 / n
    middle = (share + z**2 / (2 * n)) / scale
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / scale
    # At 0 and 1 one end is the share itself; rounding must not move it.
    return (
        0.0 if share == 0 else max(middle - reach, 0.0),
        1.0 if share == 1 else min(middle + reach, 1.0),
    )


def accuracy(right: Bools, cluster: Ints, seed: int) -> Estimate:
    """Estimate the share of rows that are right, by the best method for these clusters.

    Args:
        right: shape [rows], at least one.
        cluster: each row's cluster, any integers, shape [rows].
        seed: of the bootstrap.
    """
    counted = _count(right, cluster)
    if counted.independent or not counted.suit_bootstrap:
        return _wilson_estimate(counted)
    bounds = _bootstrap(counted, lambda rows, right: right / rows, seed)
    return _estimate(float(right.mean()), bounds, right.size, "cluster bootstrap")


def quick_accuracy(right: Bools, cluster: Ints) -> Estimate:
    """Estimate as :func:`accuracy` does, but without resampling: for the many cells of a table."""
    return _wilson_estimate(_count(right, cluster))


def strict_accuracy(
    right: Bools, cluster: Ints, complete: Bools, seed: int
) -> tuple[Estimate, Estimate]:
    """Estimate the share of clusters with every row right, and its lead over the rows' accuracy.

    Strict accuracy is taken over the clusters with a ``complete`` row (at least one), accuracy over
    all rows; all arrays have shape [rows].

    Returns:
        Strict cluster accuracy, as a share, and strict accuracy less accuracy, in points.
        Clusters are independent of each other, so the first has Wilson's interval.
    """
    counted = _count(right, cluster)
    whole = (_count(complete, cluster).right > 0).astype(np.int64)
    all_right = whole * (counted.right == counted.rows)
    clusters, strictly = int(whole.sum()), int(all_right.sum())
    share = strictly / clusters
    strict = _estimate(share, wilson(share, clusters), clusters, "wilson")
    if min(strictly, clusters - strictly) >= FEWEST:
        bounds = _bootstrap(
            [*counted, whole, all_right],
            lambda rows, right, whole, strict: strict / whole - right / rows,
            seed,
        )
        method = "cluster bootstrap"
    else:
        bounds = _combined(strict, _wilson_estimate(counted), correlation=0.0)
        method = "combined wilson"
    return strict, _estimate(share - float(right.mean()), bounds, clusters, method, 100)


def paired_difference(first: Bools, second: Bools, cluster: Ints, seed: int) -> Estimate:
    """Estimate the accuracy of ``second`` less that of ``first`` on the same rows, in points.

    By bootstrap over whole clusters, both models resampled together; where clusters are few, or
    few tell the models apart, by Newcombe's (1998) method 10 on the effective rows.

    All arrays have shape [rows].
    """
    one, two = _count(first, cluster), _count(second, cluster)
    if (one.right != two.right).sum() >= FEWEST:
        gains = two.right - one.right
        bounds = _bootstrap([one.rows, gains], lambda rows, gains: gains / rows, seed)
        method = "cluster bootstrap"
    else:
        correlation = _phi(first, second)
        bounds = _combined(_wilson_estimate(two), _wilson_estimate(one), correlation)
        method = "combined wilson"
    return _estimate(float(second.mean()) - float(first.mean()), bounds, first.size, method, 100)


def mean(values: Floats, cluster: Ints) -> Estimate | None:
    """Estimate the mean of numbers other than 0 and 1, by cluster.

    The interval is Student's t over the clusters' totals (the linearised variance of a ratio,
    Cochran, 1977, chapter 6): with thirty clusters or more it is as good as a bootstrap's.

    Returns:
        None with fewer than 30 clusters, or where the values do not vary: there is no telling then
        how far the mean is to be trusted.
    """
    _, local, rows = np.unique(cluster, return_inverse=True, return_counts=True)
    clusters = rows.size
    if clusters < FEWEST:
        return None
    value = float(values.mean())
    off = np.bincount(local, weights=values) - value * rows
    error = np.sqrt((off**2).sum() * clusters / (clusters - 1)) / values.size
    if error < 1e-12:
        return None
    reach = _t(clusters - 1) * float(error)
    return _estimate(value, (value - reach, value + reach), values.size, "t over clusters")


def of_counts(
    cells: Ints,
    size: int,
    right: Bools,
    cluster: Ints,
    number: Callable[[Floats], Floats],
    seed: int,
) -> tuple[float, float] | None:
    """Return the interval of a number made of how many rows fall in each cell of a table.

    Args:
        cells: each row's cell, shape [rows], as ``right`` and ``cluster``.
        size: how many cells there are.
        right: whether each row is right.
        cluster: each row's cluster, any integers.
        number: of totals, shape [resamples, cells]; gives shape [resamples].
        seed: of the bootstrap.

    Returns:
        None where the clusters with a right row, or with a wrong one, are too few for a bootstrap,
        and where the number is the same in all resamples.
    """
    if not _count(right, cluster).suit_bootstrap:
        return None
    _, local = np.unique(cluster, return_inverse=True)
    counts = np.zeros((int(local.max()) + 1, size), dtype=np.int64)
    np.add.at(counts, (local, cells), 1)
    low, high = np.quantile(number(resampled_totals(counts, seed)), _TAILS)
    return (float(low), float(high)) if high - low > 1e-12 else None


def resampled_totals(columns: Ints, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Draw clusters with replacement, as many as there are, and total their columns.

    Clusters with the same numbers are interchangeable, so what is drawn is how often each *kind*
    of cluster occurs (multinomial): the same distribution at a fraction of the cost.

    Args:
        columns: numbers of each cluster, shape [clusters, columns].
        seed: the draws depend on it and on the columns alone, not on the order of the clusters.
        resamples: how many times, the first axis of what is returned.
    """
    kinds, counts = np.unique(columns, axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    clusters = len(columns)
    block = max(1, _BLOCK // counts.size)
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    drawn = (generator.multinomial(clusters, counts / clusters, size=size) for size in sizes)
    return np.concatenate([times.astype(np.float64) @ kinds.astype(np.float64) for times in drawn])


def _bootstrap(
    columns: Sequence[Ints], number: Callable[..., Floats], seed: int
) -> tuple[float, float]:
    """Return the percentiles of a number made of the columns' totals."""
    totals = resampled_totals(np.stack(columns, axis=1), seed)
    low, high = np.quantile(number(*totals.T), _TAILS)
    return float(low), float(high)


def effective_rows(rows: Ints, right: Ints) -> float:
    """Return how many independent rows some clusters are worth: n over the design effect.

    At most n. Where all rows are right, or all wrong, nothing tells how alike the rows of a
    cluster are; they are then taken to be as alike as can be (Kish: n squared over the sum of
    squared cluster sizes). The number is cut further by Student's t where clusters are few.
    Arrays have shape [clusters].
    """
    from scipy.special import ndtri

    n, share = int(rows.sum()), float(right.sum() / rows.sum())
    clusters = rows.size
    if clusters == 1:
        return 1.0
    if share in (0.0, 1.0):
        worth = n**2 / float((rows.astype(np.float64) ** 2).sum())
    else:
        spread = float(((right - share * rows) ** 2).sum()) * clusters / (clusters - 1)
        worth = float(n) if spread == 0 else min(n, share * (1 - share) * n**2 / spread)
    return max(1.0, worth * (float(ndtri(_TAILS[1])) / _t(clusters - 1)) ** 2)


def _t(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _TAILS[1]))


def _count(right: Bools, cluster: Ints) -> _Clusters:
    _, local, rows = np.unique(cluster, return_inverse=True, return_counts=True)
    sums = np.bincount(local, weights=right, minlength=rows.size)
    return _Clusters(rows.astype(np.int64), sums.astype(np.int64))


def _wilson_estimate(counted: _Clusters) -> Estimate:
    n = int(counted.rows.sum())
    share = int(counted.right.sum()) / n
    worth = n if counted.independent else effective_rows(*counted)
    method = "wilson" if counted.independent else "wilson, effective n"
    return _estimate(share, wilson(share, worth), n, method)


def _combined(more: Estimate, less: Estimate, correlation: float) -> tuple[float, float]:
    """Return the interval of ``more - less`` from those of both."""

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a**2 + b**2 - 2 * correlation * a * b, 0.0))

    value = more.value - less.value
    low = value - reach(more.value - more.low, less.high - less.value)
    high = value + reach(more.high - more.value, less.value - less.low)
    return max(low, -1.0), min(high, 1.0)


def _phi(first: Bools, second: Bools) -> float:
    """Correlation of two yes-or-no columns; 0 where one of them never varies."""
    if first.all() or second.all() or not (first.any() and second.any()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _estimate(
    value: float, bounds: tuple[float, float], n: int, method: str, scale: int = 1
) -> Estimate:
    low, high = (scale * bound for bound in bounds)
    return Estimate(value=scale * value, low=low, high=high, n=n, method=method)
