"""How similar the answers of two models are, beyond what their accuracies make likely."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from evaluation.results import intervals
from evaluation.results.types import Estimate
from kbprobe.arrays import Bools, Floats, Ints


class AnswerAgreement(NamedTuple):
    """How similar the answers of two runs are, on the rows that both scored.

    Attributes:
        expected: expected share of equal answers for independent models with the same accuracies,
            if each wrong choice is equally likely.
        both_wrong: rows of three choices or more that both get wrong. With two choices, errors
            always agree.
        errors: share of these rows with the same wrong choice; None if there are none.
        expected_errors: that share if each wrong choice is equally likely.
        kappa: Cohen's kappa of being right; without an interval where fewer than 30 clusters hold a
            row that both get right or wrong, or one that a single model gets right; None if both
            are right on all rows, or both on none.
    """

    expected: float
    both_wrong: int
    errors: Estimate | None
    expected_errors: float | None
    kappa: Estimate | float | None


def agreement_of(
    right: Bools, also_right: Bools, same: Bools, choices: Ints, cluster: Ints, seed: int
) -> AnswerAgreement:
    """Measure how similar the answers of two runs are; all arrays have shape [rows].

    ``same`` are the rows to which both give the same answer.
    """
    wrong_choices = choices - 1
    # With two choices, two wrong answers are always the same.
    errors = ~right & ~also_right & (wrong_choices > 1)
    accuracy, other = float(right.mean()), float(also_right.mean())
    hit_by_chance = float((1 / np.maximum(wrong_choices, 1)).mean())
    return AnswerAgreement(
        expected=accuracy * other + (1 - accuracy) * (1 - other) * hit_by_chance,
        both_wrong=int(errors.sum()),
        errors=intervals.accuracy(same[errors], cluster[errors], seed) if errors.any() else None,
        expected_errors=float((1 / wrong_choices[errors]).mean()) if errors.any() else None,
        kappa=_kappa(right, also_right, cluster, seed),
    )


def _kappa(right: Bools, also_right: Bools, cluster: Ints, seed: int) -> Estimate | float | None:
    cells = 2 * right.astype(np.int64) + also_right
    counts = np.bincount(cells, minlength=4).astype(np.float64)
    value = float(kappas_of(counts[None])[0])
    if np.isnan(value):
        return None
    agree = right == also_right
    ends = intervals.of_counts(cells, 4, agree, cluster, kappas_of, seed)
    if ends is None:
        return value
    low, high = ends
    return Estimate(value=value, low=low, high=high, n=right.size, method="cluster bootstrap")


def kappas_of(totals: Floats) -> Floats:
    """Return Cohen's kappa of tables of two yes-or-no answers.

    Args:
        totals: rows with neither, only the second, only the first, and both, shape [tables, 4].

    Returns:
        Shape [tables]; NaN where both answers never vary, so that they agree by necessity.

    >>> kappas_of(np.array([[20.0, 10.0, 5.0, 15.0], [10.0, 0.0, 0.0, 10.0]])).round(2).tolist()
    [0.4, 1.0]
    """
    neither, second, first, both = totals.T
    n = totals.sum(axis=1)
    observed = (neither + both) / n
    accuracy, other = (first + both) / n, (second + both) / n
    expected = accuracy * other + (1 - accuracy) * (1 - other)
    varies = expected < 1
    kappas: Floats = np.divide(
        observed - expected, 1 - expected, out=np.full_like(n, np.nan), where=varies
    )
    return kappas


def mean_of(numbers: Sequence[Estimate | float | None]) -> Estimate | float | None:
    """Average numbers over probes, which are taken to be independent; None if one is None."""
    known = [number for number in numbers if number is not None]
    bounded = [number for number in known if isinstance(number, Estimate)]
    if len(known) < len(numbers):
        return None
    if len(bounded) < len(known):
        return fmean(
            accuracy.value if isinstance(accuracy, Estimate) else accuracy for accuracy in known
        )
    return intervals.mean_of_independent(bounded)
