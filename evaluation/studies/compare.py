"""Paired comparison: which pairs of models differ in accuracy on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.breakdown import cluster_codes, named_rows
from evaluation.results.pairs import holm, mcnemar
from evaluation.results.types import METRIC_OF, Estimate, Model
from evaluation.results.words import difference, natural_key, p_value, percent
from evaluation.studies.answers import gather
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.labels import run_labels
from evaluation.studies.pairing import are_configs, pair_rows
from kbprobe.document import Caveats, Document, Findings, HeatMap, Number, Row, Section, Table
from kbprobe.errors import require
from kbprobe.options import Options
from kbprobe.tables import csv_text


class CompareOptions(Options):
    """How results are compared."""

    partial: bool = Field(False, description="Compare the items that both have, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


class ComparedRun(Model):
    """One of the runs compared."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str
    model: str
    revision: str | None
    dtype: str
    scorer: str
    metric: str = Field(description="What predictions were made with: acc, acc_norm, ...")
    accuracy: Estimate = Field(description="Accuracy on all rows that it scored.")


class FamilyDifference(Model):
    """The two runs on the rows of one distractor family."""

    family: str
    first: float = Field(description="Accuracy of the first run.")
    second: float
    difference: Estimate = Field(description="Second less first, in percentage points.")


class Pair(Model):
    """Two runs on the same items."""

    probe: str
    second_probe: str | None = Field(
        None,
        description="The probe of the second run where it is another config of the same build, "
        "such as a control: rows are paired by their ids. Null where both are on the same probe.",
    )
    split: str
    first: ComparedRun
    second: ComparedRun
    only_first: int = Field(description="Items that only the first run was asked.")
    only_second: int
    set_aside: int = Field(description="Items asked of both, and not scored by one or both.")
    compared: int = Field(description="Items scored by both: all numbers below are of them.")
    clusters: int
    accuracy_first: Estimate
    accuracy_second: Estimate
    difference: Estimate = Field(description="Second less first, in percentage points.")
    only_first_right: int = Field(description="Items that the first run alone gets right.")
    only_second_right: int
    mcnemar_p: float = Field(
        description="Exact McNemar test, two-sided: takes rows to be independent."
    )
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the runs swapped in whole clusters. The "
        "same as McNemar's where every cluster is a row, and the one to quote elsewhere."
    )
    prediction_overlap: float = Field(description="Share of items with the same prediction.")
    both_wrong: int
    error_overlap: float | None = Field(
        description="Share of the items both get wrong with the same wrong choice; null if none."
    )
    by_family: list[FamilyDifference]


class Wording(Model):
    """A wording, by the accuracy of all runs on the rows that have it."""

    template: str = Field(description="Its id.")
    accuracy: Estimate = Field(description="Mean accuracy over the runs.")
    runs: list[float] = Field(description="Accuracy of each run.")


class Comparison(Model):
    """Several runs, each compared with each."""

    schema_version: str = "1.2"
    runs: list[ComparedRun]
    pairs: list[Pair] = Field(description="Each run with every later one.")
    warnings: list[str] = Field(
        default_factory=list,
        description="What else the runs differ in that accuracies may be due to.",
    )
    holm_p: list[float] = Field(
        description="The pairs' p values, adjusted for their number (Holm, 1979)."
    )
    prediction_overlap: list[list[float]] = Field(
        description="Share of identical predictions, run by run; 1 on the diagonal."
    )
    difference: list[list[float]] = Field(
        description="Accuracy of the row's run less that of the column's, in points."
    )
    wordings: list[Wording] = Field(
        default_factory=list,
        description="Each wording, that with the highest mean over the runs first (Talmor et al. "
        "2020 choose it); empty unless all runs are on the same rows, of several wordings.",
    )


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> Comparison:
    """Compare each pair of runs on the items that both scored.

    Raises:
        UsageError: the runs are on different probes, or on different rows with ``partial`` off; or
            two runs share no scored item, or have different golds for the same ids.
        MissingDependencyError: statsmodels is not installed.
    """
    require("statsmodels", "eval", "comparing results")
    runs, options = _describe(finished), request.options
    numbers = list(combinations(range(len(runs)), 2))
    pairs = [
        _compare((finished[i], runs[i]), (finished[j], runs[j]), options.partial, options.seed)
        for i, j in numbers
    ]
    overlap, gains = np.eye(len(runs)), np.zeros((len(runs), len(runs)))
    for (i, j), pair in zip(numbers, pairs, strict=True):
        overlap[i, j] = overlap[j, i] = pair.prediction_overlap
        gains[j, i] = pair.difference.value
    return Comparison(
        runs=runs,
        pairs=pairs,
        warnings=_warnings(runs),
        holm_p=holm([pair.p_value for pair in pairs]),
        prediction_overlap=overlap.tolist(),
        difference=(gains - gains.T).tolist(),
        wordings=_wordings(finished, options.seed),
    )


