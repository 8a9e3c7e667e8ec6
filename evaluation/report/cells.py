"""Cells of a document's tables: formatted numbers with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evaluation.results import words
from evaluation.results.types import Estimate
from kbprobe.document import Bar, Cell, Number, Question, Table

NONE = Cell("–")
"""The cell of a missing number."""


def cells_of(table: Table) -> list[list[Cell]]:
    """Format what stands in a table, except bars: whole numbers as counts, others as shares."""
    return [[_cell(value) for value in row if not isinstance(value, Bar)] for row in table.rows]


def _cell(value: Cell | str | Number | None) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value)
    return count(value) if isinstance(value, int) else share(value)


def spelt(value: Number | None, spell: Callable[[float], str]) -> Cell:
    """Format a number and its interval."""
    if value is None:
        return NONE
    if isinstance(value, float | int):
        return Cell(spell(value))
    return Cell(spell(value.value), f"{spell(value.low)} to {spell(value.high)}")


share = partial(spelt, spell=words.percent)
"""Formats a share and its interval: ``45.1%``."""

score = partial(spelt, spell=words.score)
"""Formats a share in points and its interval: ``72.3``."""

points = partial(spelt, spell=words.points)
"""Formats a difference in percentage points and its interval: ``+3.1``."""

coefficient = partial(spelt, spell=words.coefficient)
"""Formats a coefficient between -1 and 1 and its interval: ``−0.31``."""


def headline(estimate: Estimate) -> Cell:
    """Format a share for a tile, with the level of its interval: ``95%: 44.0% to 46.2%``."""
    note = f"95%: {words.interval(estimate)}"
    return Cell(words.percent(estimate.value), note, (words.counts(estimate),))


def asked(chance: float, rows: int, clusters: int) -> dict[str, Cell]:
    """Return the tiles on the questions of a probe: chance, and how many there are."""
    return {
        "Chance": Cell(words.percent(chance), "1 / number of choices"),
        "Questions": Cell(f"{rows:,}", f"{clusters:,} clusters"),
    }


def count(value: int | None) -> Cell:
    """Format a count: ``1,250``."""
    return NONE if value is None else Cell(f"{value:,}")


def plain(value: float | None, form: str) -> Cell:
    """Format a number with a format specification, such as ``.1f``."""
    return NONE if value is None else Cell(format(value, form))


def ends(number: Number) -> tuple[float, float, float]:
    """Return the lower end, the value and the upper end of a number."""
    if isinstance(number, float | int):
        return number, number, number
    return number.low, number.value, number.high


def lines_of(question: Question) -> list[str]:
    """Return a question as lines of text: what is asked, each choice, and what it rests on."""
    mark = "✓ right" if question.right else "✗ wrong"
    head = [mark, "tie" if question.tie else "", question.about, question.id]
    lines = [" · ".join(filter(None, head)), question.text]
    for choice in question.choices:
        marks = ["✓ right answer"] * choice.gold + ["▸ model’s choice"] * choice.chosen
        number = f"{choice.label}. {choice.text} ({words.percent(choice.share)}, {choice.score})"
        lines.append(" ".join([number, *marks]))
    if question.hidden:
        lines.append(f"{question.hidden:,} choices with lower scores are not shown.")
    return lines + [f"✓ {line.text} {line.answer} {line.id}" for line in question.evidence]


def in_line(cell: Cell) -> str:
    """Return a cell's text, with its note in parentheses."""
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
