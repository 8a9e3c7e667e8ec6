"""The summary as a table on a terminal: as Table 2 of [F]."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.studies.crossval.types import CrossvalSummary
from evaluation.studies.crossval.words import row_name


def show(summary: CrossvalSummary) -> None:
    """Print the accuracy of each model and baseline on each probe."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent

    console = wide_console()
    rows: list[tuple[str, ...]] = []
    for one in summary.probes:
        for row in one.results:
            rows.append(
                (
                    one.probe,
                    row_name(row),
                    percent(row.accuracy),
                    f"{100 * row.fold_mean:.1f}",
                    f"{100 * row.fold_sd:.1f}",
                    "" if row.repetition_sd is None else f"{100 * row.repetition_sd:.1f}",
                )
            )
        if isinstance(one.human, Estimate):
            rows.append((one.probe, "people", percent(one.human), "", "", ""))
    heads = ("accuracy %", "mean of folds", "sd of folds", "sd of repetitions")
    print_rows(("probe", "model", *heads), rows)
    for one in summary.probes:
        console.print(
            f"  {one.probe} ({one.split}): {one.rows:,} rows in {len(one.folds)} folds, fitted on "
            f"{one.train:,} of the others; chance {100 * one.chance:.1f}",
            soft_wrap=True,
        )
        for note in one.notes:
            console.print(f"  {one.probe}: {note}", soft_wrap=True)