def _wordings(finished: Sequence[Finished], seed: int) -> list[Wording]:
    """Average the accuracy of the runs by wording, on the rows that all runs scored."""
    if len({one.evaluation.results.probe.fingerprint for one in finished}) > 1:
        return []
    items, answers = gather(finished)
    whole, cluster = np.flatnonzero(answers.scored.all(axis=1)), cluster_codes(items)
    tries = np.full(len(cluster), len(finished))
    found = []
    for template, of_template in named_rows(items["template"].take(whole)):
        rows = whole[of_template]
        right = answers.right[rows]
        mean = intervals.repeated_share(right.sum(axis=1), tries[rows], cluster[rows], seed)
        means = right.mean(axis=0).tolist()
        found.append(Wording(template=template, accuracy=mean, runs=means))
    ordered = sorted(found, key=lambda one: -one.accuracy.value)
    return ordered if len(ordered) > 1 else []


def _describe(finished: Sequence[Finished]) -> list[ComparedRun]:
    runs = []
    for one, short in zip(finished, run_labels(finished), strict=True):
        results, model = one.evaluation.results, one.evaluation.results.model
        runs.append(
            ComparedRun(
                label=short,
                folder=str(one.folder),
                model=model.id,
                revision=model.revision,
                dtype=model.dtype,
                scorer=results.scoring.scorer,
                metric=METRIC_OF[results.metrics.normalization],
                accuracy=results.metrics.accuracy,
            )
        )
    return runs


def _warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """Return a warning if the runs normalize their scores in different ways."""
    if len({run.metric for run in runs}) == 1:
        return []
    by_metric = {metric: name for name, metric in METRIC_OF.items()}
    told = "; ".join(
        f"{run.label}: {run.metric} (--normalization {by_metric[run.metric]})" for run in runs
    )
    return [
        f"the runs compare choices by scores of different normalization ({told}), and part of a "
        "difference may be due to that alone. Evaluate them with the same one, such as "
        "--normalization sum, which every scorer takes"
    ]


def _compare(
    one: tuple[Finished, ComparedRun], two: tuple[Finished, ComparedRun], partial: bool, seed: int
) -> Pair:
    paired = pair_rows(one[0], two[0], partial=partial)
    (right, also_right), cluster = paired.right, paired.clusters
    same, wrong = paired.same, ~right & ~also_right
    alone, also_alone = int((right & ~also_right).sum()), int((also_right & ~right).sum())
    probe = one[0].evaluation.results.probe
    return Pair(
        probe=probe.name,
        second_probe=two[0].evaluation.results.probe.name if are_configs(one[0], two[0]) else None,
        split=probe.split,
        first=one[1],
        second=two[1],
        only_first=paired.only_first,
        only_second=paired.only_second,
        set_aside=paired.set_aside,
        compared=right.size,
        clusters=int(cluster.max()) + 1,
        accuracy_first=intervals.accuracy(right, cluster, seed),
        accuracy_second=intervals.accuracy(also_right, cluster, seed),
        difference=intervals.paired_difference(right, also_right, cluster, seed),
        only_first_right=alone,
        only_second_right=also_alone,
        mcnemar_p=mcnemar(alone, also_alone),
        p_value=paired.p_value,
        prediction_overlap=float(same.mean()),
        both_wrong=int(wrong.sum()),
        error_overlap=float(same[wrong].mean()) if wrong.any() else None,
        by_family=[
            FamilyDifference(
                family=family,
                first=float(right[rows].mean()),
                second=float(also_right[rows].mean()),
                difference=intervals.paired_difference(
                    right[rows], also_right[rows], cluster[rows], seed
                ),
            )
            for family, rows in sorted(
                named_rows(paired.first["distractor_family"]),
                key=lambda named: natural_key(named[0]),
            )
        ],
    )


LEVEL = 0.05
"""Differences with an adjusted p of this or less are shown first, and outlined."""

_SENTENCES = 5
"""Maximum number of pairs described in sentences."""


def _document(found: Comparison) -> Document:
    first = found.pairs[0]
    asked = f"{first.probe} ({first.split})"
    return Document(
        "Paired comparison",
        f"{len(found.runs)} models on {asked}",
        [
            Section(
                asked,
                [
                    Findings(_sentences(found)),
                    Caveats(_caveats(found)),
                    _accuracies(found),
                    *(_maps(found) if len(found.runs) > 2 else ()),
                    _differences(found),
                    _answers(found),
                    _families(first) if len(found.pairs) == 1 else None,
                    _wordings_table(found),
                ],
            )
        ],
        reading=[
            "**p** is that of an exact randomisation test: if two models were the same, swapping "
            "their answers in any cluster would be as likely as not. **McNemar’s** test takes rows "
            "to be independent, and is too sure where several rows are about the same thing.",
            "**p (Holm)** is adjusted for the number of pairs (Holm, 1979): if no two models "
            f"differ, a p of {LEVEL:g} or less turns up anywhere in the table with a chance of "
            f"{percent(LEVEL)} at most. Intervals are not adjusted.",
            "**Wordings** are on different rows each, so that the rows are a part of their "
            "difference; choose one on other rows than those that it is reported on.",
            "**No difference found** does not mean that there is none: `evaluate-probe power` "
            "tells which differences these rows can show.",
        ],
    )


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


