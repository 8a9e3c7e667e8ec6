"""The page of the study, ``baselines.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.report.tables import Cell, Table, points_cell, share_cell
from evaluation.report.templates import environment
from evaluation.results.words import clip
from evaluation.studies.baselines.figures import accuracy_figure
from evaluation.studies.baselines.show import trained_on
from evaluation.studies.baselines.types import BaselinesSummary, Measurement
from kbprobe.errors import require


def render(summary: BaselinesSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of baselines")
    names = list(dict.fromkeys(one.probe for one in summary.probes))
    sections = [_section(one, number) for number, one in enumerate(summary.probes)]
    links = [(one["id"], clip(one["one"].probe, 60)) for one in sections]
    template = environment(Path(__file__).parent).get_template("baselines.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        probes=sections,
    )


def _section(one: Measurement, number: int) -> dict[str, Any]:
    """Return what the section of a probe shows."""
    return {
        "id": f"p{number}",
        "one": one,
        "best": max(one.baselines, key=lambda held: held.accuracy.value),
        "figure": accuracy_figure(one, f"p{number}"),
        "table": _table(one),
    }


def _table(one: Measurement) -> Table:
    """Return the header and rows of the table of accuracies."""
    rows = [
        (
            f"{held.name}: {held.reads}",
            [
                share_cell(held.accuracy),
                points_cell(held.over_chance),
                Cell(trained_on(held)),
                Cell(f"{len(held.draws)}"),
            ],
        )
        for held in (*one.baselines, *one.beside)
    ]
    head = ("baseline, and what it reads", "accuracy", "less chance (points)", "trained on")
    return (*head, "draws"), rows
