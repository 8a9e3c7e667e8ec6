"""Revisions: several revisions of a model, such as its training steps, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from pydantic import Field, model_validator

from evaluation.models.revisions import Revision, find_revisions
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.breakdown import bools
from evaluation.results.histories import NOT_SCORED, Histories, follow
from evaluation.results.types import Estimate, Model
from evaluation.results.words import (
    clip,
    difference,
    interval,
    last_name,
    name_or_count,
    percent,
    short,
)
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.pairing import pair_rows
from evaluation.studies.records import Record
from evaluation.tracking import Tracked, metrics_of
from kbprobe import document as doc
from kbprobe.columns import mask
from kbprobe.errors import UsageError
from kbprobe.format.sealed import Sealed
from kbprobe.options import Options
from kbprobe.tables import csv_text

SCHEMA_VERSION = "1.0"
_NAME = 30
"""Maximum length of a revision's name in tables."""


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


class RevisionPoint(Record):
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


class ModelRevisions(Record):
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

    @property
    def title(self) -> str:
        """The model and the probe."""
        return f"{last_name(self.model)} on {self.probe}"


class RevisionsSummary(Model, Sealed):
    """The contents of ``revisions.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    models: list[ModelRevisions] = Field(description="Each model on each probe.")


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


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by revision."""
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
        for one, probe in product(found, request.probes):
            spec = request.spec(probe, model, revision=one.name)
            if one.revision is None:  # a folder, whose results go to one within that of the model
                spec = replace(request.spec(probe, one.model), folder=spec.folder)
            specs.append(spec)
    return specs


def _revision_of(request: StudyRequest, spec: RunSpec) -> tuple[str, Revision]:
    """Return the model, as it was given, and the revision that a run of the study evaluates."""
    if spec.run.revision is not None:
        return spec.model, Revision(spec.run.revision, spec.model, spec.run.revision)
    path = Path(spec.model)
    within = [model for model in request.models if path.is_relative_to(model)]
    model = max(within, key=lambda one: len(Path(one).parts))
    return model, Revision(path.relative_to(model).as_posix(), spec.model, None)


def _trace(runs: Sequence[Finished]) -> Histories:
    """Follow each question over the runs of all revisions, in their order.

    A revision that did not score a question leaves its state unchanged.
    """
    first, answers = runs[0], []
    for run in runs:
        if run.results.probe.fingerprint != first.results.probe.fingerprint:
            raise UsageError(
                f"{run.folder} and {first.folder} are not on the same rows: the probe was "
                "built anew between them. Evaluate all revisions again with --overwrite"
            )
        table = run.predictions
        answered = mask(table["prediction"].is_valid())
        answers.append(np.where(answered, bools(table["correct"]), NOT_SCORED).astype(np.int64))
    return follow(np.stack(answers))


def _summarise(
    request: StudyRequest, finished: Sequence[Finished], failed: Sequence[Failed] = ()
) -> RevisionsSummary:
    """Summarise the runs that are finished, and name the revisions that failed."""

    def place(spec: RunSpec) -> tuple[str, int]:
        """Return the model, as it was given, and the identity of the probe."""
        return _revision_of(request, spec)[0], id(spec.probe)

    runs = group_by(finished, lambda run: place(run.asked))
    missing = group_by(failed, lambda one: place(one.spec))
    models = [_of_model(request, own, missing.get(key, [])) for key, own in runs.items()]
    return RevisionsSummary(models=models)


def _of_model(
    request: StudyRequest, runs: Sequence[Finished], failed: Sequence[Failed]
) -> ModelRevisions:
    revisions = [_revision_of(request, run.asked)[1] for run in runs]
    lacking = [(_revision_of(request, one.spec)[1], str(one.error)) for one in failed]
    seed, histories = request.defaults.run.seed, _trace(runs)
    answers = histories.answers
    scored = (answers != NOT_SCORED).any(axis=0)
    return ModelRevisions.of(
        runs[0],
        model=_revision_of(request, runs[0].asked)[0],
        by_step=all(one.step is not None for one in revisions),
        points=[
            _point(place, revision, runs, histories, seed)
            for place, revision in enumerate(revisions)
        ],
        failed=[
            FailedRevision(name=one.name, step=one.step, error=error) for one, error in lacking
        ],
        always_right=int((scored & (answers != 0).all(axis=0)).sum()),
        never_right=int((scored & (answers != 1).all(axis=0)).sum()),
        wavering=int((histories.changes > 1).sum()),
        questions=_questions(runs[0], revisions, histories),
    )


