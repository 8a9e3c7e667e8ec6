"""Intervals for samples in which nearly all clusters are the same.

A model that always picks the larger number answers one question of each mirrored pair right:
every resample of such clusters has the same accuracy, and a bootstrap interval has width 0. But
other clusters may still exist: if none is seen among n, their share may be up to about 4/n. So the
number is split into the ratio that most clusters share, and what the few others add to it or
subtract from it. The shares of these others get Wilson intervals over clusters, which are combined
by Newcombe's method (1998; Zou & Donner, 2008).
"""

from __future__ import annotations

import math

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.intervals import LEVEL, wilson

METHOD = "wilson over clusters"

FEWEST_OTHERS = 10
"""With fewer clusters that differ from the rest, bootstrap intervals have too little coverage."""


def shared_ratio(numbers: Ints | Floats, rows: Ints | Floats) -> tuple[float, int]:
    """Return the most frequent ratio of number to rows, and how many clusters have a different one.

    Both have shape [clusters].
    """
    ratios, counts = np.unique(np.round(numbers / rows, 12), return_counts=True)
    most = int(counts.argmax())
    return float(ratios[most]), int(counts.sum() - counts[most])


def few_others_interval(
    numbers: Ints | Floats,
    rows: Ints | Floats,
    shared: float,
    least: float,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the interval of the ratio of two totals, that of some numbers and that of rows.

    Args:
        numbers: a number for each cluster, such as its right rows, shape [clusters].
        rows: the number of rows of each cluster, shape [clusters].
        shared: the ratio that most clusters share.
        least: the least ratio that a cluster can have; the largest is 1.
        level: the probability that the interval misses the ratio.
    """
    off = np.asarray((numbers - shared * rows) / rows.mean(), np.float64)
    up = _part(off[off > 1e-9], rows.size, 1.0 - shared, level)
    down = _part(-off[off < -1e-9], rows.size, shared - least, level)
    value = shared + up[0] - down[0]
    low = value - math.hypot(up[0] - up[1], down[2] - down[0])
    high = value + math.hypot(up[2] - up[0], down[0] - down[1])
    return max(low, least), min(high, 1.0)


def _part(sizes: Floats, clusters: int, most: float, level: float) -> tuple[float, float, float]:
    """Return the mean contribution of one kind of cluster, with the ends of its interval."""
    size = float(sizes.mean()) if sizes.size else most
    low, high = wilson(sizes.size / clusters, clusters, level)
    return size * sizes.size / clusters, size * low, size * high
