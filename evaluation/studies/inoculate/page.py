"""The page of the study, ``inoculate.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.report.breakdowns import heat_map
from evaluation.report.matrices import SHARES, Matrix, Scale, make_matrix, points_scale
from evaluation.report.tables import NONE, Cell, Table, points_cell, share_cell
from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from evaluation.results.words import last_name, percent, points
from evaluation.studies.inoculate.figures import inoculation_figure
from evaluation.studies.inoculate.types import Inoculated, InoculateSummary, ModelInoculation
from evaluation.studies.inoculate.words import sentences
from kbprobe.errors import require


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
        links=_links(summary),
        transfers=[_transfer(one) for one in summary.models if one.transfer],
    )


def _links(summary: InoculateSummary) -> list[tuple[str, str]]:
    """Return the page's sections; none where there is one."""
    links = [
        (f"m{number}p{at}", f"{last_name(one.model)} on {probe.probe}")
        for number, one in enumerate(summary.models)
        for at, probe in enumerate(one.probes)
    ]
    if any(one.transfer for one in summary.models):
        links.append(("transfer", "Transfer"))
    return [*links, ("reading", "How to read it")] if len(links) > 1 else []


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
        "heat": _heat_maps(probe),
    }


def _accuracies(one: ModelInoculation, probe: Inoculated) -> Table:
    """Return the table of accuracies and costs by size: Table 7 of [W]."""
    head = ("rows (rate, epochs)", "validation", "test", "gain", "original task", "cost")
    before = [
        share_cell(probe.before),
        share_cell(probe.test_before),
        NONE,
        share_cell(one.original_before),
        NONE,
    ]
    rows = [("0", before)]
    rows += [
        (
            f"{point.size:,} ({point.learning_rate:g}, {point.epochs})",
            [
                share_cell(point.probe),
                share_cell(point.test),
                points_cell(point.gain),
                share_cell(point.original),
                points_cell(point.cost),
            ],
        )
        for point in probe.points
    ]
    return head, rows


def _strict(probe: Inoculated) -> Table | None:
    """Return the table of strict cluster accuracies: Table 8 of [W]."""
    head = ("rows", "accuracy", "strict accuracy", "difference")
    before = (0, probe.test_before, probe.strict_before, probe.strict_difference_before)
    after = [(p.size, p.test, p.strict, p.strict_difference) for p in probe.points]
    rows = [
        (f"{size:,}", [share_cell(test), share_cell(strict), Cell(points(difference))])
        for size, test, strict, difference in (before, *after)
        if strict is not None and difference is not None
    ]
    return (head, rows) if rows else None


def _tried(probe: Inoculated) -> Table:
    rows = [
        (
            f"{point.size:,} rows, rate {one.learning_rate:g}, {one.epochs} epochs",
            [
                Cell(percent(share))
                for share in (one.probe, one.original, (one.probe + one.original) / 2)
            ],
        )
        for point in probe.points
        for one in point.tried
    ]
    return ("setting", "probe", "original task", "mean"), rows


def _heat_maps(probe: Inoculated) -> list[Matrix]:
    """Return test accuracy by hops and distractors, before and after: Figure 3 of [W]."""
    layout = probe.table_before
    before, after = (heat_map(table, layout) for table in (layout, probe.table_after))
    if before is None or after is None:
        return []
    families = [family for family, width in before.families for _ in range(width)]
    columns = [
        f"{family}, k′ {distance}" if distance not in ("0", "not given") else family
        for family, distance in zip(families, before.distances, strict=True)
    ]
    rows = [row.hops for row in before.rows]
    corner, trained = "hops k / wrong choices", f"after training on {probe.best:,} rows"

    def matrix(caption: str, cells: list[list[Estimate | float | None]], scale: Scale) -> Matrix:
        return make_matrix(caption, corner, rows, columns, cells, scale)

    shares: list[list[list[Estimate | float | None]]] = [
        [[None if cell is None else cell.accuracy for cell in row.cells] for row in found.rows]
        for found in (before, after)
    ]
    change: list[list[Estimate | float | None]] = [
        [
            None
            if one is None or other is None
            else 100 * (other.accuracy.value - one.accuracy.value)
            for one, other in zip(row.cells, trained_row.cells, strict=True)
        ]
        for row, trained_row in zip(before.rows, after.rows, strict=True)
    ]
    reach = [value for row in change for value in row if isinstance(value, float)]
    return [
        matrix("Test accuracy before training", shares[0], SHARES),
        matrix(f"Test accuracy {trained}", shares[1], SHARES),
        matrix(f"Change {trained}, in points", change, points_scale(reach)),
    ]


def _transfer(one: ModelInoculation) -> Matrix:
    names = list(dict.fromkeys(cell.trained_on for cell in one.transfer))
    cells = {(cell.trained_on, cell.tested_on): cell.gain for cell in one.transfer}
    gains = [[cells[trained, tested] for tested in names] for trained in names]
    return make_matrix(
        f"{last_name(one.model)}: test accuracy minus that of the model before training, in "
        "points, after training with the best size and setting",
        "trained on / tested on",
        names,
        names,
        gains,
        points_scale([gain.value for row in gains for gain in row]),
        marked=lambda row, column: row == column,
    )
