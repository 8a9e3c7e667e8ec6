"""The summary of the study: each pair of models on each probe, and means over probes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev

from pydantic import Field

from evaluation.results import intervals
from evaluation.results.types import Estimate
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.labels import run_labels
from evaluation.studies.overlap.numbers import measure_pair
from evaluation.studies.overlap.types import (
    NAME,
    Kappa,
    MeanOverlap,
    OverlapRun,
    OverlapSummary,
    PairOverlap,
    ProbeOverlap,
    Restarts,
)
from evaluation.studies.pairing import pair_rows, runs_by_probe
from kbprobe.options import Options


class OverlapOptions(Options):
    """How answers are compared."""

    partial: bool = Field(False, description="Compare the rows that each pair shares, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> OverlapSummary:
    """Compare the answers of each two runs on each probe.

    Raises:
        UsageError: a probe has a single run; runs on different rows while ``partial`` is off.
    """
    options: OverlapOptions = request.options
    labels = run_labels(finished)
    probes = [
        _probe([(finished[number], labels[number]) for number in numbers], options)
        for numbers in runs_by_probe(finished, NAME)
    ]
    return OverlapSummary(probes=probes, mean=_means(probes))


def _probe(runs: Sequence[tuple[Finished, str]], options: OverlapOptions) -> ProbeOverlap:
    pairs = [
        measure_pair(pair_rows(one, two, partial=options.partial), (label, other), options.seed)
        for (one, label), (two, other) in combinations(runs, 2)
    ]
    first = runs[0][0].evaluation.results
    described = [_describe(run, label) for run, label in runs]
    return ProbeOverlap(
        probe=first.probe.name,
        split=first.probe.split,
        chance=first.metrics.chance,
        runs=described,
        pairs=pairs,
        restarts=_restarts(described, pairs),
    )


def _describe(run: Finished, label: str) -> OverlapRun:
    results = run.evaluation.results
    return OverlapRun(
        label=label,
        folder=str(run.folder),
        model=results.model.id,
        random_weights=results.model.random_weights,
        accuracy=results.metrics.accuracy,
    )


def _restarts(runs: Sequence[OverlapRun], pairs: Sequence[PairOverlap]) -> list[Restarts]:
    """Summarise the random restarts of each architecture of which there are several."""
    by_model: dict[str, list[OverlapRun]] = {}
    for run in runs:
        if run.random_weights is not None:
            by_model.setdefault(run.model, []).append(run)
    found = []
    for model, held in by_model.items():
        if len(held) < 2:
            continue
        labels = [run.label for run in held]
        among = [pair for pair in pairs if pair.first in labels and pair.second in labels]
        kappas = [pair.kappa.value for pair in among if pair.kappa is not None]
        values = [run.accuracy.value for run in held]
        found.append(
            Restarts(
                model=model,
                labels=labels,
                accuracy=fmean(values),
                deviation=stdev(values),
                overlap=fmean(pair.overlap.value for pair in among),
                kappa=fmean(kappas) if len(kappas) == len(among) else None,
            )
        )
    return found


def _means(probes: Sequence[ProbeOverlap]) -> list[MeanOverlap]:
    """Average over probes, where all models are on all of several."""
    labels = [run.label for run in probes[0].runs]
    if len(probes) < 2 or any({r.label for r in one.runs} != set(labels) for one in probes):
        return []
    means = []
    for first, second in combinations(labels, 2):
        held = [
            next(pair for pair in one.pairs if {pair.first, pair.second} == {first, second})
            for one in probes
        ]
        means.append(
            MeanOverlap(
                first=first,
                second=second,
                overlap=intervals.mean_of_independent([pair.overlap for pair in held]),
                error_overlap=_mean_estimate([pair.error_overlap for pair in held]),
                kappa=_mean_kappa(held),
            )
        )
    return means


def _mean_estimate(estimates: Sequence[Estimate | None]) -> Estimate | None:
    held = [one for one in estimates if one is not None]
    return intervals.mean_of_independent(held) if len(held) == len(estimates) else None


def _mean_kappa(pairs: Sequence[PairOverlap]) -> Kappa | None:
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    if len(kappas) < len(pairs):
        return None
    estimates = [pair.kappa.estimate(pair.compared) for pair in pairs if pair.kappa is not None]
    known = [one for one in estimates if one is not None]
    if len(known) < len(pairs):
        return Kappa(value=fmean(kappa.value for kappa in kappas), low=None, high=None)
    mean = intervals.mean_of_independent(known)
    return Kappa(value=mean.value, low=mean.low, high=mean.high)
