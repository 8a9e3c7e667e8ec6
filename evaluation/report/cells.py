"""Cells of a document's tables: formatted numbers with their intervals."""

from __future__ import annotations

from collections.abc import Callable

from evaluation.results import words
from evaluation.results.types import Estimate
from kbprobe.document import Cell, Number, Table, Value

NONE = Cell("–")
"""The cell of a missing number."""


def cells_of(table: Table) -> list[list[Cell]]:
    """Format what stands in a table: whole numbers as counts, others as shares."""
    return [[_cell(value) for value in row] for row in table.rows]


def _cell(value: Value) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value)
    return count(value) if isinstance(value, int) else share(value)


def share(value: Number | None) -> Cell:
    """Format a share and its interval: ``45.1%``."""
    return _spelt(value, words.percent)


def headline(estimate: Estimate) -> Cell:
    """Format a share for a tile, with the level of its interval: ``95%: 44.0% to 46.2%``."""
    return Cell(words.percent(estimate.value), f"95%: {words.interval(estimate)}")


def score(value: Number | None) -> Cell:
    """Format a share in points and its interval: ``72.3``."""
    return _spelt(value, words.score)


def points(value: Number | None) -> Cell:
    """Format a difference in percentage points and its interval: ``+3.1``."""
    return _spelt(value, words.points)


def coefficient(value: Number | None) -> Cell:
    """Format a coefficient between -1 and 1 and its interval: ``−0.31``."""
    return _spelt(value, words.coefficient)


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


def _spelt(value: Number | None, spell: Callable[[float], str]) -> Cell:
    if value is None:
        return NONE
    if isinstance(value, float | int):
        return Cell(spell(value))
    return Cell(spell(value.value), f"{spell(value.low)} to {spell(value.high)}")
