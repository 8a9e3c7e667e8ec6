"""How answers vary, in words and cells: what pages and tables of such studies share."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.report.tables import Cell, Table, share_cell
from evaluation.results.types import NOTES
from evaluation.results.words import interval, percent
from evaluation.studies.base import Finished
from evaluation.studies.variation.types import Variant, Variation

HEADS = ("mean accuracy %", "sd", "lowest", "highest", "flipped %", "consistency %")
"""Heads of :func:`console_cells`."""


def console_cells(variation: Variation) -> tuple[str, ...]:
    """Return a row of the table on a terminal, in percent."""
    # Imported where something is printed: it brings rich.
    from evaluation.results.summary import percent as with_interval

    return (
        with_interval(variation.accuracy),
        f"{100 * variation.deviation:.1f}",
        f"{100 * variation.lowest:.1f}",
        f"{100 * variation.highest:.1f}",
        with_interval(variation.flipped),
        with_interval(variation.consistency),
    )


def spread_table(rows: Sequence[tuple[str, Variation]]) -> Table:
    """Return the table of how accuracy and answers vary, a row for each model."""
    heads = (
        *("model", "mean accuracy", "sd", "lowest", "highest", "right in all", "right in any"),
        *("flipped", "consistency"),
    )
    return heads, [
        (
            name,
            [
                share_cell(one.accuracy),
                Cell(percent(one.deviation)),
                Cell(percent(one.lowest)),
                Cell(percent(one.highest)),
                share_cell(one.always),
                share_cell(one.ever),
                share_cell(one.flipped),
                share_cell(one.consistency),
            ],
        )
        for name, one in rows
    ]


def variants_table(what: str, variants: Sequence[Variant]) -> Table:
    """Return the table of all runs; ``what`` says what distinguishes them."""
    return (what, "accuracy", "rows scored", "set aside"), [
        (
            one.label,
            [share_cell(one.accuracy), Cell(f"{one.scored:,}"), Cell(f"{one.set_aside:,}")],
        )
        for one in variants
    ]


def spread_sentences(one: Variation, over: str, each: str) -> list[str]:
    """Say how accuracy and answers vary.

    Args:
        one: the numbers.
        over: what the runs are, such as ``6 orders``.
        each: one of them, such as ``order``.
    """
    return [
        f"Mean accuracy over {over}: {percent(one.accuracy.value)} ({interval(one.accuracy)}), "
        f"from {percent(one.lowest)} to {percent(one.highest)}, with a standard deviation of "
        f"{100 * one.deviation:.1f} points.",
        f"The answer to {percent(one.flipped.value)} of the questions ({interval(one.flipped)}) "
        f"is not the same with every {each}; on average, two {each}s give the same answer to "
        f"{percent(one.consistency.value)} of the questions.",
        f"Right with every {each}: {percent(one.always.value)}; with at least one: "
        f"{percent(one.ever.value)}.",
    ]


def left_out(one: Variation, each: str) -> list[str]:
    """Say which rows the numbers are not of."""
    found = []
    if one.set_aside:
        found.append(f"{one.set_aside:,} of {one.rows:,} rows are set aside with every {each}.")
    if one.partly:
        found.append(
            f"{one.partly:,} of {one.rows:,} rows are set aside with some {each}s only: means, "
            f"spread and agreement are of the {one.scored:,} rows scored with every {each}, the "
            f"accuracy of each {each} is of all that it scored."
        )
    return found


def notes_of(runs: Sequence[Finished], each: str) -> list[str]:
    """Return the notes of all runs in words; where counts differ, the greatest."""
    notes = [run.evaluation.results.scoring.notes for run in runs]
    found = []
    for name in sorted({name for held in notes for name in held}):
        counts = {held.get(name, 0) for held in notes}
        most = "" if len(counts) == 1 else f" (with the {each} that has the most)"
        found.append(f"{max(counts):,} {NOTES.get(name, name)}{most}.")
    return found
