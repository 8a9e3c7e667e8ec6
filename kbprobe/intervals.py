"""Numbers with their 95% confidence intervals, for rows that are independent or in clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from kbprobe.arrays import Floats, Ints

LEVEL = 0.05
"""How often an interval misses the number that it is of, at most: 95% intervals."""

TAILS = (LEVEL / 2, 1 - LEVEL / 2)
"""Quantiles of the distribution at the ends of an interval."""


class Estimate(BaseModel):
    """A number with its 95% confidence interval.

    Shares are between 0 and 1, differences in percentage points.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    value: float = Field(description="The number itself.")
    low: float = Field(description="Lower end of its 95% interval.")
    high: float = Field(description="Upper end of its 95% interval.")
    n: int = Field(description="Rows, or clusters, that it was computed from.")
    clusters: int | None = Field(
        None, description="Clusters that these rows are of; null where that is not known."
    )
    method: str = Field(
        description="How the interval was made: wilson; cluster bootstrap; wilson, effective n; "
        "wilson over clusters; paired cluster bootstrap; combined wilson; combined; t over "
        "clusters; two-way bootstrap, basic or not; least squares, errors by cluster."
    )

    def __bool__(self) -> Literal[True]:
        """Return True: ``part and part.value`` is None only where there is no part."""
        return True


def estimate_of(value: Any) -> Estimate | None:
    """Return the estimate that was read from a file as a mapping; None: it is something else."""
    every = Estimate.model_fields
    required = {name for name, field in every.items() if field.is_required()}
    if isinstance(value, Mapping) and required <= value.keys() <= every.keys():
        return Estimate(**value)
    return None


def mean_credit(credit: Floats, cluster: Ints, tests: int = 1) -> Estimate:
    """Estimate the mean credit of some rows, each between 0 and 1.

    Student's t over the clusters' totals (linearised variance of a ratio, Cochran, 1977,
    chapter 6): unlike a bootstrap's, the interval is wide enough for a handful of clusters too.
    Of several ``tests``, all intervals hold at once in 95% of cases (Bonferroni).

    >>> print(mean_credit(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1])))
    value=0.5 low=0.0 high=1.0 n=4 clusters=None method='t over clusters'
    """
    from scipy.special import stdtrit

    mean, reach = (float(credit.mean()) if credit.size else 0.0), 1.0
    _, local = np.unique(cluster, return_inverse=True)
    totals = np.bincount(local, weights=credit - mean)
    if (others := totals.size - 1) > 0:
        error = float(np.sqrt((totals**2).sum() * totals.size / others)) / credit.size
        reach = float(stdtrit(others, 1 - TAILS[0] / tests)) * error
    ends = max(mean - reach, 0.0), min(mean + reach, 1.0)
    return Estimate(value=mean, low=ends[0], high=ends[1], n=credit.size, method="t over clusters")


def wilson(share: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval for a share of ``n`` independent units (``n`` may be fractional).

    It misses the share with a probability of ``level``.

    Equal to the last digit to statsmodels' ``proportion_confint``, which takes seconds to import;
    scipy's version takes only integer ``n``.

    >>> low, high = wilson(0.5, 100)
    >>> round(low, 4), round(high, 4)
    (0.4038, 0.5962)
    """
    from scipy.special import ndtri

    z, share = float(-ndtri(level / 2)), share * n / n
    scale = 1 + z**2 / n
    middle = (share + z**2 / (2 * n)) / scale
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / scale
    # At 0 and 1 one end is the share itself; rounding must not move it.
    return (
        0.0 if share == 0 else max(middle - reach, 0.0),
        1.0 if share == 1 else min(middle + reach, 1.0),
    )


def effective_rows(rows: Ints | Floats, right: Ints | Floats) -> float:
    """Return how many independent rows some clusters are worth: n over the design effect.

    At most n (Korn & Graubard, 1998). If all rows are right, or all wrong, the similarity of rows
    within clusters cannot be estimated; they are then taken to be as similar as possible (Kish: n
    squared over the sum of squared cluster sizes). With few clusters, the number is reduced further
    by Student's t. Arrays have shape [clusters].
    """
    from scipy.special import ndtri

    n, share = float(rows.sum()), float(right.sum() / rows.sum())
    clusters = rows.size
    if clusters == 1:
        return 1.0
    if share in (0.0, 1.0):
        worth = n**2 / float((rows.astype(float) ** 2).sum())
    else:
        spread = float(((right - share * rows) ** 2).sum()) * clusters / (clusters - 1)
        worth = n if spread == 0 else min(n, share * (1 - share) * n**2 / spread)
    return max(1.0, worth * (float(ndtri(TAILS[1])) / student(clusters - 1)) ** 2)


def student(freedom: int) -> float:
    """Return the upper quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, TAILS[1]))
