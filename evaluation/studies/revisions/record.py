"""The contents of ``revisions.json``: what each number means, and how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, model_validator

from evaluation.models.revisions import Revision, find_revisions
from evaluation.results import intervals
from evaluation.results.breakdown import bools
from evaluation.results.histories import NOT_SCORED, Histories, follow
from evaluation.results.sealed import Sealed
from evaluation.results.types import Estimate, Model
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, StudyRequest, read_summary
from evaluation.studies.counting import group_by
from evaluation.studies.pairing import pair_rows
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.errors import UsageError
from kbprobe.options import Options

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource


SCHEMA_VERSION = "1.0"


class Change(Model):
    """How the answers of a revision differ from those of another one, on the same questions."""

    questions: int = Field(description="Questions that both revisions answered.")
    difference: Estimate = Field(
        description="Accuracy less that of the other revision, in percentage points; both are "
        "resampled together, by cluster."
    )
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the revisions swapped in whole clusters."
    )
    became_right: float = Field(description="Share of the questions that only this one has right.")
    became_wrong: float = Field(description="Share that only the other revision has right.")


class RevisionPoint(Model):
    """One revision of a model on a probe."""

    name: str = Field(description="Branch, tag or commit; of a folder, the checkpoint in it.")
    step: int | None = Field(description="The training step that it is named after, if any.")
    commit: str | None = Field(description="The commit on the Hub; null for a folder.")
    weights_sha256: str = Field(description="Hash of weights and configuration.")
    folder: str | None = Field(description="The folder of its results; null: none was written.")
    scored: int = Field(description="Questions that it answered.")
    accuracy: Estimate = Field(description="Accuracy on these.")
    since_first: Change | None = Field(description="Beside the first revision; null for that one.")
    since_previous: Change | None = Field(description="Beside the revision before; null: none is.")
    until_last: Change | None = Field(
        description="How the last revision differs from this one; null for the last."
    )
    learnt_for_good: int = Field(
        description="Questions that were wrong before, are right here, and right ever after."
    )
    forgotten_for_good: int = Field(
        description="Questions that were right before, are wrong here, and wrong ever after."
    )


class QuestionHistory(Model):
    """One question over the revisions."""

    id: str = Field(description="The item's id.")
    cluster: str | None = Field(description="Its cluster; null if it has none.")
    question: str | None = Field(description="Its text.")
    answers: str = Field(
        description="A letter for each revision, in order: r right, w wrong, . not scored."
    )
    learnt: str | None = Field(
        description="The last revision at which it became right; null: it never did."
    )
    forgotten: str | None = Field(
        description="The last revision at which it became wrong; null: it never did."
    )
    changes: int = Field(description="How often it became right or wrong.")


class FailedRevision(Model):
    """A revision that could not be evaluated."""

    name: str
    step: int | None
    error: str = Field(description="Why.")


class ModelRevisions(Model):
    """The revisions of a model on a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    scorer: str = Field(description="What choices were scored by.")
    rows: int = Field(description="Questions asked.")
    clusters: int = Field(description="Clusters with a question that the first revision answered.")
    chance: float = Field(description="Mean of one over the number of choices.")
    baselines: dict[str, float] = Field(
        description="Accuracy of each artefact baseline of the probe's audit."
    )
    by_step: bool = Field(description="Whether all revisions are named after their steps.")
    points: list[RevisionPoint] = Field(description="The revisions, in order.")
    failed: list[FailedRevision] = Field(description="Revisions that are not among the points.")
    always_right: int = Field(description="Questions that every revision that answered has right.")
    never_right: int = Field(description="Questions that none has right.")
    wavering: int = Field(description="Questions that became right or wrong more than once.")
    questions: list[QuestionHistory] = Field(description="The questions, in the probe's order.")


class RevisionsSummary(Model, Sealed):
    """The contents of ``revisions.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    models: list[ModelRevisions] = Field(description="Each model on each probe.")


def read_revisions(folder: Path) -> RevisionsSummary:
    """Read ``revisions.json`` of a folder, or the file itself.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    makes = "PROBE --model MODEL --revisions A,B"
    return read_summary(folder, "revisions", RevisionsSummary, SCHEMA_VERSION, makes)


FIXED = frozenset({"revision", "random_weights"})
"""Options of runs that the study sets itself."""


