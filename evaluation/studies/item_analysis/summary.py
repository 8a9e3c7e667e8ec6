"""The summary of the study: every item of each probe, in the order to read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from pydantic import Field

from evaluation.studies.answers import Answers, gather
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.item_analysis.numbers import point_biserial, rivals
from evaluation.studies.item_analysis.types import (
    NAME,
    SUSPECTED,
    ItemRow,
    ItemsRun,
    ItemsSummary,
    ProbeItems,
    Remark,
)
from evaluation.studies.labels import run_labels
from evaluation.studies.pairing import runs_by_probe
from kbprobe.options import Options

FEWEST_RUNS = 3


class ItemsOptions(Options):
    """How items are analysed."""

    rows: int = Field(25, ge=1, description="Items of each probe to show; the files hold all.")
    partial: bool = Field(False, description="Take the items that each run has, if not all.")


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> ItemsSummary:
    """Analyse the items of each probe.

    Raises:
        UsageError: a probe has fewer than three runs; runs on different rows while ``partial`` is
            off.
    """
    options: ItemsOptions = request.options
    labels = run_labels(finished)
    probes = [
        _probe(
            [finished[number] for number in numbers],
            [labels[number] for number in numbers],
            options.partial,
        )
        for numbers in runs_by_probe(finished, NAME, FEWEST_RUNS)
    ]
    return ItemsSummary(rows=options.rows, probes=probes)


def _probe(runs: Sequence[Finished], labels: Sequence[str], partial: bool) -> ProbeItems:
    shown, answers = gather(runs, partial=partial)
    correlation, rival = point_biserial(answers), rivals(answers)
    right, models = answers.right.sum(axis=1), answers.scored.sum(axis=1)
    for_rival = (answers.said == rival.choice[:, None]).sum(axis=1) * (rival.choice >= 0)
    suspected = (rival.evidence >= SUSPECTED) & (for_rival >= 2)
    stands_out: list[tuple[Remark, np.ndarray[tuple[int], np.dtype[np.bool_]]]] = [
        ("suspected key", suspected),
        ("no model right", right == 0),
        ("every model right", right == models),
        ("negative correlation", correlation < 0),
    ]
    # To be read first: by evidence; of the same evidence, what good models get wrong.
    order = np.lexsort((np.nan_to_num(correlation), -rival.evidence))
    first = runs[0].evaluation.results
    known = correlation[~np.isnan(correlation)]
    sorted_items = shown.take(order).to_pylist()
    return ProbeItems(
        probe=first.probe.name,
        split=first.probe.split,
        chance=float((1 / answers.choices).mean()),
        runs=[
            ItemsRun(
                label=label,
                folder=str(run.folder),
                accuracy=run.evaluation.results.metrics.accuracy,
            )
            for run, label in zip(runs, labels, strict=True)
        ],
        alike=_alike(answers, labels),
        suspected=int(suspected.sum()),
        none_right=int((right == 0).sum()),
        all_right=int((right == models).sum()),
        negative=int((correlation < 0).sum()),
        mean_point_biserial=float(known.mean()) if known.size else None,
        items=[
            ItemRow(
                id=item["id"],
                cluster=item["cluster"],
                question=item["question"],
                choices=item["choices"],
                key=item["answer"],
                rival=_known(int(rival.choice[at])),
                said=[_known(choice) for choice in answers.said[at].tolist()],
                models=int(models[at]),
                right=int(right[at]),
                for_rival=int(for_rival[at]),
                point_biserial=None if np.isnan(correlation[at]) else float(correlation[at]),
                evidence=float(rival.evidence[at]),
                remarks=[remark for remark, holds in stands_out if holds[at]],
            )
            for at, item in zip(order.tolist(), sorted_items, strict=True)
        ],
    )


def _known(choice: int) -> int | None:
    return None if choice < 0 else choice


def _alike(answers: Answers, labels: Sequence[str]) -> list[list[str]]:
    """Return pairs of runs whose answers are all the same."""
    return [
        [labels[one], labels[two]]
        for one, two in combinations(range(len(labels)), 2)
        if np.array_equal(answers.said[:, one], answers.said[:, two])
    ]
