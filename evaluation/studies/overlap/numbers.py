"""How similar the answers of two runs are."""

from __future__ import annotations

import numpy as np

from evaluation.results import intervals
from evaluation.studies.overlap.types import Kappa, PairOverlap
from evaluation.studies.pairing import PairedRows
from kbprobe.arrays import Bools, Floats, Ints


def measure_pair(paired: PairedRows, labels: tuple[str, str], seed: int) -> PairOverlap:
    """Measure two runs on the rows that both scored."""
    (right, also_right), cluster, same = paired.right, paired.clusters, paired.same
    wrong_choices = paired.choices - 1
    # Two wrong answers of two choices are the same whatever the models are.
    errors = ~right & ~also_right & (wrong_choices > 1)
    one, two = float(right.mean()), float(also_right.mean())
    hit_by_chance = float((1 / np.maximum(wrong_choices, 1)).mean())
    return PairOverlap(
        first=labels[0],
        second=labels[1],
        only_first=paired.only_first,
        only_second=paired.only_second,
        set_aside=paired.set_aside,
        compared=right.size,
        clusters=int(cluster.max()) + 1,
        overlap=intervals.accuracy(same, cluster, seed),
        expected_overlap=one * two + (1 - one) * (1 - two) * hit_by_chance,
        both_wrong=int(errors.sum()),
        error_overlap=intervals.accuracy(same[errors], cluster[errors], seed)
        if errors.any()
        else None,
        expected_error_overlap=float((1 / wrong_choices[errors]).mean()) if errors.any() else None,
        kappa=_kappa(right, also_right, cluster, seed),
    )


def _kappa(right: Bools, also_right: Bools, cluster: Ints, seed: int) -> Kappa | None:
    cells = 2 * right.astype(np.int64) + also_right
    counts = np.bincount(cells, minlength=4).astype(np.float64)
    value = float(kappas(counts[None])[0])
    if np.isnan(value):
        return None
    agree = right == also_right
    low, high = intervals.of_counts(cells, 4, agree, cluster, kappas, seed) or (None, None)
    return Kappa(value=value, low=low, high=high)


def kappas(totals: Floats) -> Floats:
    """Return Cohen's kappa of tables of two yes-or-no answers.

    Args:
        totals: rows with neither, only the second, only the first, and both, shape [tables, 4].

    Returns:
        Shape [tables]; NaN where both answers never vary, so that they agree by necessity.

    >>> kappas(np.array([[20.0, 10.0, 5.0, 15.0], [10.0, 0.0, 0.0, 10.0]])).round(2).tolist()
    [0.4, 1.0]
    """
    neither, second, first, both = totals.T
    n = totals.sum(axis=1)
    observed = (neither + both) / n
    one, two = (first + both) / n, (second + both) / n
    expected = one * two + (1 - one) * (1 - two)
    varies = expected < 1
    found: Floats = np.divide(
        observed - expected, 1 - expected, out=np.full_like(n, np.nan), where=varies
    )
    return found
