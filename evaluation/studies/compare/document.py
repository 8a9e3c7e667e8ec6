"""The document of a paired comparison, and its pairs as comma-separated values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import NamedTuple

from evaluation.report import cells
from evaluation.results.types import Estimate
from evaluation.results.words import (
    coefficient,
    difference,
    last_name,
    name_or_count,
    p_value,
    percent,
)
from evaluation.studies.compare.agreement import Agreement, MeanAgreement
from evaluation.studies.compare.record import Comparison, Pair
from kbprobe import document as doc
from kbprobe.tables import csv_text

LEVEL = 0.05
"""Differences with an adjusted p of this or less are shown first, and outlined."""

_SENTENCES = 5
"""Maximum number of pairs described in sentences."""


def document(found: Comparison) -> doc.Document:
    """Return the document: a section for each probe, and means over the probes."""
    groups = [found.of_group(group) for group in dict.fromkeys(run.group for run in found.runs)]
    asked = [f"{one.pairs[0].probe} ({one.pairs[0].split})" for one in groups]
    sections = [doc.Section(name, _parts(one)) for name, one in zip(asked, groups, strict=True)]
    if found.mean:
        note = (
            "Each probe has equal weight. Intervals assume that the probes are independent of each "
            "other."
        )
        numbers = {(one.first, one.second): one for one in found.mean}
        maps = _agreement_maps([run.label for run in groups[0].runs], numbers)
        title = f"Mean over {len(groups)} probes"
        sections.append(doc.Section(title, [doc.Text(note, note=True), *maps]))
    models = len(dict.fromkeys(run.label for run in found.runs)) if len(groups) > 1 else 0
    return doc.Document(
        "Paired comparison",
        f"{models or len(found.runs)} models on {name_or_count(asked, 'probes')}",
        sections,
    )


def _parts(found: Comparison) -> list[doc.Part | None]:
    """Return the parts on one probe."""
    # The similarity of a model's answers to a probe and to its controls is not informative.
    controlled = any(pair.control is not None for pair in found.pairs)
    similar = not controlled or len({run.label for run in found.runs}) > 1
    several = similar and len(found.runs) > 2
    names = _names(found)
    pairs = [
        _Compared(*both, pair, adjusted)
        for both, pair, adjusted in zip(
            combinations(names, 2), found.pairs, found.holm_p, strict=True
        )
    ]
    agreements = {(one.first, one.second): one.pair.agreement for one in pairs}
    chances = {percent(run.chance) for run in found.runs}
    chance = f"; chance is {chances.pop()}" if len(chances) == 1 else ""
    return [
        doc.Findings(_sentences(pairs) + (_agreement_sentences(found, pairs) if similar else [])),
        doc.Caveats(_caveats(found, pairs) + (_agreement_caveats(found) if similar else [])),
        doc.Table(
            ("model", "metric", "accuracy"),
            [(name, run.metric, run.accuracy) for name, run in zip(names, found.runs, strict=True)],
            f"Accuracy of each model on the rows that it scored{chance}",
            names=2,
        ),
        _controls(found),
        *([_differences_map(found, names), *_agreement_maps(names, agreements)] if several else ()),
        _differences(pairs),
        _agreement(pairs) if similar else None,
        _families(found.pairs[0]) if len(found.pairs) == 1 else None,
        doc.Table(
            ("wording", "mean", *names),
            [(one.template, one.accuracy, *one.runs) for one in found.wordings],
            "By wording: mean accuracy over the models, the highest first, and that of each model",
        ),
    ]


def _names(found: Comparison) -> list[str]:
    """Return the names of the runs: their labels, with the probe if they are on several configs."""
    with_first = found.pairs[: len(found.runs) - 1]
    probes = [with_first[0].probe, *(pair.second_probe or pair.probe for pair in with_first)]
    labels = [run.label for run in found.runs]
    if len(set(probes)) == 1:
        return labels
    return [f"{label} on {probe}" for label, probe in zip(labels, probes, strict=True)]


class _Compared(NamedTuple):
    """A pair, with the names of its runs and its adjusted p."""

    first: str
    second: str
    pair: Pair
    adjusted: float

    @property
    def name(self) -> str:
        return f"{self.first} and {self.second}"


def _sentences(pairs: Sequence[_Compared]) -> list[str]:
    """Return sentences on the models that differ, the largest difference first.

    If there are only two models, they are described whether they differ or not.
    """
    shown, sentences = list(pairs), []
    if len(pairs) > 1:
        shown = [one for one in shown if one.adjusted <= LEVEL]
        sentences.append(
            f"{len(shown)} of {len(pairs)} pairs differ at a level of {100 * LEVEL:g}%, "
            "adjusted for their number (Holm)."
        )
    shown.sort(key=lambda one: -abs(one.pair.difference.value))
    sentences += map(_sentence, shown[:_SENTENCES])
    if len(shown) > _SENTENCES:
        sentences.append(f"And {len(shown) - _SENTENCES} more pairs: see the table.")
    return sentences


def _sentence(one: _Compared) -> str:
    better, worse, gain = one.second, one.first, one.pair.difference
    if gain.value < 0:
        better, worse = worse, better
        turned = {"value": -gain.value, "low": -gain.high, "high": -gain.low}
        gain = gain.model_copy(update=turned)
    p = p_value(one.adjusted)
    return f"{better} less {worse}: {difference(gain)}, p {p if p.startswith('<') else f'= {p}'}."


def _caveats(found: Comparison, pairs: Sequence[_Compared]) -> list[str]:
    """Return sentences on rows that are not compared, and on other differences between the runs."""
    left = [pair for pair in found.pairs if pair.only_first or pair.only_second or pair.set_aside]
    caveats = []
    if len(found.pairs) == 1 and left:
        first, second, pair, _ = pairs[0]
        parts = {
            f"asked of {first} alone": pair.only_first,
            f"asked of {second} alone": pair.only_second,
            "set aside by one or both": pair.set_aside,
        }
        named = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        caveats.append(f"Rows left out: {named}.")
    elif left:
        least = min(pair.compared for pair in left)
        caveats.append(
            f"{len(left)} of {len(found.pairs)} pairs are compared only on the rows that both "
            f"scored, at least {least:,}."
        )
    if any(pair.second_probe is not None for pair in found.pairs):
        caveats.append("Some runs are on another config of the probe; rows are paired by ids.")
    return caveats + [f"{warning[:1].upper()}{warning[1:]}." for warning in found.warnings]


def _agreement_sentences(found: Comparison, pairs: Sequence[_Compared]) -> list[str]:
    """Return sentences on the most and least similar models, similar errors, and restarts."""
    said = []
    kappas = [(held.value, one) for one in pairs if (held := one.pair.agreement.kappa)]
    ranked = [one for _, one in sorted(kappas, key=itemgetter(0), reverse=True)]
    if ranked:
        said.append(_consistency("Most consistent: ", ranked[0]))
    if len(ranked) > 1:
        said.append(_consistency("Least consistent: ", ranked[-1]))
    if alike := [text for one in pairs if (text := _similar_errors(one))]:
        more = f"; and {len(alike) - 5} more" if len(alike) > 5 else ""
        said.append(f"Same wrong choice more often than by chance: {'; '.join(alike[:5])}{more}.")
    for drawn in found.restarts:
        kappa = "" if drawn.kappa is None else f", kappa {coefficient(drawn.kappa)}"
        said.append(
            f"{len(drawn.labels)} random initialisations of {last_name(drawn.model)}: accuracy "
            f"{percent(drawn.accuracy)} with a standard deviation of {100 * drawn.deviation:.1f} "
            f"points; they give the same answer to {percent(drawn.overlap)} of the rows{kappa}."
        )
    return said


def _consistency(lead: str, one: _Compared) -> str:
    found = one.pair.agreement
    return (
        f"{lead}{one.name}, kappa {found.kappa}; the same answer to "
        f"{percent(found.overlap.value)} of the rows, where {percent(found.expected_overlap)} is "
        "expected of independent models with these accuracies."
    )


def _similar_errors(one: _Compared) -> str:
    """Describe errors that are the same more often than by chance; "" if they are not."""
    errors, expected = one.pair.agreement.error_overlap, one.pair.agreement.expected_error_overlap
    if errors is None or expected is None or errors.low <= expected:
        return ""
    return f"{one.name} ({percent(errors.value)}, chance {percent(expected)})"


def _agreement_caveats(found: Comparison) -> list[str]:
    wrong = [pair.agreement.both_wrong for pair in found.pairs]
    if not any(wrong):
        return [
            "Error overlap is not shown: there is no row of three choices or more that both models "
            "of a pair get wrong."
        ]
    if few := [count for count in wrong if 0 < count < 50]:
        return [
            f"{len(few)} of {len(wrong)} pairs have fewer than 50 rows that both get wrong: look "
            "at the intervals."
        ]
    return []


def _differences_map(found: Comparison, names: Sequence[str]) -> doc.HeatMap:
    """Return the heat map of differences, without its diagonal."""
    differing = [
        pair
        for pair, p in zip(combinations(range(len(names)), 2), found.holm_p, strict=True)
        if p <= LEVEL
    ]
    return doc.HeatMap(
        "Accuracy of the row’s model less that of the column’s, in points. Outlined: p ≤ "
        f"{LEVEL:g} after Holm’s adjustment.",
        "model / model",
        names,
        names,
        [
            [None if row == column else number for column, number in enumerate(held)]
            for row, held in enumerate(found.difference)
        ],
        "points",
        frozenset({*differing, *((column, row) for row, column in differing)}),
    )


def _agreement_maps(
    labels: Sequence[str], pairs: Mapping[tuple[str, str], Agreement | MeanAgreement]
) -> list[doc.HeatMap]:
    """Return the heat maps of kappa, of overlap, and of agreement on errors if there is any."""
    maps: list[tuple[str, doc.Scale, list[doc.Number | None]]] = [
        (
            "Error consistency: Cohen’s kappa of being right on the same questions. 0: as "
            "independent models; 1: on exactly the same.",
            "coefficient",
            [_kappa_of(pair) for pair in pairs.values()],
        ),
        (
            "Prediction overlap: share of questions with the same answer. It rises with accuracy.",
            "share",
            [pair.overlap for pair in pairs.values()],
        ),
        (
            "Agreement on errors: of the questions that both get wrong, the share with the same "
            "wrong choice.",
            "share",
            [pair.error_overlap for pair in pairs.values()],
        ),
    ]
    return [
        doc.HeatMap.of_pairs(
            caption, "model / model", labels, dict(zip(pairs, numbers, strict=True)), scale
        )
        for caption, scale, numbers in maps
        if any(number is not None for number in numbers)
    ]


def _kappa_of(one: Agreement | MeanAgreement) -> Estimate | float | None:
    return None if one.kappa is None else one.kappa.number()


def _differences(pairs: Sequence[_Compared]) -> doc.Table:
    return doc.Table.of(
        pairs,
        {
            "A and B": lambda one: one.name,
            "A": lambda one: one.pair.accuracy_first,
            "B": lambda one: one.pair.accuracy_second,
            "B minus A, points": lambda one: cells.points(one.pair.difference),
            "p": lambda one: p_value(one.pair.p_value),
            "p (Holm)": lambda one: p_value(one.adjusted),
            "p (McNemar)": lambda one: p_value(one.pair.mcnemar_p),
            "rows": lambda one: one.pair.compared,
            "clusters": lambda one: one.pair.clusters,
        },
        "Accuracy of each pair of models on the rows that both scored",
    )


def _controls(found: Comparison) -> doc.Table:
    """Return the table of each model on the probe and on its controls."""
    rows: list[doc.Row] = [
        (
            *(pair.first.label, control.config, pair.compared),
            *(control.probe, control.control, pair.first.chance),
            *(cells.points(control.difference), p_value(pair.p_value)),
        )
        for pair in found.pairs
        if (control := pair.control) is not None
    ]
    head = ("rows", "accuracy", "in the control", "chance", "probe minus control, points", "p")
    caption = "Accuracy on the probe and on its controls, on the rows that both scored"
    return doc.Table(("model", "control", *head), rows, caption, names=2)


def _agreement(pairs: Sequence[_Compared]) -> doc.Table:
    return doc.Table.of(
        pairs,
        {
            "models": lambda one: one.name,
            "only A right": lambda one: one.pair.only_first_right,
            "only B right": lambda one: one.pair.only_second_right,
            "same answer": lambda one: one.pair.agreement.overlap,
            "expected": lambda one: one.pair.agreement.expected_overlap,
            "kappa": lambda one: cells.coefficient(_kappa_of(one.pair.agreement)),
            "both wrong": lambda one: one.pair.agreement.both_wrong,
            "same wrong choice": lambda one: one.pair.agreement.error_overlap,
            "expected of errors": lambda one: one.pair.agreement.expected_error_overlap,
        },
        "How similar the answers of each pair are. Expected: for independent models with the same "
        "accuracies, if each wrong choice is equally likely. Errors: of rows with three choices "
        "or more.",
    )


def _families(pair: Pair) -> doc.Table:
    return doc.Table.of(
        pair.by_family,
        {
            "distractor family": lambda part: part.family,
            "A": lambda part: part.first,
            "B": lambda part: part.second,
            "B minus A, points": lambda part: cells.points(part.difference),
            "rows": lambda part: part.difference.n,
        },
        "By distractor family",
    )


def sheets(found: Comparison) -> dict[str, str]:
    """Return the pairs as comma-separated values."""
    head = (
        *("first", "second", "rows", "clusters", "accuracy_first", "accuracy_second"),
        *("difference_points", "low", "high", "p", "p_holm", "p_mcnemar"),
        *("only_first_right", "only_second_right", "prediction_overlap"),
    )
    lines = [
        (
            *(pair.first.label, pair.second.label, pair.compared, pair.clusters),
            *(f"{one.value:.6f}" for one in (pair.accuracy_first, pair.accuracy_second)),
            *(round(value, 4) for value in (gain.value, gain.low, gain.high)),
            *(f"{value:.6g}" for value in (pair.p_value, adjusted, pair.mcnemar_p)),
            *(pair.only_first_right, pair.only_second_right),
            f"{pair.prediction_overlap:.6f}",
        )
        for pair, adjusted in zip(found.pairs, found.holm_p, strict=True)
        for gain in [pair.difference]
    ]
    return {"compare.csv": csv_text([head, *lines], line_end="\n")}
