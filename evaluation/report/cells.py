"""Cells of a document's tables: numbers as they are spelt, with their intervals."""

from __future__ import annotations

from collections.abc import Callable

from evaluation.results import words
from evaluation.results.types import Estimate
from kbprobe.document import Cell

NONE = Cell("–")
"""The cell of a number that there is not."""


def share(value: Estimate | float | None) -> Cell:
    """Spell a share: ``45.1%``, and its interval."""
    return _spelt(value, words.percent)


def headline(estimate: Estimate) -> Cell:
    """Spell a share on a tile, where it is said what the interval is: ``95%: 44.0% to 46.2%``."""
    return Cell(words.percent(estimate.value), f"95%: {words.interval(estimate)}")


def points(value: Estimate | float | None) -> Cell:
    """Spell a difference in percentage points: ``+3.1``, and its interval."""
    return _spelt(value, words.points)


def coefficient(value: Estimate | float | None) -> Cell:
    """Spell a coefficient between -1 and 1: ``−0.31``, and its interval."""
    return _spelt(value, words.coefficient)


def count(value: int | None) -> Cell:
    """Spell a number of things: ``1,250``."""
    return NONE if value is None else Cell(f"{value:,}")


def plain(value: float | None, form: str) -> Cell:
    """Spell a number in a form, such as ``.1f``."""
    return NONE if value is None else Cell(format(value, form))


def _spelt(value: Estimate | float | None, spell: Callable[[float], str]) -> Cell:
    if value is None:
        return NONE
    if isinstance(value, Estimate):
        return Cell(spell(value.value), f"{spell(value.low)} to {spell(value.high)}")
    return Cell(spell(value))
