"""Shortcuts, how often they are right, and whether that is off chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.rows import Rows
from kbprobe.intervals import Estimate, mean_credit

MARGIN = 0.05
"""How far from chance the accuracy of a baseline may be."""

ALL = "all"
"""The name of the rows of all families."""

FEWEST_ROWS = 100
"""Minimum number of rows for a verdict."""

FEW_ROWS: Literal["few rows"] = "few rows"
"""The value given instead of a verdict if there are fewer rows."""

Verdict = Literal["high", "low", "ok", "few rows", "reported"]
"""``reported``: not judged."""


class Shortcut(NamedTuple):
    """A shortcut's scores of every choice of the scored rows, (scored rows, K); the best wins.

    Attributes:
        name, scores: the shortcut's name and scores.
        picks: description of what it picks.
        tolerance: how far above chance it may be.
        trained: whether it was fitted on train, and needs enough rows there for a verdict.
        judged: whether it must not be off chance; otherwise it is only reported.
    """

    name: str
    scores: Floats
    picks: str = ""
    tolerance: float = MARGIN
    trained: bool = False
    judged: bool = True


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
        low: whether an accuracy below chance counts as well.
    """

    chance: float
    tolerance: float = MARGIN
    guess: float | None = None
    whole_interval: bool = False
    low: bool = True

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
        return "low" if below and self.low else "ok"


class Judged(NamedTuple):
    """How often a shortcut is right on the rows of a family, or on all of them.

    Attributes:
        family: the family's name; `ALL` for all rows.
        accuracy: the estimate.
        bar: what it was compared with.
        verdict: the result.
    """

    family: str
    accuracy: Estimate
    bar: Bar
    verdict: Verdict

    def as_dict(self) -> dict[str, Any]:
        """Return accuracy and verdict in a form that JSON can represent."""
        return {
            "accuracy": self.accuracy.value,
            "low": self.accuracy.low,
            "high": self.accuracy.high,
            "rows": self.accuracy.n,
            "verdict": self.verdict,
        }


def judge(
    rows: Rows, shortcut: Shortcut, bar: Bar | Callable[[Ints], Bar], tests: int = 1
) -> Iterator[Judged]:
    """Compare a shortcut with chance: on all scored rows, then on those of each family.

    Args:
        rows: the rows.
        shortcut: its scores.
        bar: the bar, or a function that returns it for some rows.
        tests: how many comparisons by family are made in all. The intervals of families hold
            simultaneously, since a few of many would be off chance by luck.
    """
    scored = rows.scored
    scores = np.where(rows.shown[scored], shortcut.scores, -np.inf)
    credit = credit_of(scores, rows.answer[scored])
    family = rows.family[scored]
    every = np.ones(scored.size, dtype=np.bool_)

    def judged(name: str, some: Bools, tests: int) -> Judged:
        accuracy = mean_credit(credit[some], rows.cluster[scored][some], tests)
        own = bar if isinstance(bar, Bar) else bar(scored[some])
        verdict = own.verdict(accuracy)
        if not shortcut.judged:
            verdict = "reported"
        elif shortcut.trained and rows.train.size < FEWEST_ROWS:
            verdict = FEW_ROWS
        return Judged(name, accuracy, own, verdict)

    yield judged(ALL, every, 1)
    for code in np.unique(family):
        yield judged(rows.family_names[int(code)], family == code, tests)


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
