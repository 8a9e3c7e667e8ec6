"""Sampling of rows for audits, and estimates of how often a baseline is right on them.

Shared by the audit at the end of a build and by the adversaries of the deep release check.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints, sorted_unique
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

SCORED_ROWS, FITTED_ROWS = 20_000, 3_000
"""Maximum numbers of rows to score (enough for half a point) and to train on."""

MARGIN = 0.05
"""How far from chance the accuracy of a baseline may be."""

FEWEST_ROWS = 100
"""Minimum number of rows for a verdict."""

FEW_ROWS: Literal["few rows"] = "few rows"
"""The value given instead of a verdict if there are fewer rows."""

LARGEST_SET = 0.01
"""Maximum share of rows with the same choices; if it is exceeded, whole clusters are sampled."""

Verdict = Literal["high", "low", "ok", "few rows"]


class Sample(NamedTuple):
    """The rows used by an audit.

    Attributes:
        split: the split that is scored.
        scored: the rows of it that are scored.
        train: the rows of train that models are fitted on.
    """

    split: int
    scored: Ints
    train: Ints

    @property
    def rows(self) -> Ints:
        """All rows of the sample, ascending."""
        return sorted_unique(np.concatenate([self.scored, self.train]))

    def within(self, rows: Ints) -> Sample:
        """Return the sample as positions in ``rows`` (ascending), which must contain it."""
        scored, train = (np.searchsorted(rows, part) for part in (self.scored, self.train))
        return Sample(self.split, scored, train)


def choose_rows(split: Ints, cluster: Ints, choices: Ints, seed: int) -> Sample:
    """Choose the rows to look at: of test, or else of validation, or else of train.

    At most `SCORED_ROWS` are scored: all rows that show the same choices at a time, so that choice
    groups stay whole, or whole clusters where many rows show the same choices. Models are fitted on
    at most `FITTED_ROWS` of train, whole clusters at a time; on none where train is scored.

    Args:
        split: (rows,) 0 train, 1 validation, 2 test.
        cluster: (rows,) integer labels.
        choices: (rows, K) integer labels; the choices' order says nothing.
        seed: draws the rows where there are more.
    """
    rng = RandomGenerator.of(seed, "audit")
    best = next(code for code in (2, 1, 0) if (split == code).any())
    scored = np.flatnonzero(split == best)
    train = np.flatnonzero((split == SPLITS.index("train")) & (best != 0))
    if scored.size > SCORED_ROWS:
        unit = _together(choices[scored], cluster[scored])
        scored = scored[first_units(unit, SCORED_ROWS, rng.child("rows"))]
    if train.size > FITTED_ROWS:
        train = train[first_units(cluster[train], FITTED_ROWS, rng.child("fit"))]
    return Sample(best, scored, train)


def _together(choices: Ints, cluster: Ints) -> Ints:
    """Return the sampling unit of each row; the rows of a unit are sampled together."""
    sets = RandomGenerator(0).bits(*np.sort(choices, axis=1).T)
    _, same, sizes = np.unique(sets, return_inverse=True, return_counts=True)
    return same if sizes.max() <= LARGEST_SET * same.size else cluster


def first_units(unit: Ints, rows: int, rng: RandomGenerator) -> Bools:
    """Mark the rows of whole units, in seeded order, until no further unit fits within ``rows``.

    A unit that does not fit is passed over, and the next tried.
    """
    units, local, sizes = np.unique(unit, return_inverse=True, return_counts=True)
    keep = np.zeros(units.size, dtype=np.bool_)
    room = rows
    for at in np.argsort(rng.uniform(units), kind="stable"):
        if sizes[at] <= room:
            keep[at] = True
            room -= int(sizes[at])
            if room == 0:
                break
    return np.asarray(keep[local])


def credit_of(scores: Floats, answer: Ints) -> Floats:
    """Return 1 where the gold alone scores highest, 1 / n where n choices tie for it, else 0.

    Args:
        scores: (rows, K); minus infinity where there is no choice.
        answer: (rows,) the gold's column.
    """
    best = scores >= scores.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(answer.size), answer] / best.sum(axis=1))


def commonest(answers: Ints) -> float:
    """Return the share of rows with the most common answer, of answers as integer labels."""
    return float(np.bincount(answers).max() / answers.size)


class Estimate(NamedTuple):
    """An accuracy, its 95% confidence interval over clusters, and the number of rows."""

    accuracy: float
    low: float
    high: float
    rows: int

    @classmethod
    def of(cls, credit: Floats, cluster: Ints, tests: int = 1) -> Estimate:
        """Estimate the mean credit of some rows.

        Student's t over the clusters' totals (linearised variance of a ratio, Cochran, 1977,
        chapter 6): unlike a bootstrap's, the interval is wide enough for a handful of clusters too.
        Of several ``tests``, all intervals hold at once in 95% of cases (Bonferroni).

        >>> Estimate.of(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1]))
        Estimate(accuracy=0.5, low=0.0, high=1.0, rows=4)
        """
        from scipy.special import stdtrit

        if credit.size == 0:
            return cls(0.0, 0.0, 1.0, 0)
        mean, reach = float(credit.mean()), 1.0
        _, local = np.unique(cluster, return_inverse=True)
        totals = np.bincount(local, weights=credit - mean)
        if (others := totals.size - 1) > 0:
            error = float(np.sqrt((totals**2).sum() * totals.size / others)) / credit.size
            reach = float(stdtrit(others, 1 - 0.025 / tests)) * error
        return cls(mean, max(mean - reach, 0.0), min(mean + reach, 1.0), credit.size)

    def verdict(self, chance: float) -> Verdict:
        """Return ``high`` or ``low`` if the whole interval is more than `MARGIN` from chance."""
        if self.rows < FEWEST_ROWS:
            return FEW_ROWS
        if self.low > chance + MARGIN:
            return "high"
        return "low" if self.high < chance - MARGIN else "ok"

    def against_bar(self, chance: float, tolerance: float, guess: float) -> Verdict:
        """Return ``high`` or ``low`` if the accuracy itself is more than ``tolerance`` from chance.

        For ``high``, the reference is ``guess``: chance, or the share of the most common answer.

        The interval only has to exclude the reference. Splits of cloze probes have hundreds of
        rows, so that their intervals are too wide to lie entirely beyond the tolerance.
        """
        if self.rows < FEWEST_ROWS:
            return FEW_ROWS
        if self.accuracy > guess + tolerance and self.low > guess:
            return "high"
        return "low" if self.accuracy < chance - tolerance and self.high < chance else "ok"
