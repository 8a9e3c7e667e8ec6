"""The summary as tables on a terminal: as Tables 7 and 8 of [W]."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.results.words import last_name
from evaluation.studies.inoculate.types import InoculateSummary, ModelInoculation


def show(summary: InoculateSummary) -> None:
    """Print accuracies and costs by number of rows, strict accuracies, and transfer."""
    from evaluation.results.console import print_rows, wide_console

    console = wide_console()
    heads = ("rows", "rate", "epochs", "validation %", "test %", "gain", "original %", "cost")
    rows = [row for one in summary.models for row in _accuracies(one)]
    print_rows(("probe", "model", *heads), rows)
    strict = [row for one in summary.models for row in _strict(one)]
    if strict:
        tests = ("test before", "strict before", "difference", "test", "strict", "difference")
        print_rows(("probe", "model", "rows", *tests), strict)
    transfer = [row for one in summary.models for row in _transfer(one)]
    if transfer:
        print_rows(("trained on", "model", "tested on", "test %", "gain"), transfer, names=3)
    for one in summary.models:
        for line in one.notes:
            console.print(f"  {last_name(one.model)}: {line}", soft_wrap=True)


def _accuracies(one: ModelInoculation) -> list[tuple[str, ...]]:
    from evaluation.results.summary import percent, points

    rows: list[tuple[str, ...]] = []
    for probe in one.probes:
        name = (probe.probe, last_name(one.model))
        before = (percent(probe.before), percent(probe.test_before), "")
        rows.append((*name, "0", "", "", *before, percent(one.original_before), ""))
        for point in probe.points:
            best = "*" if point.size == probe.best and len(probe.points) > 1 else ""
            rows.append(
                (
                    *name,
                    f"{best}{point.size:,}",
                    f"{point.learning_rate:g}",
                    f"{point.epochs}",
                    percent(point.probe),
                    percent(point.test),
                    points(point.gain),
                    percent(point.original),
                    points(point.cost),
                )
            )
    return rows


def _strict(one: ModelInoculation) -> list[tuple[str, ...]]:
    from evaluation.results.summary import percent

    def difference(value: float | None) -> str:
        return "-" if value is None else f"{value:+.1f}"

    return [
        (
            probe.probe,
            last_name(one.model),
            f"{probe.best:,}",
            _share(probe.test_before),
            percent(probe.strict_before),
            difference(probe.strict_difference_before),
            _share(probe.at_best.test),
            percent(probe.at_best.strict),
            difference(probe.at_best.strict_difference),
        )
        for probe in one.probes
        if probe.strict_before is not None
    ]


def _transfer(one: ModelInoculation) -> list[tuple[str, ...]]:
    from evaluation.results.summary import percent, points

    return [
        (
            cell.trained_on,
            last_name(one.model),
            cell.tested_on,
            percent(cell.accuracy),
            points(cell.gain),
        )
        for cell in one.transfer
    ]


def _share(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f}"
