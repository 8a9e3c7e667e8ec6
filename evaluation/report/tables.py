"""Tables of numbers with intervals, as the macro ``numbers`` of ``study.html.j2`` shows them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from evaluation.results.types import Estimate
from evaluation.results.words import interval, percent, points


class Cell(NamedTuple):
    """A number and its interval, shown below it in small type."""

    value: str
    interval: str = ""


Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, list[Cell]]]]
"""The header of a table, and its rows: a name and cells."""

NONE = Cell("–")
"""The cell of a number that there is not."""


def share_cell(estimate: Estimate) -> Cell:
    """Return the cell of a share: ``45.1%``, and its interval."""
    return Cell(percent(estimate.value), interval(estimate))


def points_cell(estimate: Estimate) -> Cell:
    """Return the cell of a difference in percentage points: ``+3.1``, and its interval."""
    return Cell(points(estimate.value), f"{points(estimate.low)} to {points(estimate.high)}")
