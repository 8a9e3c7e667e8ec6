"""Wilson's 95% interval of a share, for rows that are independent or in clusters."""

from __future__ import annotations

import math

from kbprobe.arrays import Floats, Ints

TAILS = (0.025, 0.975)
"""Quantiles of the distribution at the ends of an interval."""


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval for a share of ``n`` independent units (``n`` may be fractional).

    Equal to the last digit to statsmodels' ``proportion_confint``, which takes seconds to import;
    scipy's version takes only integer ``n``.

    >>> low, high = wilson(0.5, 100)
    >>> round(low, 4), round(high, 4)
    (0.4038, 0.5962)
    """
    from scipy.special import ndtri

    z, share = float(-ndtri(TAILS[0])), share * n / n
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
