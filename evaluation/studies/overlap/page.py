"""The page of the study, ``overlap.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from evaluation.report.matrices import INDEX, SHARES, Matrix, Scale, make_matrix, symmetric_cells
from evaluation.report.tables import NONE, Cell, Table, share_cell
from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from evaluation.results.words import coefficient, percent
from evaluation.studies.overlap.types import (
    Kappa,
    MeanOverlap,
    OverlapSummary,
    PairOverlap,
    ProbeOverlap,
)
from evaluation.studies.overlap.words import remarks, sentences

_MODELS = "model / model"

Number: TypeAlias = Estimate | float | None


def render(summary: OverlapSummary) -> str:
    """Return the page."""
    names = [one.probe for one in summary.probes]
    labels = list(dict.fromkeys(run.label for one in summary.probes for run in one.runs))
    probes = [_section(one, f"p{number}") for number, one in enumerate(summary.probes)]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    links += [("mean", "Mean over probes")] * bool(summary.mean)
    template = environment(Path(__file__).parent).get_template("overlap.html.j2")
    return template.render(
        title=f"{len(labels)} models on {names[0] if len(names) == 1 else f'{len(names)} probes'}",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        probes=probes,
        mean=_means(summary),
    )


def _section(one: ProbeOverlap, name: str) -> dict[str, object]:
    """Return what the section of a probe shows."""
    return {
        "id": name,
        "one": one,
        "found": sentences(one),
        "remarks": remarks(one),
        "accuracies": _accuracies(one),
        "matrices": _matrices([run.label for run in one.runs], one.pairs),
        "pairs": _pairs(one),
    }


def _means(summary: OverlapSummary) -> list[Matrix]:
    if not summary.mean:
        return []
    return _matrices([run.label for run in summary.probes[0].runs], summary.mean)


def _matrices(labels: Sequence[str], pairs: Sequence[PairOverlap | MeanOverlap]) -> list[Matrix]:
    """Return the heat maps of kappa, of overlap, and of agreement on errors where there is any."""
    maps: list[tuple[str, Scale, list[Number]]] = [
        (
            "Error consistency: Cohen’s kappa of being right on the same questions. 0: as "
            "independent models; 1: on exactly the same.",
            INDEX,
            [_kappa(pair.kappa) for pair in pairs],
        ),
        (
            "Prediction overlap: share of questions with the same answer. It rises with accuracy.",
            SHARES,
            [pair.overlap for pair in pairs],
        ),
        (
            "Agreement on errors: of the questions that both get wrong, the share with the same "
            "wrong choice.",
            SHARES,
            [pair.error_overlap for pair in pairs],
        ),
    ]
    names = [(pair.first, pair.second) for pair in pairs]
    return [
        make_matrix(
            caption,
            _MODELS,
            labels,
            labels,
            symmetric_cells(labels, dict(zip(names, numbers, strict=True))),
            scale,
        )
        for caption, scale, numbers in maps
        if any(number is not None for number in numbers)
    ]


def _kappa(kappa: Kappa | None) -> Number:
    if kappa is None:
        return None
    return kappa.estimate(0) or kappa.value


def _accuracies(one: ProbeOverlap) -> Table:
    rows = [(run.label, [share_cell(run.accuracy)]) for run in one.runs]
    return ("model", "accuracy"), rows


def _pairs(one: ProbeOverlap) -> Table:
    """Return the header and rows of the table of all pairs."""
    head = (
        *("models", "same answer", "expected", "same wrong choice", "expected"),
        *("kappa", "rows", "both wrong"),
    )
    rows = [
        (
            f"{pair.first} and {pair.second}",
            [
                share_cell(pair.overlap),
                Cell(percent(pair.expected_overlap)),
                NONE if pair.error_overlap is None else share_cell(pair.error_overlap),
                NONE
                if pair.expected_error_overlap is None
                else Cell(percent(pair.expected_error_overlap)),
                _kappa_cell(pair.kappa),
                Cell(f"{pair.compared:,}"),
                Cell(f"{pair.both_wrong:,}"),
            ],
        )
        for pair in one.pairs
    ]
    return head, rows


def _kappa_cell(kappa: Kappa | None) -> Cell:
    if kappa is None:
        return NONE
    if kappa.low is None or kappa.high is None:
        return Cell(coefficient(kappa.value))
    return Cell(coefficient(kappa.value), f"{coefficient(kappa.low)} to {coefficient(kappa.high)}")