def _point(
    place: int, revision: Revision, runs: Sequence[Finished], histories: Histories, seed: int
) -> RevisionPoint:
    run = runs[place]
    return RevisionPoint.of(
        run,
        name=revision.name,
        step=revision.step,
        commit=run.results.model.revision,
        since_first=_change(runs[0], run, seed) if place else None,
        since_previous=_change(runs[place - 1], run, seed) if place else None,
        until_last=_change(run, runs[-1], seed) if run is not runs[-1] else None,
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
    letters = np.array(["w", "r", "."])[histories.answers].T  # NOT_SCORED, -1, is the last
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


def _document(summary: RevisionsSummary) -> doc.Document:
    """Return the document: a section for each model on each probe."""
    title = name_or_count([one.title for one in summary.models], "series of revisions")
    return doc.Document("Revisions", title, [_section(one) for one in summary.models])


def _section(one: ModelRevisions) -> doc.Section:
    last = one.points[-1]
    failed = f"{len(one.failed)} more failed" if one.failed else ""
    return doc.Section(
        f"{one.title} ({one.split})",
        [
            doc.Tiles(
                {
                    f"Accuracy at {clip(last.name, 40)}": cells.headline(last.accuracy),
                    "Revisions": doc.Cell(f"{len(one.points):,}", failed),
                    **cells.asked(one.chance, one.rows, one.clusters),
                }
            ),
            _chart(one),
            doc.Findings(_sentences(one)),
            doc.Caveats(_caveats(one)),
            doc.Table.of(
                one.points,
                {
                    "revision": lambda point: short(point.name, _NAME),
                    "accuracy": lambda point: point.accuracy,
                    "since previous": lambda point: _gain(point.since_previous),
                    "since first": lambda point: _gain(point.since_first),
                    "until last": lambda point: _gain(point.until_last),
                },
                "Accuracy, and its differences in percentage points, with 95% intervals",
            ),
            doc.Table.of(
                one.points,
                {
                    "revision": lambda point: short(point.name, _NAME),
                    "became right": lambda p: p.since_previous and p.since_previous.became_right,
                    "became wrong": lambda p: p.since_previous and p.since_previous.became_wrong,
                    "learnt for good": lambda point: point.learnt_for_good,
                    "forgotten for good": lambda point: point.forgotten_for_good,
                },
                "Questions that changed since the revision before, and questions that changed for "
                "the last time",
            ),
        ],
        link=one.title,
    )


def _gain(change: Change | None) -> doc.Cell:
    return cells.points(change and change.difference)


def _chart(one: ModelRevisions) -> doc.Chart:
    """Draw accuracy, and below it the shares that became right or wrong."""
    steps = [point.step or 0 for point in one.points]
    across = [float(place) for place in (steps if one.by_step else range(len(one.points)))]
    levels = [doc.Level("chance", one.chance)]
    if one.baselines:
        best = max(one.baselines, key=one.baselines.__getitem__)
        levels.append(doc.Level(f"baseline: {best}", one.baselines[best], "reference", "dashed"))
    changes = [p.since_previous for p in one.points if p.since_previous is not None]
    right, wrong = [c.became_right for c in changes], [c.became_wrong for c in changes]
    return doc.Chart(
        f"Accuracy on {one.probe} by revision of the model, and the questions that change.",
        [
            doc.Panel(
                [doc.Line("accuracy", across, [point.accuracy for point in one.points])], levels
            ),
            doc.Panel(
                [
                    doc.Line("became right", across[1:], right),
                    doc.Line("became wrong", across[1:], wrong, "reference"),
                ],
                title="Questions that changed since the revision before",
                from_zero=True,
            ),
        ],
        doc.Across("training step", "steps", steps)
        if one.by_step
        else doc.Across("", "names", [point.name for point in one.points]),
        note="Above: accuracy of each revision; the band is its 95% interval. Below: the share of "
        "questions that became right (blue) or wrong (orange) since the revision before.",
    )


def _sentences(one: ModelRevisions) -> list[str]:
    """Describe how accuracy changes, when it exceeds chance, and which questions are unstable."""
    first, last = one.points[0], one.points[-1]
    said = []
    if last.since_first is not None:
        said.append(
            f"From {first.name} to {last.name}, accuracy goes from {percent(first.accuracy.value)} "
            f"to {percent(last.accuracy.value)}: {difference(last.since_first.difference)}."
        )
    said.append(_above_chance(one))
    best = max(one.points, key=lambda point: point.accuracy.value)
    if best.until_last is not None and best.accuracy.value > last.accuracy.value:
        said.append(
            f"It is highest at {best.name}, {percent(best.accuracy.value)} "
            f"({interval(best.accuracy)}); from there to {last.name} it changes by "
            f"{difference(best.until_last.difference)}."
        )
    shares = (one.always_right, one.never_right, one.wavering)
    always, never, wavering = (percent(count / one.rows) for count in shares)
    said.append(
        f"{always} of the questions are right at every revision, {never} at none; {wavering} "
        "became right or wrong more than once."
    )
    return said


def _above_chance(one: ModelRevisions) -> str:
    """Return a sentence on the first revision from which the whole interval lies above chance."""
    above = [point.accuracy.low > one.chance for point in one.points]
    since = len(above) - (above[::-1].index(False) if False in above else len(above))
    if since == len(above):
        return f"The last revision is not shown to be above chance ({percent(one.chance)})."
    if since == 0:
        return f"Every revision is above chance ({percent(one.chance)})."
    return f"From {one.points[since].name} on, accuracy is above chance ({percent(one.chance)})."


def _caveats(one: ModelRevisions) -> list[str]:
    """Return caveats about the numbers."""
    said = [
        f"{failed.name} could not be evaluated and is left out: {failed.error}"
        for failed in one.failed
    ]
    aside = [point for point in one.points if point.scored < one.rows]
    if aside:
        fewest = min(aside, key=lambda point: point.scored)
        said.append(
            f"{len(aside)} revision(s) did not score all questions ({fewest.name}: "
            f"{fewest.scored:,} of {one.rows:,}). Changes are of the questions that both scored."
        )
    same = [
        f"{before.name} and {after.name}"
        for before, after in pairwise(one.points)
        if before.weights_sha256 == after.weights_sha256
    ]
    if same:
        said.append(f"The same weights, under two names: {', '.join(same)}.")
    if not one.by_step:
        said.append(
            "Not every name tells a training step: revisions are in the order in which they were "
            "given."
        )
    return said


def _track(summary: RevisionsSummary) -> list[Tracked]:
    """Return a run for each model, by training step, or by position if some steps are unknown."""
    runs: dict[str, Tracked] = {}
    for one in summary.models:
        about = {"model": one.model, "scorer": one.scorer, "split": one.split}
        run = runs.setdefault(one.model, Tracked(last_name(one.model), about))
        for place, point in enumerate(one.points):
            step = point.step if one.by_step and point.step is not None else place
            change = point.since_previous
            metrics = metrics_of(
                one.probe,
                chance=one.chance,
                accuracy=point.accuracy,
                became_right=change and change.became_right,
                became_wrong=change and change.became_wrong,
            )
            run.add(step, metrics)
    return list(runs.values())


def _sheets(summary: RevisionsSummary) -> dict[str, str]:
    """Return a line for each question of each model and probe, in the probe's order."""
    asked = ["id", "cluster", "question", "learnt", "forgotten", "changes", "answers"]
    lines = [
        (one.probe, one.split, one.model, *(getattr(question, name) for name in asked))
        for one in summary.models
        for question in one.questions
    ]
    head = ("probe", "split", "model", *asked)
    return {"revisions.csv": csv_text([head, *lines], line_end="\n")}


REVISIONS = Study(
    name="revisions",
    help="Evaluate several revisions of a model, such as its training steps, on the same "
    "questions: accuracy by step, and when each question was learnt or forgotten.",
    expand=_expand,
    summarise=_summarise,
    summarise_rest=_summarise,
    document=_document,
    sheets=_sheets,
    options=RevisionsOptions,
    fixed=frozenset({"revision", "random_weights"}),
    track=_track,
)
"""The study."""
