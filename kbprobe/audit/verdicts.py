"""Shortcuts, how often they are right, whether that is off chance, and the table that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.rows import Rows
from kbprobe.intervals import Estimate, mean_credit
from kbprobe.tables import in_markdown

if TYPE_CHECKING:
    from rich.table import Table

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


COLUMNS = ("accuracy", "from", "to", "off chance")
STYLES = {"high": "red", "low": "red", FEW_ROWS: "dim", "reported": "dim"}


class Line(NamedTuple):
    """An accuracy, what it is of, and how it compares with chance.

    Attributes:
        names: the first cells.
        accuracy, chance: the numbers.
        verdict: colours the line in a terminal.
        more: the last cells.
    """

    names: Sequence[str]
    accuracy: Estimate
    chance: float
    verdict: str = ""
    more: Sequence[str] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`: in per cent, the last one in percentage points."""
        shares = (self.accuracy.value, self.accuracy.low, self.accuracy.high)
        off = f"{100 * (self.accuracy.value - self.chance):+.1f}"
        return *(f"{share:.1%}" for share in shares), off


class AuditTable(NamedTuple):
    """The table of accuracies that a build, its card and the deep check print.

    Attributes:
        names: heads of the first columns.
        lines: its lines.
        more: heads of the last columns.
    """

    names: Sequence[str]
    lines: Sequence[Line]
    more: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the table for a card."""
        head = f"| {' | '.join([*self.names, *COLUMNS, *self.more])} |"
        rules = ["---"] * len(self.names) + ["---:"] * len(COLUMNS) + ["---"] * len(self.more)
        lines = [
            [*map(in_markdown, line.names), *line.numbers, *map(in_markdown, line.more)]
            for line in self.lines
        ]
        rows = (f"| {' | '.join(line)} |" for line in lines)
        return "\n".join([head, f"|{'|'.join(rules)}|", *rows])

    def terminal(self, title: str) -> Table:
        """Return the table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, title_justify="left", title_style="bold", box=None)
        for name in self.names:
            table.add_column(name)
        for name in COLUMNS:
            table.add_column(name, justify="right")
        for name in self.more:
            table.add_column(name)
        for line in self.lines:
            style = STYLES.get(line.verdict, "")
            numbers = (Text(number, style) for number in line.numbers)
            table.add_row(*map(Text, line.names), *numbers, *map(Text, line.more))
        return table
