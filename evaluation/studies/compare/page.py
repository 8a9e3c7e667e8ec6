"""The page of the study, ``compare.html``, and its table: made from the summary alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluation.report.matrices import SHARES, Matrix, make_matrix, points_scale
from evaluation.report.tables import Cell, Table, points_cell, share_cell
from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from evaluation.results.words import p_value, percent, points
from evaluation.studies.compare.types import Comparison, Pair
from kbprobe.tables import csv_text

LEVEL = 0.05
_CORNER = "model / model"


def render(found: Comparison) -> str:
    """Return the page."""
    first = found.pairs[0]
    template = environment(Path(__file__).parent).get_template("compare.html.j2")
    return template.render(
        title=f"{len(found.runs)} models on {first.probe} ({first.split})",
        found=_sentences(found),
        warnings=[*_caveats(found), *(f"{one[:1].upper()}{one[1:]}." for one in found.warnings)],
        accuracies=_accuracies(found),
        matrices=_matrices(found) if len(found.runs) > 2 else [],
        pairs=_pairs(found),
        families=_families(first) if len(found.pairs) == 1 and first.by_family else None,
        wordings=_by_wording(found),
        level=LEVEL,
    )


def write_pairs(found: Comparison) -> str:
    """Return the pairs as comma-separated values."""
    lines: list[Sequence[Any]] = [
        (
            *("first", "second", "rows", "clusters", "accuracy_first", "accuracy_second"),
            *("difference_points", "low", "high", "p", "p_holm", "p_mcnemar"),
            *("only_first_right", "only_second_right", "prediction_overlap"),
        )
    ]
    for pair, adjusted in zip(found.pairs, found.holm_p, strict=True):
        gain = pair.difference
        lines.append(
            (
                *(pair.first.label, pair.second.label, pair.compared, pair.clusters),
                *(f"{one.value:.6f}" for one in (pair.accuracy_first, pair.accuracy_second)),
                *(round(value, 4) for value in (gain.value, gain.low, gain.high)),
                *(f"{value:.6g}" for value in (pair.p_value, adjusted, pair.mcnemar_p)),
                *(pair.only_first_right, pair.only_second_right),
                f"{pair.prediction_overlap:.6f}",
            )
        )
    return csv_text(lines, line_end="\n")


def _sentences(found: Comparison) -> list[str]:
    held = list(zip(found.pairs, found.holm_p, strict=True))
    differing = [(pair, p) for pair, p in held if p <= LEVEL]
    sentences = []
    if len(held) > 1:
        sentences.append(
            f"{len(differing)} of {len(held)} pairs differ at a level of {100 * LEVEL:g}%, "
            "adjusted for their number (Holm)."
        )
    shown = differing if len(held) > 1 else held
    for pair, p in sorted(shown, key=lambda one: -abs(one[0].difference.value))[:5]:
        better, worse = pair.second.label, pair.first.label
        gain = pair.difference
        if gain.value < 0:
            better, worse = worse, better
            gain = gain.model_copy(
                update={"value": -gain.value, "low": -gain.high, "high": -gain.low}
            )
        sentences.append(
            f"{better} less {worse}: {points(gain.value)} points ({points(gain.low)} to "
            f"{points(gain.high)}), {_p_text(p)}."
        )
    if len(shown) > 5:
        sentences.append(f"And {len(shown) - 5} more pairs: see the table.")
    return sentences


def _p_text(p: float) -> str:
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _caveats(found: Comparison) -> list[str]:
    left = [p for p in found.pairs if p.only_first or p.only_second or p.set_aside]
    caveats = []
    if left:
        least = min(pair.compared for pair in left)
        caveats.append(
            f"{len(left)} of {len(found.pairs)} pairs are compared only on the rows that both "
            f"scored, at least {least:,}."
        )
    if any(pair.second_probe is not None for pair in found.pairs):
        caveats.append("Some runs are on another config of the probe; rows are paired by ids.")
    return caveats


def _accuracies(found: Comparison) -> Table:
    rows = [(run.label, [Cell(run.metric), share_cell(run.accuracy)]) for run in found.runs]
    return ("model", "metric", "accuracy"), rows


def _by_wording(found: Comparison) -> Table:
    rows = [
        (
            one.template,
            [share_cell(one.accuracy), *(Cell(percent(share)) for share in one.runs)],
        )
        for one in found.wordings
    ]
    return ("wording", "mean", *(run.label for run in found.runs)), rows


def _matrices(found: Comparison) -> list[Matrix]:
    labels = [run.label for run in found.runs]
    count = range(len(labels))
    differences: list[list[Estimate | float | None]] = [
        [None if at == other else found.difference[at][other] for other in count] for at in count
    ]
    overlaps: list[list[Estimate | float | None]] = [
        [None if at == other else found.prediction_overlap[at][other] for other in count]
        for at in count
    ]
    scale = points_scale([value for row in found.difference for value in row])
    return [
        make_matrix(
            "Accuracy of the row’s model less that of the column’s, in points. Outlined: p ≤ "
            f"{LEVEL:g} after Holm’s adjustment.",
            _CORNER,
            labels,
            labels,
            differences,
            scale,
            marked=_differs(found),
        ),
        make_matrix("Share of identical predictions.", _CORNER, labels, labels, overlaps, SHARES),
    ]


def _differs(found: Comparison) -> Callable[[int, int], bool]:
    """Return what tells whether two runs, by their numbers, differ."""
    numbers = combinations(range(len(found.runs)), 2)
    differing = {pair for pair, p in zip(numbers, found.holm_p, strict=True) if p <= LEVEL}
    return lambda row, column: (min(row, column), max(row, column)) in differing


def _pairs(found: Comparison) -> Table:
    head = (
        *("models", "second less first, points", "p", "p (Holm)", "p (McNemar)"),
        *("only first right", "only second right", "rows", "clusters"),
    )
    rows = [
        (
            f"{pair.first.label} and {pair.second.label}",
            [
                points_cell(pair.difference),
                *(Cell(p_value(p)) for p in (pair.p_value, adjusted, pair.mcnemar_p)),
                *(Cell(f"{n:,}") for n in (pair.only_first_right, pair.only_second_right)),
                *(Cell(f"{n:,}") for n in (pair.compared, pair.clusters)),
            ],
        )
        for pair, adjusted in zip(found.pairs, found.holm_p, strict=True)
    ]
    return head, rows


def _families(pair: Pair) -> Table:
    rows = [
        (
            part.family,
            [
                *(Cell(f"{100 * share:.1f}%") for share in (part.first, part.second)),
                points_cell(part.difference),
                Cell(f"{part.difference.n:,}"),
            ],
        )
        for part in pair.by_family
    ]
    return ("distractor family", "first", "second", "second less first, points", "rows"), rows
