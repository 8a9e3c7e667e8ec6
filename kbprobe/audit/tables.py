"""The table of accuracies that a build, its card and the deep check print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbprobe.audit.verdicts import FEW_ROWS
from kbprobe.intervals import Estimate
from kbprobe.tables import in_markdown

if TYPE_CHECKING:
    from rich.table import Table

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
    """A table of accuracies.

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
