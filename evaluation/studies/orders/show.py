"""The summary as a table on a terminal."""

from __future__ import annotations

from evaluation.results.words import last_name
from evaluation.studies.orders.types import OrdersSummary
from evaluation.studies.orders.words import sentences
from evaluation.studies.variation.words import HEADS, console_cells


def show(summary: OrdersSummary) -> None:
    """Print accuracy over the orders, how often answers change, and accuracy by letter."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent

    rows = [
        (
            f"{one.probe} ({one.split})",
            last_name(one.model),
            f"{len(one.orders)}",
            *console_cells(one.variation),
            f"{100 * one.chance:.1f}",
        )
        for one in summary.models
    ]
    print_rows(("probe", "model", "orders", *HEADS, "chance %"), rows)
    console = wide_console()
    for one in summary.models:
        name = f"{one.probe}, {last_name(one.model)}"
        console.print(f"{name}:", soft_wrap=True)
        for line in (*sentences(one), *one.notes):
            console.print(f"  {line}", soft_wrap=True)
        heads = ("letter", "accuracy where it is right %", "answers %", "by chance %")
        print_rows(
            heads,
            [
                (
                    row.letter,
                    percent(row.accuracy),
                    percent(row.chosen),
                    f"{100 * row.expected:.1f}",
                )
                for row in one.letters
            ],
            names=1,
        )
