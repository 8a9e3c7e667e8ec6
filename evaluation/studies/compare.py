"""Runs of several models on the same rows, compared row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from evaluation.results import intervals
from evaluation.results.breakdown import named_rows
from evaluation.results.significance import holm, mcnemar
from evaluation.results.types import METRIC_OF, Estimate, Model
from evaluation.results.words import natural_key
from evaluation.studies.base import Finished, Study, StudyRequest, summarise_folders
from evaluation.studies.pairing import are_configs, pair_rows
from kbprobe.errors import require
from kbprobe.options import Options

if TYPE_CHECKING:
    from rich.console import Console

COMPARISON_VERSION = "1.0"


class CompareOptions(Options):
    """How results are compared."""

    partial: bool = Field(False, description="Compare the items that both have, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


class ComparedRun(Model):
    """One of the runs compared."""

    label: str = Field(description="The model's id, and the folder where that is not enough.")
    folder: str
    model: str
    revision: str | None
    dtype: str
    scorer: str
    metric: str = Field(description="What predictions were made with: acc, acc_norm, ...")


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


class Comparison(Model):
    """Several runs, each compared with each."""

    schema_version: str = COMPARISON_VERSION
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
        description="Share of identical predictions [F], run by run; 1 on the diagonal."
    )
    difference: list[list[float]] = Field(
        description="Accuracy of the row's run less that of the column's, in points."
    )


def compare(folders: Sequence[Path], *, partial: bool = False, seed: int = 0) -> Comparison:
    """Compare runs, each with each, on the items that both scored.

    Where runs are not on the same rows ``partial`` compares the rows that they share.

    Raises:
        UsageError: fewer than two folders, or one holds no results; runs on different probes, or
            on different rows while ``partial`` is off; runs that share no scored item, or that
            have other golds for the same ids.
        MissingDependencyError: statsmodels is not installed.
    """
    request = StudyRequest(COMPARE, options=CompareOptions(partial=partial, seed=seed))
    comparison: Comparison = summarise_folders(request, folders)
    return comparison


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> Comparison:
    require("statsmodels", "eval", "comparing results")
    runs, options = _describe(finished), request.options
    numbers = list(combinations(range(len(runs)), 2))
    pairs = [
        _compare((finished[i], runs[i]), (finished[j], runs[j]), options.partial, options.seed)
        for i, j in numbers
    ]
    overlap, difference = np.eye(len(runs)), np.zeros((len(runs), len(runs)))
    for (i, j), pair in zip(numbers, pairs, strict=True):
        overlap[i, j] = overlap[j, i] = pair.prediction_overlap
        difference[j, i] = pair.difference.value
    return Comparison(
        runs=runs,
        pairs=pairs,
        warnings=_warnings(runs),
        holm_p=holm([pair.p_value for pair in pairs]),
        prediction_overlap=overlap.tolist(),
        difference=(difference - difference.T).tolist(),
    )


def show(found: Comparison, console: Console | None = None) -> None:
    """Print a comparison of two runs in full, of more as matrices."""
    from evaluation.results.console import wide_console

    console = console or wide_console(markup=True)
    if len(found.pairs) == 1:
        _show_pair(found.pairs[0], console)
    else:
        _show_all(found, console)
    for warning in found.warnings:
        console.print(f"Warning: {warning}.", markup=False, soft_wrap=True)


def _show_pair(pair: Pair, console: Console) -> None:
    from rich.markup import escape

    from evaluation.results.console import print_rows
    from evaluation.results.summary import p_value

    asked = f"[bold]{escape(pair.probe)}[/], {escape(pair.split)}"
    if pair.second_probe is not None:
        asked = (
            f"A on [bold]{escape(pair.probe)}[/], B on [bold]{escape(pair.second_probe)}[/], "
            f"{escape(pair.split)}, rows paired by id"
        )
    console.print(f"{asked}: {pair.compared:,} items in {pair.clusters:,} clusters")
    if pair.only_first or pair.only_second:
        console.print(f"left out: {pair.only_first:,} asked of A alone, {pair.only_second:,} of B")
    if pair.set_aside:
        console.print(f"left out: {pair.set_aside:,} that A, B or both set aside")
    runs = (("A", pair.first, pair.accuracy_first), ("B", pair.second, pair.accuracy_second))
    rows = [
        (
            name,
            run.label,
            run.metric,
            f"{100 * accuracy.value:.1f}",
            f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}",
        )
        for name, run, accuracy in runs
    ]
    print_rows(("", "model", "metric", "accuracy", "95% interval"), rows, console=console)
    console.print(
        f"B minus A: [bold]{_points(pair.difference)}[/], p = {p_value(pair.p_value)} "
        f"(McNemar, as if rows were independent: {p_value(pair.mcnemar_p)})"
    )
    console.print(
        f"right only in A {pair.only_first_right:,}, only in B {pair.only_second_right:,}"
    )
    overlap = f"same prediction {pair.prediction_overlap:.1%}"
    if pair.error_overlap is not None:
        overlap += f"; of {pair.both_wrong:,} wrong in both, the same way {pair.error_overlap:.1%}"
    console.print(overlap)
    families = [
        (
            part.family,
            f"{100 * part.first:.1f}",
            f"{100 * part.second:.1f}",
            _points(part.difference),
            f"{part.difference.n:,}",
        )
        for part in pair.by_family
    ]
    if families:
        print_rows(("family", "A", "B", "B minus A", "n"), families, names=1, console=console)


def _show_all(found: Comparison, console: Console) -> None:
    from evaluation.results.console import print_rows
    from evaluation.results.summary import p_value

    names = [str(number) for number in range(1, len(found.runs) + 1)]
    labels = [(name, run.label, run.metric) for name, run in zip(names, found.runs, strict=True)]
    print_rows(("", "model", "metric"), labels, console=console)
    for title, matrix, form in (
        ("accuracy of the row less that of the column, in points", found.difference, "{:+.1f}"),
        ("share of identical predictions", found.prediction_overlap, "{:.2f}"),
    ):
        console.print(f"\n{title}")
        rows = [
            (
                names[at],
                *("" if at == other else form.format(cell) for other, cell in enumerate(row)),
            )
            for at, row in enumerate(matrix)
        ]
        print_rows(("", *names), rows, names=1, console=console)
    console.print()
    numbered = zip(combinations(names, 2), found.pairs, found.holm_p, strict=True)
    pairs = [
        (
            f"{second} less {first}",
            _points(pair.difference),
            p_value(adjusted),
            f"{pair.compared:,}",
        )
        for (first, second), pair, adjusted in numbered
    ]
    print_rows(("", "difference", "p (Holm)", "n"), pairs, names=1, console=console)


def _points(difference: Estimate) -> str:
    low, high = difference.low, difference.high
    return f"{difference.value:+.1f} points ({low:+.1f} to {high:+.1f})"


def _describe(finished: Sequence[Finished]) -> list[ComparedRun]:
    times = Counter(run.evaluation.results.model.id for run in finished)
    runs = []
    for one in finished:
        results, model = one.evaluation.results, one.evaluation.results.model
        runs.append(
            ComparedRun(
                label=model.id if times[model.id] == 1 else f"{model.id} ({one.folder})",
                folder=str(one.folder),
                model=model.id,
                revision=model.revision,
                dtype=model.dtype,
                scorer=results.scoring.scorer,
                metric=METRIC_OF[results.metrics.normalization],
            )
        )
    return runs


def _warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """Warn where predictions were made with scores that are normalized in different ways."""
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


COMPARE = Study(
    name="compare",
    help="Compare results on the same probe, item by item.",
    expand=None,
    summarise=_summarise,
    show=show,
    options=CompareOptions,
    least=2,
)