def _pairs(found: Comparison) -> list[_Compared]:
    names = combinations(_names(found), 2)
    return [
        _Compared(first, second, pair, adjusted)
        for (first, second), pair, adjusted in zip(names, found.pairs, found.holm_p, strict=True)
    ]


def _sentences(found: Comparison) -> list[str]:
    """Return sentences on the models that differ, the largest difference first.

    If there are only two models, they are described whether they differ or not.
    """
    shown, sentences = _pairs(found), []
    if len(found.pairs) > 1:
        shown = [one for one in shown if one.adjusted <= LEVEL]
        sentences.append(
            f"{len(shown)} of {len(found.pairs)} pairs differ at a level of {100 * LEVEL:g}%, "
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


def _caveats(found: Comparison) -> list[str]:
    """Return sentences on rows that are not compared, and on other differences between the runs."""
    left = [pair for pair in found.pairs if pair.only_first or pair.only_second or pair.set_aside]
    caveats = []
    if len(found.pairs) == 1 and left:
        first, second, pair, _ = _pairs(found)[0]
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


def _accuracies(found: Comparison) -> Table:
    return Table.of(
        zip(_names(found), found.runs, strict=True),
        {
            "model": lambda named: named[0],
            "metric": lambda named: named[1].metric,
            "accuracy": lambda named: cells.share(named[1].accuracy),
        },
        "Accuracy of each model on the rows that it scored",
        names=2,
    )


def _maps(found: Comparison) -> list[HeatMap]:
    """Return the heat maps of differences and of equal predictions, without their diagonals."""
    names = _names(found)
    differing = [
        pair
        for pair, p in zip(combinations(range(len(names)), 2), found.holm_p, strict=True)
        if p <= LEVEL
    ]
    return [
        HeatMap(
            "Accuracy of the row’s model less that of the column’s, in points. Outlined: p ≤ "
            f"{LEVEL:g} after Holm’s adjustment.",
            "model / model",
            names,
            names,
            _without_diagonal(found.difference),
            "points",
            frozenset({*differing, *((column, row) for row, column in differing)}),
        ),
        HeatMap(
            "Share of identical predictions.",
            "model / model",
            names,
            names,
            _without_diagonal(found.prediction_overlap),
        ),
    ]


def _without_diagonal(numbers: Sequence[Sequence[float]]) -> list[list[Number | None]]:
    return [
        [None if row == column else number for column, number in enumerate(held)]
        for row, held in enumerate(numbers)
    ]


def _differences(found: Comparison) -> Table:
    return Table.of(
        _pairs(found),
        {
            "models": lambda one: one.name,
            "first": lambda one: cells.share(one.pair.accuracy_first),
            "second": lambda one: cells.share(one.pair.accuracy_second),
            "second less first, points": lambda one: cells.points(one.pair.difference),
            "p": lambda one: p_value(one.pair.p_value),
            "p (Holm)": lambda one: p_value(one.adjusted),
            "p (McNemar)": lambda one: p_value(one.pair.mcnemar_p),
            "rows": lambda one: cells.count(one.pair.compared),
            "clusters": lambda one: cells.count(one.pair.clusters),
        },
        "Accuracy of each pair of models on the rows that both scored",
    )


def _answers(found: Comparison) -> Table:
    return Table.of(
        _pairs(found),
        {
            "models": lambda one: one.name,
            "only first right": lambda one: cells.count(one.pair.only_first_right),
            "only second right": lambda one: cells.count(one.pair.only_second_right),
            "same answer": lambda one: cells.share(one.pair.prediction_overlap),
            "both wrong": lambda one: cells.count(one.pair.both_wrong),
            "of these, same answer": lambda one: cells.share(one.pair.error_overlap),
        },
        "Answers of each pair to these rows",
    )


def _families(pair: Pair) -> Table:
    return Table.of(
        pair.by_family,
        {
            "distractor family": lambda part: part.family,
            "first": lambda part: cells.share(part.first),
            "second": lambda part: cells.share(part.second),
            "second less first, points": lambda part: cells.points(part.difference),
            "rows": lambda part: cells.count(part.difference.n),
        },
        "By distractor family",
    )


def _wordings_table(found: Comparison) -> Table:
    rows: list[Row] = [
        (one.template, cells.share(one.accuracy), *map(cells.share, one.runs))
        for one in found.wordings
    ]
    return Table(
        ("wording", "mean", *_names(found)),
        rows,
        "By wording: mean accuracy over the models, the highest first, and that of each model",
    )


def _sheet(found: Comparison) -> str:
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


COMPARE = Study(
    name="compare",
    help="Compare two or more results on the same probe, question by question and pair by pair.",
    expand=None,
    summarise=_summarise,
    document=_document,
    sheets=lambda found: {"compare.csv": _sheet(found)},
    options=CompareOptions,
    least=2,
)
"""The study."""
