"""The page of the study, ``crossval.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.report.tables import NONE, Cell, Table, share_cell
from evaluation.report.templates import environment
from evaluation.results.analyses.vocabulary import CAPTION, HEAD, table_of
from evaluation.results.words import percent
from evaluation.studies.crossval.figures import accuracy_figure
from evaluation.studies.crossval.types import CrossvalSummary, ProbeCrossval
from evaluation.studies.crossval.words import row_name
from kbprobe.errors import require


def render(summary: CrossvalSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of cross-validation")
    names = [one.probe for one in summary.probes]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("crossval.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        vocabulary=CAPTION,
        probes=[_section(one, f"p{number}") for number, one in enumerate(summary.probes)],
    )


def _section(one: ProbeCrossval, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "one": one,
        "figure": accuracy_figure(one, name),
        "accuracies": _accuracies(one),
        "folds": _folds(one),
        "vocabulary": _vocabulary(one),
    }


def _accuracies(one: ProbeCrossval) -> Table:
    """Return the table of accuracies: Table 2 of [F]."""
    rows = [
        (
            row_name(row),
            [
                share_cell(row.accuracy),
                Cell(percent(row.fold_mean)),
                Cell(percent(row.fold_sd)),
                NONE if row.repetition_sd is None else Cell(percent(row.repetition_sd)),
            ],
        )
        for row in one.results
    ]
    if one.human is not None:
        rows.append(("people", [share_cell(one.human), NONE, NONE, NONE]))
    return ("model", "accuracy", "mean of folds", "sd of folds", "sd of repetitions"), rows


def _vocabulary(one: ProbeCrossval) -> Table:
    """Return how accuracy goes with shared words, by model."""
    rows = [
        (f"{row_name(row)}: {name}", [Cell(text) for text in texts])
        for row in one.results
        for name, *texts in table_of(row.vocabulary)
    ]
    return ("model: words", *HEAD[1:]), rows


def _folds(one: ProbeCrossval) -> Table:
    rows = [(row_name(row), [Cell(percent(fold)) for fold in row.folds]) for row in one.results]
    return ("model", *(f"fold {fold}" for fold in one.folds)), rows
