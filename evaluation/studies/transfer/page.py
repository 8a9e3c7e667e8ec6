"""The page of the study, ``transfer.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from evaluation.report.matrices import SHARES, Matrix, make_matrix, points_scale
from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from evaluation.studies.transfer.types import ModelTransfer, TransferSummary
from evaluation.studies.transfer.words import LESS, model_name, sentences

Number: TypeAlias = Estimate | float | None

_PROBES = "trained on / tested on"


def render(summary: TransferSummary) -> str:
    """Return the page."""
    names = [model_name(one) for one in summary.models]
    probes = len(summary.models[0].probes)
    template = environment(Path(__file__).parent).get_template("transfer.html.j2")
    links = [(f"m{number}", name) for number, name in enumerate(names)]
    what = names[0] if len(names) == 1 else f"{len(names)} models"
    return template.render(
        title=f"{what} on {probes} probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        models=[
            {
                "id": f"m{number}",
                "name": names[number],
                "one": one,
                "found": sentences(one),
                "accuracies": _accuracies(one),
                "differences": _differences(one),
                "seen": _seen(one),
            }
            for number, one in enumerate(summary.models)
        ],
    )


def _accuracies(one: ModelTransfer) -> Matrix:
    """Return the heat map of accuracies, with a row of what is reached without training."""
    names = [tested.probe for tested in one.probes]
    first: list[Number] = [
        tested.chance if tested.reference is None else tested.reference for tested in one.probes
    ]
    cells: list[list[Number]] = [first]
    cells += [[one.cell(row, column).accuracy for column in names] for row in names]
    return make_matrix(
        "Accuracy: rows are the probe trained on, columns the probe evaluated. Outlined: trained "
        "and evaluated on the same probe.",
        _PROBES,
        ["chance" if one.less == "chance" else "none", *names],
        names,
        cells,
        SHARES,
        lambda row, column: row == column + 1,
    )


def _seen(one: ModelTransfer) -> Matrix | None:
    """Return the heat map of the concepts in common; None where there are none."""
    if not any(cell.seen for cell in one.cells):
        return None
    names = [tested.probe for tested in one.probes]
    cells: list[list[Number]] = [[one.cell(row, column).seen for column in names] for row in names]
    return make_matrix(
        "Share of the questions evaluated whose concept a row trained on is about",
        _PROBES,
        names,
        names,
        cells,
        SHARES,
        lambda row, column: row == column,
    )


def _differences(one: ModelTransfer) -> Matrix:
    names = [tested.probe for tested in one.probes]
    cells = [[one.cell(row, column).difference for column in names] for row in names]
    return make_matrix(
        f"Difference from {LESS[one.less]}, in percentage points",
        _PROBES,
        names,
        names,
        cells,
        points_scale([cell.value for row in cells for cell in row]),
        lambda row, column: row == column,
    )
