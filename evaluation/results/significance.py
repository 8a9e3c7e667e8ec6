"""Tests of whether two models differ on the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbprobe.arrays import Ints


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of McNemar's exact test from the discordant counts.

    >>> mcnemar(0, 0)
    1.0
    """
    from scipy.stats import binom

    fewer, both = min(only_first, only_second), only_first + only_second
    return min(2 * float(binom.cdf(fewer, both, 0.5)), 1.0)


def swap_clusters(difference: Ints) -> float:
    """Return the two-sided p of the exact randomisation test on clusters.

    If the two models were equal, swapping them in any cluster would be equally likely: the sign of
    each cluster's difference is a fair coin flip. All sign patterns are counted, not sampled.

    Args:
        difference: right answers of one model minus those of the other, shape [clusters].
    """
    from scipy.stats import binom

    sizes, counts = np.unique(np.abs(difference[difference != 0]), return_counts=True)
    total = int(sizes @ counts)
    # Probability of each sum over the clusters that keep their sign; the others are subtracted.
    chance = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        step = np.zeros(size * count + 1)
        step[::size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chance = np.convolve(chance, step)
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(float(chance[sums >= abs(int(difference.sum()))].sum()), 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple testing (Holm, 1979); the order is kept.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []
