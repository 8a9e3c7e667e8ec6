"""Heat maps of documents: how their numbers are shaded and formatted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from evaluation.report.figures import SHADES, shade
from evaluation.results.words import coefficient, percent, points
from kbprobe.document import Cell, HeatMap, Number, Row, Table


class Shading(NamedTuple):
    """How numbers are shaded and formatted.

    Attributes:
        low, high: the numbers at the ends of the palette; numbers beyond get the same colours.
        spell: formats a number.
        diverging: whether the palette goes from one colour to another, neutral in the middle.
    """

    low: float
    high: float
    spell: Callable[[float], str]
    diverging: bool = False

    def shade(self, value: float) -> str:
        """Return the class of a cell with this number."""
        step = shade((value - self.low) / (self.high - self.low))
        return f"{'d' if self.diverging else 's'}{step}"

    @property
    def ramp(self) -> list[str]:
        """The classes of the palette, from low to high."""
        return [f"{'d' if self.diverging else 's'}{step}" for step in range(SHADES + 1)]

    @property
    def ends(self) -> tuple[str, str]:
        """The numbers at the ends, formatted."""
        return self.spell(self.low), self.spell(self.high)


SHARES = Shading(0.0, 1.0, percent)
"""Shares, such as accuracies, from 0 to 100%."""

INDEX = Shading(-1.0, 1.0, coefficient, diverging=True)
"""Coefficients from -1 to 1."""


def points_scale(values: Sequence[float], least: float = 10.0) -> Shading:
    """Return a scale of differences in percentage points, with 0 in its middle.

    It covers the largest of the values in both directions, and at least ``least`` points, so that
    noise around 0 stays pale.
    """
    reach = max([least, *map(abs, values)])
    return Shading(-reach, reach, points, diverging=True)


class MatrixCell(NamedTuple):
    """A cell: its formatted number and interval, its shade, and whether it is outlined."""

    value: str
    interval: str
    shade: str
    marked: bool


class Matrix(NamedTuple):
    """A heat map; cells without a number are None."""

    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: list[tuple[str, list[MatrixCell | None]]]
    scale: Shading


def scale_of(heat: HeatMap) -> Shading:
    """Return the shading of a heat map's numbers."""
    if heat.scale == "points":
        held = [number for row in heat.cells for number in row if number is not None]
        return points_scale([_value(number) for number in held])
    return SHARES if heat.scale == "share" else INDEX


def arrange(heat: HeatMap) -> Matrix:
    """Format and shade the numbers of a heat map."""
    scale = scale_of(heat)
    rows = [
        (
            name,
            [
                None
                if number is None
                else MatrixCell(
                    scale.spell(_value(number)),
                    _interval(number, scale),
                    scale.shade(_value(number)),
                    (at, column) in heat.marked,
                )
                for column, number in enumerate(numbers)
            ],
        )
        for at, (name, numbers) in enumerate(zip(heat.rows, heat.cells, strict=True))
    ]
    return Matrix(heat.caption, heat.corner, tuple(heat.columns), rows, scale)


def as_table(heat: HeatMap) -> Table:
    """Return the numbers of a heat map as a table, for readers who see no colours."""
    rows: list[Row] = [
        [name, *(Cell("") if c is None else Cell(c.value, c.interval) for c in cells)]
        for name, cells in arrange(heat).rows
    ]
    return Table((heat.corner, *heat.columns), rows, heat.caption)


def _value(number: Number) -> float:
    return number if isinstance(number, float | int) else number.value


def _interval(number: Number, scale: Shading) -> str:
    if isinstance(number, float | int):
        return ""
    return f"{scale.spell(number.low)} to {scale.spell(number.high)}"
