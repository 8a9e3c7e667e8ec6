"""Heat maps of documents: how their numbers are shaded and formatted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from evaluation.report.cells import spelt
from evaluation.report.figures import shade
from evaluation.results.intervals import above_chance
from evaluation.results.words import coefficient, percent, points
from kbprobe.document import Cell, HeatMap, Number, Row, Table


class Shading(NamedTuple):
    """How numbers are shaded and formatted.

    Attributes:
        low, high: the numbers at the ends of the palette; numbers beyond get the same colours.
        spell: formats a number.
        palette: ``s`` from faint to strong, ``d`` from one colour to another, neutral in the
            middle: the classes of its shades are this letter and a number.
        ends: what the ends of the palette mean, if not these numbers.
        level: the number that is marked on the scale, if any.
    """

    low: float
    high: float
    spell: Callable[[float], str]
    palette: Literal["s", "d"]
    ends: tuple[str, str] | None = None
    level: float | None = None

    @property
    def names(self) -> tuple[str, str]:
        """What the ends of the palette mean."""
        return self.ends or (self.spell(self.low), self.spell(self.high))

    def along(self, value: float) -> float:
        """Return where a number is between the two ends: from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def shade(self, value: float) -> str:
        """Return the class of a cell with this number."""
        return f"{self.palette}{shade(self.along(value))}"


SHARES = Shading(0.0, 1.0, percent, "s")
"""Shares, such as accuracies, from 0 to 100%."""

INDEX = Shading(-1.0, 1.0, coefficient, "d")
"""Coefficients from -1 to 1."""

ABOVE_CHANCE = Shading(-1.0, 1.0, percent, "d", ("below chance", "all right"), 0.0)
"""Accuracies, by what they are above chance: the middle is chance, whatever it is."""


def points_scale(values: Sequence[float]) -> Shading:
    """Return a scale of differences in percentage points, with 0 in its middle.

    It covers the largest of the values in both directions, and at least 10 points, so that noise
    around 0 stays pale.
    """
    reach = max([10.0, *map(abs, values)])
    return Shading(-reach, reach, points, "d")


class Matrix(NamedTuple):
    """A heat map with its shading, and each row's cells with their classes, None where empty."""

    map: HeatMap
    scale: Shading
    rows: list[tuple[str, list[tuple[Cell, str] | None]]]


def scale_of(heat: HeatMap) -> Shading:
    """Return the shading of a heat map's numbers."""
    if heat.scale == "points":
        held = [number for row in heat.cells for number in row if number is not None]
        return points_scale([_value(number) for number in held])
    if heat.scale == "share":
        return ABOVE_CHANCE if heat.chance else SHARES
    return INDEX


def coloured_by(heat: HeatMap, column: int, number: Number) -> float:
    """Return the number that decides the colour of a cell: what an accuracy is above chance."""
    value = _value(number)
    return above_chance(value, heat.chance[column]) if scale_of(heat) is ABOVE_CHANCE else value


def arrange(heat: HeatMap) -> Matrix:
    """Format and shade the numbers of a heat map."""
    scale = scale_of(heat)

    def arranged(row: int, column: int, number: Number) -> tuple[Cell, str]:
        place = (row, column)
        value = coloured_by(heat, column, number)
        shade = "few" if place in heat.faint else scale.shade(value)
        marked = " marked" if place in heat.marked else ""
        cell = spelt(number, scale.spell)._replace(lines=heat.lines.get(place, ()))
        return cell, f"{shade}{marked}"

    rows = [
        (
            name,
            [
                None if number is None else arranged(row, column, number)
                for column, number in enumerate(numbers)
            ],
        )
        for row, (name, numbers) in enumerate(zip(heat.rows, heat.cells, strict=True))
    ]
    return Matrix(heat, scale, rows)


def as_table(heat: HeatMap) -> Table:
    """Return the numbers of a heat map as a table, for readers who see no colours."""
    rows: list[Row] = [
        [name, *(Cell("") if cell is None else cell[0] for cell in cells)]
        for name, cells in arrange(heat).rows
    ]
    return Table((heat.corner, *heat.column_names), rows, heat.caption)


def _value(number: Number) -> float:
    return number if isinstance(number, float | int) else number.value
