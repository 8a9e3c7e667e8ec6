"""The summary of the study: the numbers of each revision, and how answers change between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.models.revisions import Revision
from evaluation.results import intervals
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, StudyRequest
from evaluation.studies.pairing import pair_rows
from evaluation.studies.revisions.histories import NOT_SCORED, Histories, trace
from evaluation.studies.revisions.runs import revision_of
from evaluation.studies.revisions.types import (
    Change,
    FailedRevision,
    ModelRevisions,
    QuestionHistory,
    RevisionPoint,
    RevisionsSummary,
)

_LETTERS = {1: "r", 0: "w", NOT_SCORED: "."}


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> RevisionsSummary:
    """Summarise the runs of all models on all probes."""
    return summarise_rest(request, finished, ())


def summarise_rest(
    request: StudyRequest, finished: Sequence[Finished], failed: Sequence[Failed]
) -> RevisionsSummary:
    """Summarise the runs that are finished, and name the revisions that failed."""
    runs: dict[tuple[str, int], list[tuple[Revision, Finished]]] = {}
    for run in finished:
        if run.spec is not None:
            model, revision = revision_of(request, run.spec)
            runs.setdefault((model, _probe(request, run.spec)), []).append((revision, run))
    missing: dict[tuple[str, int], list[FailedRevision]] = {}
    for one in failed:
        model, revision = revision_of(request, one.spec)
        said = FailedRevision(name=revision.name, step=revision.step, error=str(one.error))
        missing.setdefault((model, _probe(request, one.spec)), []).append(said)
    seed = request.defaults.run.seed
    return RevisionsSummary(
        models=[
            _of_model(place[0], held, missing.get(place, []), seed) for place, held in runs.items()
        ]
    )


def _probe(request: StudyRequest, spec: RunSpec) -> int:
    """Return the place of a run's probe among those of the request."""
    return next(at for at, probe in enumerate(request.probes) if probe is spec.probe)


def _of_model(
    model: str,
    held: Sequence[tuple[Revision, Finished]],
    failed: list[FailedRevision],
    seed: int,
) -> ModelRevisions:
    revisions, runs = [revision for revision, _ in held], [run for _, run in held]
    histories = trace(runs)
    results = runs[0].evaluation.results
    answers = histories.answers
    scored = (answers != NOT_SCORED).any(axis=0)
    return ModelRevisions(
        probe=results.probe.name,
        split=results.probe.split,
        model=model,
        scorer=results.scoring.scorer,
        rows=results.metrics.items,
        clusters=results.metrics.clusters,
        chance=results.metrics.chance,
        baselines=results.metrics.baselines,
        by_step=all(one.step is not None for one in revisions),
        points=[_point(place, revisions, runs, histories, seed) for place in range(len(revisions))],
        failed=failed,
        always_right=int((scored & (answers != 0).all(axis=0)).sum()),
        never_right=int((scored & (answers != 1).all(axis=0)).sum()),
        wavering=int((histories.changes > 1).sum()),
        questions=_questions(runs[0], revisions, histories),
    )


def _point(
    place: int,
    revisions: Sequence[Revision],
    runs: Sequence[Finished],
    histories: Histories,
    seed: int,
) -> RevisionPoint:
    revision, run, last = revisions[place], runs[place], len(runs) - 1
    results = run.evaluation.results
    return RevisionPoint(
        name=revision.name,
        step=revision.step,
        commit=results.model.revision,
        weights_sha256=results.model.weights_sha256,
        folder=None if run.folder is None else str(run.folder),
        scored=results.metrics.scored,
        accuracy=results.metrics.accuracy,
        since_first=_change(runs[0], run, seed) if place else None,
        since_previous=_change(runs[place - 1], run, seed) if place else None,
        until_last=_change(run, runs[last], seed) if place < last else None,
        learnt_for_good=histories.settled(place, right=True),
        forgotten_for_good=histories.settled(place, right=False),
    )


def _change(earlier: Finished, later: Finished, seed: int) -> Change:
    """Compare two revisions on the questions that both answered."""
    paired = pair_rows(earlier, later)
    (before, now), clusters = paired.right, paired.clusters
    return Change(
        questions=before.size,
        difference=intervals.paired_difference(before, now, clusters, seed),
        p_value=paired.p_value,
        became_right=float((now & ~before).mean()),
        became_wrong=float((before & ~now).mean()),
    )


def _questions(
    run: Finished, revisions: Sequence[Revision], histories: Histories
) -> list[QuestionHistory]:
    names: list[str | None] = [*(one.name for one in revisions), None]  # -1: none
    letters = np.vectorize(_LETTERS.__getitem__)(histories.answers).T
    shown = run.evaluation.predictions.select(["id", "cluster", "question"]).to_pylist()
    return [
        QuestionHistory(
            **item,
            answers="".join(letters[at]),
            learnt=names[histories.learnt[at]],
            forgotten=names[histories.forgotten[at]],
            changes=int(histories.changes[at]),
        )
        for at, item in enumerate(shown)
    ]
