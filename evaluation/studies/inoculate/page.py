"""The page of the study, ``inoculate.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from evaluation.results.words import interval, last_name, percent, points
from evaluation.studies.inoculate.figures import inoculation_figure
from evaluation.studies.inoculate.types import Inoculated, InoculateSummary, ModelInoculation
from evaluation.studies.inoculate.words import sentences
from kbprobe.errors import require

Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The header of a table, and its rows."""


def render(summary: InoculateSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of inoculation")
    template = environment(Path(__file__).parent).get_template("inoculate.html.j2")
    return template.render(
        title=_title(summary),
        sections=[
            _section(one, probe, f"m{number}p{at}")
            for number, one in enumerate(summary.models)
            for at, probe in enumerate(one.probes)
        ],
        transfers=[
            (last_name(one.model), _transfer(one)) for one in summary.models if one.transfer
        ],
    )


def _title(summary: InoculateSummary) -> str:
    probes = list(dict.fromkeys(probe.probe for one in summary.models for probe in one.probes))
    models = [last_name(one.model) for one in summary.models]
    what = models[0] if len(models) == 1 else f"{len(models)} models"
    return f"{what} on {probes[0] if len(probes) == 1 else f'{len(probes)} probes'}"


def _section(one: ModelInoculation, probe: Inoculated, name: str) -> dict[str, Any]:
    """Return what the section of a model and a probe shows."""
    return {
        "id": name,
        "name": last_name(one.model),
        "original": last_name(one.original),
        "probe": probe,
        "figure": inoculation_figure(one, probe, name),
        "sentences": sentences(one, probe),
        "notes": one.notes,
        "accuracies": _accuracies(one, probe),
        "strict": _strict(probe),
        "tried": _tried(probe),
    }


def _share(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} ({interval(estimate)})"


def _points(estimate: Estimate) -> str:
    return f"{points(estimate.value)} ({points(estimate.low)} to {points(estimate.high)})"


def _accuracies(one: ModelInoculation, probe: Inoculated) -> Table:
    """Return the table of accuracies and costs by size: Table 7 of [W]."""
    head = ("rows", "rate", "epochs", "validation", "test", "gain", "original task", "cost")
    untrained = (_share(probe.before), _share(probe.test_before), "–", _share(one.original_before))
    rows: list[tuple[str, ...]] = [("0", "–", "–", *untrained, "–")]
    rows += [
        (
            f"{point.size:,}",
            f"{point.learning_rate:g}",
            f"{point.epochs}",
            _share(point.probe),
            _share(point.test),
            _points(point.gain),
            _share(point.original),
            _points(point.cost),
        )
        for point in probe.points
    ]
    return head, rows


def _strict(probe: Inoculated) -> Table | None:
    """Return the table of strict cluster accuracies: Table 8 of [W]."""
    head = ("rows", "accuracy", "strict accuracy", "difference")
    before = (0, probe.test_before, probe.strict_before, probe.strict_difference_before)
    after = [(p.size, p.test, p.strict, p.strict_difference) for p in probe.points]
    rows: list[tuple[str, ...]] = [
        (f"{size:,}", percent(test.value), _share(strict), points(difference))
        for size, test, strict, difference in (before, *after)
        if strict is not None and difference is not None
    ]
    return (head, rows) if rows else None


def _tried(probe: Inoculated) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            f"{point.size:,} rows, rate {one.learning_rate:g}, {one.epochs} epochs",
            percent(one.probe),
            percent(one.original),
            percent((one.probe + one.original) / 2),
        )
        for point in probe.points
        for one in point.tried
    ]
    return ("setting", "probe", "original task", "mean"), rows


def _transfer(one: ModelInoculation) -> Table:
    names = list(dict.fromkeys(cell.trained_on for cell in one.transfer))
    cells = {(cell.trained_on, cell.tested_on): cell for cell in one.transfer}
    rows: list[tuple[str, ...]] = [
        (
            trained,
            *(
                f"{percent(cell.accuracy.value)} ({points(cell.gain.value)})"
                for cell in (cells[trained, tested] for tested in names)
            ),
        )
        for trained in names
    ]
    return ("trained on", *names), rows
