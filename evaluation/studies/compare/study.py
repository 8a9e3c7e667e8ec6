"""Runs of several models on the same rows, compared row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from pydantic import Field

from evaluation.results import intervals
from evaluation.results.breakdown import cluster_codes, named_rows
from evaluation.results.significance import holm, mcnemar
from evaluation.results.types import METRIC_OF
from evaluation.results.words import natural_key
from evaluation.studies.answers import gather
from evaluation.studies.base import Finished, Study, StudyRequest, summarise_folders
from evaluation.studies.compare.show import show
from evaluation.studies.compare.types import (
    NAME,
    ComparedRun,
    Comparison,
    FamilyDifference,
    Pair,
    Wording,
)
from evaluation.studies.labels import run_labels
from evaluation.studies.pairing import are_configs, pair_rows
from kbprobe.errors import require
from kbprobe.options import Options


class CompareOptions(Options):
    """How results are compared."""

    partial: bool = Field(False, description="Compare the items that both have, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


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
        wordings=_wordings(finished, options.seed),
    )


def _wordings(finished: Sequence[Finished], seed: int) -> list[Wording]:
    """Average the runs' accuracy by wording, on the rows that all scored."""
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


def _page(found: Comparison) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.compare.page import render, write_pairs

    return {f"{NAME}.html": render(found), f"{NAME}.csv": write_pairs(found)}


COMPARE = Study(
    name=NAME,
    help="Compare two or more results on the same probe, item by item: each with each.",
    expand=None,
    summarise=_summarise,
    show=show,
    page=_page,
    options=CompareOptions,
    least=2,
)
