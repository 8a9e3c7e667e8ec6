"""The summary as tables on a terminal."""

from __future__ import annotations

from evaluation.studies.baselines.types import BaselinesSummary, Measured, Measurement


def show(summary: BaselinesSummary) -> None:
    """Print the accuracy of each baseline, in percent, and what a reader must know."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent, points

    console = wide_console()
    heads = ("accuracy", "less chance", "trained on", "draws", "seconds")
    for one in summary.probes:
        console.print(headline(one), soft_wrap=True)
        rows = [
            (
                held.name,
                held.reads,
                percent(held.accuracy),
                points(held.over_chance),
                trained_on(held),
                f"{len(held.draws)}",
                f"{held.seconds:,.1f}",
            )
            for held in (*one.baselines, *one.beside)
        ]
        print_rows(("baseline", "reads", *heads), rows)
        for note in one.notes:
            console.print(f"  {note}", soft_wrap=True)


def headline(one: Measurement) -> str:
    """Say what the baselines were run on."""
    config = "" if one.config is None else f", config {one.config}"
    return (
        f"{one.probe}{config} ({one.split}): {one.rows:,} rows of {one.clusters:,} clusters, "
        f"chance {100 * one.chance:.1f}"
    )


def trained_on(held: Measured) -> str:
    """Say how many rows it was trained on."""
    return "-" if held.train_rows is None else f"{held.train_rows:,}"
