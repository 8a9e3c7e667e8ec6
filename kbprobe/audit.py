"""Sampling of rows for audits, and estimates of how often a baseline is right on them.

Shared by the audit at the end of a build and by the adversaries of the deep release check.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints, sorted_unique
from kbprobe.format.setups import SPLITS
from kbprobe.intervals import Estimate
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


class Bar(NamedTuple):
    """How far from chance an accuracy may be.

    Attributes:
        chance: the reference.
        tolerance: the distance allowed.
        guess: the reference for an accuracy that is high, where some answers are right more often
            than others: the share of the most common one.
        whole_interval: whether the whole interval has to be beyond the tolerance, instead of the
            accuracy itself while the interval excludes the reference. Splits of cloze probes have
            hundreds of rows, so that their intervals are too wide for that.
    """

    chance: float
    tolerance: float = MARGIN
    guess: float | None = None
    whole_interval: bool = False

    def verdict(self, accuracy: Estimate) -> Verdict:
        """Return ``high`` or ``low`` if an accuracy is off chance by more than the tolerance."""
        if accuracy.n < FEWEST_ROWS:
            return FEW_ROWS
        least = accuracy.low if self.whole_interval else accuracy.value
        most = accuracy.high if self.whole_interval else accuracy.value
        guess = self.chance if self.guess is None else self.guess
        if least > guess + self.tolerance and accuracy.low > guess:
            return "high"
        below = most < self.chance - self.tolerance and accuracy.high < self.chance
        return "low" if below else "ok"