class RevisionsOptions(Options):
    """Which revisions are evaluated."""

    revisions: tuple[str, ...] = Field(
        (),
        description="Names of revisions, and patterns: 'step*' for the branches and tags on the "
        "Hub that match it, 'checkpoint-*' for the checkpoints in a folder. Required.",
    )

    @model_validator(mode="after")
    def _names_some(self) -> RevisionsOptions:
        if not self.revisions:
            raise ValueError(
                "name the revisions with --revisions, such as --revisions step1000,step2000 or "
                "--revisions 'step*' on the Hub, or --revisions 'checkpoint-*' of a folder with "
                "checkpoints in it"
            )
        return self


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by revision.

    Raises:
        UsageError: a model has none of the revisions, or only one.
        KbprobeError: the list of revisions cannot be fetched from the Hub.
    """
    options: RevisionsOptions = request.options
    specs = []
    for model in request.models:
        found = find_revisions(model, options.revisions)
        if len(found) < 2:
            raise UsageError(
                f"--revisions {','.join(options.revisions)} stands for a single revision of "
                f"{model} ({found[0].name}): name two or more. A single one is evaluated by "
                f"evaluate-probe PROBE --model {found[0].model}"
                + ("" if found[0].revision is None else f" --revision {found[0].revision}")
            )
        specs += [_spec(request, probe, model, one) for one in found for probe in request.probes]
    return specs


def _revision_of(request: StudyRequest, spec: RunSpec) -> tuple[str, Revision]:
    """Return the model, as it was given, and the revision that a run of the study evaluates."""
    if spec.run.revision is not None:
        return spec.model, Revision(spec.run.revision, spec.model, spec.run.revision)
    path = Path(spec.model)
    within = [model for model in request.models if path.is_relative_to(model)]
    model = max(within, key=lambda one: len(Path(one).parts))
    return model, Revision(path.relative_to(model).as_posix(), spec.model, None)


def _spec(request: StudyRequest, probe: ProbeSource, model: str, one: Revision) -> RunSpec:
    """Return a run; the folder of its results is within that of the model."""
    named = request.spec(probe, model, revision=one.name)
    if one.revision is not None:
        return named
    return replace(request.spec(probe, one.model), folder=named.folder)


def _trace(runs: Sequence[Finished]) -> Histories:
    """Follow each question over the runs of all revisions, in their order.

    A revision that did not score a question leaves its state unchanged.

    Raises:
        UsageError: the runs are not on the same rows.
    """
    first = runs[0].results.probe.fingerprint
    for run in runs:
        if run.results.probe.fingerprint != first:
            raise UsageError(
                f"{run.folder} and {runs[0].folder} are not on the same rows: the probe was "
                "built anew between them. Evaluate all revisions again with --overwrite"
            )
    return follow(np.stack([_answers(run) for run in runs]))


def _answers(run: Finished) -> Ints:
    table = run.predictions
    scored = to_numpy(table["prediction"].is_valid().cast("int8")).astype(np.bool_)
    return np.where(scored, bools(table["correct"]), NOT_SCORED).astype(np.int64)


_LETTERS = {1: "r", 0: "w", NOT_SCORED: "."}


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> RevisionsSummary:
    """Summarise the runs of all models on all probes."""
    return summarise_rest(request, finished, ())


def summarise_rest(
    request: StudyRequest, finished: Sequence[Finished], failed: Sequence[Failed]
) -> RevisionsSummary:
    """Summarise the runs that are finished, and name the revisions that failed."""

    def place(spec: RunSpec) -> tuple[str, int]:
        """Return the model, as it was given, and the index of the probe."""
        probes = enumerate(request.probes)
        return _revision_of(request, spec)[0], next(at for at, one in probes if one is spec.probe)

    runs = group_by(finished, lambda run: place(run.asked))
    missing = group_by(failed, lambda one: place(one.spec))
    return RevisionsSummary(
        models=[_of_model(request, held, missing.get(key, [])) for key, held in runs.items()]
    )


def _of_model(
    request: StudyRequest, runs: Sequence[Finished], failed: Sequence[Failed]
) -> ModelRevisions:
    model = _revision_of(request, runs[0].asked)[0]
    revisions = [_revision_of(request, run.asked)[1] for run in runs]
    lacking = [(_revision_of(request, one.spec)[1], one.error) for one in failed]
    seed = request.defaults.run.seed
    histories = _trace(runs)
    results = runs[0].results
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
        failed=[
            FailedRevision(name=revision.name, step=revision.step, error=str(error))
            for revision, error in lacking
        ],
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
    results = run.results
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
    shown = run.predictions.select(["id", "cluster", "question"]).to_pylist()
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
