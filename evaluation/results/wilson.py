"""Wilson's interval for a share."""

from __future__ import annotations

import math

TAILS = (0.025, 0.975)
"""All intervals are at 95%."""


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
