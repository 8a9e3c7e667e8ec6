"""The summary of the study: accuracy over all folds, and its variation over them and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from statistics import mean, stdev

import numpy as np

from evaluation.items.folds import names_folds
from evaluation.items.sources import ProbeSource, UnknownSplit, open_probe
from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.analyses.vocabulary import Slope, measure_vocabulary, table_words
from evaluation.results.intervals import TwoWayBootstrap
from evaluation.results.types import Estimate
from evaluation.results.words import last_name
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import count_clusters
from evaluation.studies.crossval.runs import MAJORITY, Folds, open_folds, scorer_as_it_is
from evaluation.studies.crossval.types import (
    CrossvalRow,
    CrossvalSummary,
    Kind,
    ProbeCrossval,
)
from evaluation.studies.models import open_model
from kbprobe.format.setups import SPLITS

Row = tuple[Kind, str, str | None]
"""What a row of the table is: its kind, model and learner."""


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> CrossvalSummary:
    """Summarise the runs of all folds."""
    return CrossvalSummary(probes=[_probe(request, probe, finished) for probe in request.probes])


def _probe(
    request: StudyRequest, probe: ProbeSource, finished: Sequence[Finished]
) -> ProbeCrossval:
    own = open_folds(request, probe)
    groups: dict[Row, list[Finished]] = {}
    for run in finished:
        if run.spec is not None and _same(run.spec.probe, probe):
            groups.setdefault(_row_of(run), []).append(run)
    seed = request.defaults.run.seed
    first = next(iter(groups.values()))[0].evaluation.results
    rows = [_summary(row, runs, seed) for row, runs in sorted(groups.items(), key=_place)]
    return ProbeCrossval(
        probe=first.probe.name,
        source=own.rows.source,
        split=own.rows.split,
        setup=own.rows.items[0].setup,
        rows=len(own.rows.items),
        clusters=len(set(own.rows.about["cluster"].to_pylist())),
        folds=own.sizes,
        train=own.train,
        chance=float(np.mean(1 / np.diff(own.rows.items.starts))),
        human=_human(request, probe),
        results=rows,
        notes=_notes(request, own, groups),
    )


def _same(one: ProbeSource, other: ProbeSource) -> bool:
    return one is other or (isinstance(one, str) and one == other)


def _row_of(run: Finished) -> Row:
    results = run.evaluation.results
    learner = (results.model.finetuning or {}).get("learner")
    model = results.model.id
    if model == NO_MODEL:
        return "majority", model, MAJORITY
    if learner is None:
        return "zero_shot", model, None
    random = results.model.random_weights is not None
    return "random" if random else "learner", model, str(learner)


_ORDER: tuple[Kind, ...] = ("majority", "random", "learner", "zero_shot")


def _place(entry: tuple[Row, list[Finished]]) -> int:
    """Order rows as [F], Table 2: majority, random encoders, and then the models."""
    return min(2, _ORDER.index(entry[0][0]))


def _summary(row: Row, runs: Sequence[Finished], seed: int) -> CrossvalRow:
    """Average over folds and repetitions; clusters and repetitions are resampled."""
    folds = [run.evaluation.results.scoring.options["fold"] for run in runs]
    names = [_repetition(run) for run in runs]
    repetitions = list(dict.fromkeys(names))
    counts = count_clusters(runs)
    # Each repetition's counts: those of all its folds together.
    member = np.array([[name == one for one in repetitions] for name in names], dtype=np.int64)
    right, scored = counts.right @ member, counts.scored @ member
    bootstrap = TwoWayBootstrap(right, scored, seed=seed)
    average = bootstrap.average({number: number for number in range(len(repetitions))})
    of_runs = counts.right.sum(axis=0) / counts.scored.sum(axis=0)
    of_folds = [
        float(mean(of_runs[at] for at, own in enumerate(folds) if own == fold))
        for fold in sorted(set(folds))
    ]
    each = bootstrap.accuracies.tolist()
    kind, model, learner = row
    return CrossvalRow(
        kind=kind,
        model=model,
        learner=learner,
        accuracy=average.estimate(),
        folds=of_folds,
        fold_mean=mean(of_folds),
        fold_sd=stdev(of_folds),
        repetitions=each,
        repetition_sd=stdev(each) if len(each) > 1 else None,
        vocabulary=_vocabulary(runs, folds, fitted=learner not in (None, MAJORITY)),
    )


def _vocabulary(runs: Sequence[Finished], folds: Sequence[int], fitted: bool) -> list[Slope]:
    """Regress whether rows are right on the words that they share with other folds."""
    tables = [run.predictions for run in runs]
    words = {fold: table_words(table) for fold, table in zip(folds, tables, strict=True)}
    others: dict[int, set[str]] = {
        fold: set().union(*(words[other] for other in words if fitted and other != fold))
        for fold in words
    }
    parts = [(table, others[fold]) for fold, table in zip(folds, tables, strict=True)]
    found = measure_vocabulary(parts)
    return [] if found is None else found.slopes


def _repetition(run: Finished) -> tuple[object, ...]:
    results = run.evaluation.results
    return results.model.random_weights, (results.model.finetuning or {}).get("seed")


def _human(request: StudyRequest, probe: ProbeSource) -> Estimate | None:
    """Return the accuracy of people's votes, of the first split with annotations."""
    config = request.defaults.run.config
    for split in SPLITS:
        with suppress(UnknownSplit):
            manifest = open_probe(probe, split=split, config=config).manifest
            if manifest is None or manifest.annotation is None:
                continue
            if (found := manifest.annotation.vote_accuracy) is not None:
                own = found.model_dump(include={"value", "low", "high", "n"})
                return Estimate(**own, method="cluster bootstrap")
    return None


def _notes(request: StudyRequest, own: Folds, groups: dict[Row, list[Finished]]) -> list[str]:
    notes = []
    if not names_folds(own.rows):
        notes.append(
            f"The rows have no folds: their clusters were divided into {len(own.sizes)} by a hash "
            "of their names."
        )
    for model in request.models:
        if model == NO_MODEL:
            continue
        if scorer_as_it_is(request, open_model(request, model), own.setups) is None:
            notes.append(
                f"{last_name(model)} cannot be evaluated without training: it does not score "
                "these labels."
            )
    overlap = {
        run.evaluation.results.scoring.notes.get("train_overlap", 0)
        for runs in groups.values()
        for run in runs
    }
    if any(overlap):
        notes.append(
            "Clusters are in several folds: rows evaluated are related to rows fitted on, so "
            "accuracies are too high."
        )
    return notes
