"""How similar the answers of two models are, beyond what their accuracies make likely."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from pydantic import Field

from evaluation.results import intervals
from evaluation.results.types import Estimate, Model
from evaluation.results.words import coefficient
from kbprobe.arrays import Bools, Floats, Ints


class Kappa(Model):
    """Cohen's kappa of two models being right: 0 if independent, 1 if right on the same rows."""

    value: float = Field(description="The coefficient.")
    low: float | None = Field(
        description="Lower end of its 95% interval, by cluster bootstrap; null where fewer than 30 "
        "clusters hold a row that both get right or wrong, or one that a single model gets right."
    )
    high: float | None = Field(description="Upper end; null as above.")

    def number(self, rows: int = 0) -> Estimate | float:
        """Return kappa with its interval, if there is one."""
        if self.low is None or self.high is None:
            return self.value
        return Estimate(
            value=self.value, low=self.low, high=self.high, n=rows, method="cluster bootstrap"
        )

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return coefficient(self.value)
        return f"{coefficient(self.value)} ({coefficient(self.low)} to {coefficient(self.high)})"


class Agreement(Model):
    """How similar the answers of two runs are, on the rows that both scored."""

    overlap: Estimate = Field(description="Share of rows with the same prediction.")
    expected_overlap: float = Field(
        description="Expected share for independent models with the same accuracies, if each wrong "
        "choice is equally likely."
    )
    both_wrong: int = Field(
        description="Rows of three choices or more that both get wrong. With two choices, errors "
        "always agree."
    )
    error_overlap: Estimate | None = Field(
        description="Share of these rows with the same wrong choice; null where there are none."
    )
    expected_error_overlap: float | None = Field(
        description="Expected share if each wrong choice is equally likely: the mean of one over "
        "the number of wrong choices; null as above."
    )
    kappa: Kappa | None = Field(
        description="Error consistency (Geirhos et al. 2020): Cohen's kappa of both being right. "
        "Unlike overlap it does not rise with accuracy. Null if both models are right on "
        "all rows, or both on none."
    )


class MeanAgreement(Model):
    """Two models, averaged over all probes."""

    first: str = Field(description="Label of one model.")
    second: str = Field(description="Label of the other.")
    overlap: Estimate = Field(
        description="Mean over probes; intervals assume that probes are independent of each other."
    )
    error_overlap: Estimate | None = Field(
        description="Mean over probes; null if it is null on a probe."
    )
    kappa: Kappa | None = Field(description="Likewise.")


def agreement_of(
    right: Bools, also_right: Bools, same: Bools, choices: Ints, cluster: Ints, seed: int
) -> Agreement:
    """Measure how similar the answers of two runs are; all arrays have shape [rows].

    ``same`` are the rows to which both give the same answer.
    """
    wrong_choices = choices - 1
    # With two choices, two wrong answers are always the same.
    errors = ~right & ~also_right & (wrong_choices > 1)
    one, two = float(right.mean()), float(also_right.mean())
    hit_by_chance = float((1 / np.maximum(wrong_choices, 1)).mean())
    return Agreement(
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
    value = float(kappas_of(counts[None])[0])
    if np.isnan(value):
        return None
    agree = right == also_right
    low, high = intervals.of_counts(cells, 4, agree, cluster, kappas_of, seed) or (None, None)
    return Kappa(value=value, low=low, high=high)


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
    one, two = (first + both) / n, (second + both) / n
    expected = one * two + (1 - one) * (1 - two)
    varies = expected < 1
    found: Floats = np.divide(
        observed - expected, 1 - expected, out=np.full_like(n, np.nan), where=varies
    )
    return found


def mean_of(
    labels: tuple[str, str], each: Sequence[Agreement], rows: Sequence[int]
) -> MeanAgreement:
    """Average the agreement of two models over probes, given the rows compared on each."""
    return MeanAgreement(
        first=labels[0],
        second=labels[1],
        overlap=intervals.mean_of_independent([one.overlap for one in each]),
        error_overlap=_mean_estimate([one.error_overlap for one in each]),
        kappa=_mean_kappa([one.kappa for one in each], rows),
    )


def _mean_estimate(estimates: Sequence[Estimate | None]) -> Estimate | None:
    held = [one for one in estimates if one is not None]
    return intervals.mean_of_independent(held) if len(held) == len(estimates) else None


def _mean_kappa(kappas: Sequence[Kappa | None], rows: Sequence[int]) -> Kappa | None:
    known = [kappa for kappa in kappas if kappa is not None]
    if len(known) < len(kappas):
        return None
    numbers = [kappa.number(count) for kappa, count in zip(known, rows, strict=True)]
    bounded = [number for number in numbers if isinstance(number, Estimate)]
    if len(bounded) < len(known):
        return Kappa(value=fmean(kappa.value for kappa in known), low=None, high=None)
    mean = intervals.mean_of_independent(bounded)
    return Kappa(value=mean.value, low=mean.low, high=mean.high)
