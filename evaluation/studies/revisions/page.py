"""The page of the study, ``revisions.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.report.tables import NONE, Cell, Table, points_cell, share_cell
from evaluation.report.templates import environment
from evaluation.results.words import percent
from evaluation.studies.revisions.figures import revisions_figure
from evaluation.studies.revisions.types import Change, ModelRevisions, RevisionsSummary
from evaluation.studies.revisions.words import remarks, revision_name, sentences, title
from kbprobe.errors import require


def render(summary: RevisionsSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of revisions")
    names = [title(one) for one in summary.models]
    links = [(f"m{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("revisions.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} series of revisions",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        models=[_section(one, f"m{number}") for number, one in enumerate(summary.models)],
    )


def _section(one: ModelRevisions, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": title(one),
        "one": one,
        "last": one.points[-1],
        "figure": revisions_figure(one, name),
        "found": sentences(one),
        "remarks": remarks(one),
        "accuracies": _accuracies(one),
        "changes": _changes(one),
    }


def _accuracies(one: ModelRevisions) -> Table:
    rows = [
        (
            revision_name(point),
            [
                share_cell(point.accuracy),
                _points(point.since_previous),
                _points(point.since_first),
                _points(point.until_last),
            ],
        )
        for point in one.points
    ]
    return ("revision", "accuracy", "since previous", "since first", "until last"), rows


def _changes(one: ModelRevisions) -> Table:
    rows = [
        (
            revision_name(point),
            [
                _share(point.since_previous, "became_right"),
                _share(point.since_previous, "became_wrong"),
                Cell(f"{point.learnt_for_good:,}"),
                Cell(f"{point.forgotten_for_good:,}"),
            ],
        )
        for point in one.points
    ]
    heads = ("became right", "became wrong", "learnt for good", "forgotten for good")
    return ("revision", *heads), rows


def _points(change: Change | None) -> Cell:
    return NONE if change is None else points_cell(change.difference)


def _share(change: Change | None, name: str) -> Cell:
    return NONE if change is None else Cell(percent(getattr(change, name)))
