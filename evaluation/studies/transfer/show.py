"""The summary as tables on a terminal."""

from __future__ import annotations

from evaluation.studies.transfer.types import ModelTransfer, TransferSummary
from evaluation.studies.transfer.words import LESS, model_name, sentences


def show(summary: TransferSummary) -> None:
    """Print accuracies and differences of each model, the probe trained on down."""
    from evaluation.results.console import print_rows, wide_console

    console = wide_console()
    for one in summary.models:
        names = [tested.probe for tested in one.probes]
        console.print(
            f"\n{model_name(one)}: {one.train:,} rows, {one.seeds} seed(s); accuracy in percent "
            f"with 95% intervals, and below it the difference from {LESS[one.less]} in points"
        )
        print_rows(("trained on / tested on", *names), _rows(one), names=1)
        for line in (*sentences(one), *one.notes):
            console.print(f"  {line}", soft_wrap=True)


def _rows(one: ModelTransfer) -> list[tuple[str, ...]]:
    from evaluation.results.summary import percent, points

    names = [tested.probe for tested in one.probes]
    references = tuple(
        f"{100 * tested.chance:.1f}" if tested.reference is None else percent(tested.reference)
        for tested in one.probes
    )
    rows = [("chance" if one.less == "chance" else "none", *references)]
    for trained in names:
        cells = [one.cell(trained, tested) for tested in names]
        rows.append((trained, *(f"{percent(c.accuracy)}\n{points(c.difference)}" for c in cells)))
    return rows
