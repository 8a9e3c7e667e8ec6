"""Evaluate several revisions of a model, such as training steps.

Listed under: Commands to vary the setup.

Shows accuracy by step, and when each question was learnt or forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from evaluation.models.revisions import Revision, find_revisions
from evaluation.names import model_name
from evaluation.report import cells
from evaluation.results.breakdown import bools
from evaluation.results.histories import NOT_SCORED, Histories, follow
from evaluation.results.types import Estimate
from evaluation.results.words import difference, interval, percent, short
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.table import (
    PROBE,
    Column,
    Contrast,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    contrasts_table,
    fields,
    place_of,
    run_rows,
    runs_table,
    summary_of,
)
from evaluation.tracking import Tracked, metrics_of
from kbprobe import document as doc
from kbprobe.columns import mask
from kbprobe.errors import UsageError
from kbprobe.options import Options
from kbprobe.tables import csv_text

_REVISION = "Branch, tag or commit; of a folder, the checkpoint in it."
_NAME = 30
"""Maximum length of a revision's name in tables."""


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
        revisions = find_revisions(model, options.revisions)
        if len(revisions) < 2:
            raise UsageError(
                f"--revisions {','.join(options.revisions)} stands for a single revision of "
                f"{model} ({revisions[0].name}): name two or more. A single one is evaluated by "
                f"evaluate-probe PROBE --model {revisions[0].model}"
                + ("" if revisions[0].revision is None else f" --revision {revisions[0].revision}")
            )
        for revision, probe in product(revisions, request.probes):
            spec = request.spec(probe, model, revision=revision.name)
            if revision.revision is None:
                # A folder, whose results go to one within that of the model.
                spec = replace(request.spec(probe, revision.model), folder=spec.folder)
            specs.append(spec)
    return specs


def _revision_of(request: StudyRequest, spec: RunSpec) -> tuple[str, Revision]:
    """Return the model, as it was given, and the revision that a run of the study evaluates."""
    if spec.run.revision is not None:
        return spec.model, Revision(spec.run.revision, spec.model, spec.run.revision)
    path = Path(spec.model)
    within = [model for model in request.models if path.is_relative_to(model)]
    model = max(within, key=lambda name: len(Path(name).parts))
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
) -> StudyTables:
    """Summarise the runs that are finished, and name the revisions that failed."""

    def place(spec: RunSpec) -> tuple[str, int]:
        """Return the model, as it was given, and the identity of the probe."""
        return _revision_of(request, spec)[0], id(spec.probe)

    runs = group_by(finished, lambda run: place(run.asked))
    missing = group_by(failed, lambda run: place(run.spec))
    sections = [_section(request, own, missing.get(key, [])) for key, own in runs.items()]
    summary = summary_of("revisions", "Revisions", sections, "series of revisions")
    return summary.model_copy(update={"sheets": _sheets(summary)})


_FAILED = fields(
    {
        "revision": "A revision that could not be evaluated.",
        "step": "The training step that it is named after, if any.",
        "error": "Why.",
    }
)
_ABOUT = {
    **{name: column.about for name, column in PROBE.items()},
    "scorer": "What choices were scored by.",
    "baselines": "Accuracy of each artefact baseline of the probe's audit.",
    "by_step": "Whether all revisions are named after their steps.",
    "always_right": "Questions that every revision that answered has right.",
    "never_right": "Questions that none has right.",
    "wavering": "Questions that became right or wrong more than once.",
}
_QUESTIONS = fields(
    {
        "id": "The item's id.",
        "cluster": "Its cluster; null if it has none.",
        "question": "Its text.",
        "learnt": "The last revision at which it became right; null: it never did.",
        "forgotten": "The last revision at which it became wrong; null: it never did.",
        "changes": "How often it became right or wrong.",
        "answers": "A letter for each revision, in order: r right, w wrong, . not scored.",
    }
)


def _section(request: StudyRequest, runs: Sequence[Finished], failed: Sequence[Failed]) -> Section:
    """Report the revisions of a model on a probe."""
    revisions = {id(run): _revision_of(request, run.asked)[1] for run in runs}
    axes = {"revision": Column[Finished](_REVISION, lambda run: revisions[id(run)].name, _short)}
    rows = run_rows(runs, axes)
    seed, histories = request.defaults.run.seed, _trace(runs)
    by_step = all(revision.step is not None for revision in revisions.values())
    last = len(rows) - 1
    compared = {
        (first, second): Contrast.of(rows[first], rows[second], seed)
        for place in range(last)
        for first, second in ((place, place + 1), (0, place + 1), (place, last))
    }
    numbers = {id(row): place for place, row in enumerate(rows)}
    further = _columns(numbers, compared, histories)
    further["step"] = Column(
        "The training step that it is named after, if any.",
        lambda row: revisions[id(row.runs[0])].step,
        None,
    )
    table = runs_table(rows, axes, further)
    scored = (histories.answers != NOT_SCORED).any(axis=0)
    metrics = runs[0].results.metrics
    counts = {
        "by_step": by_step,
        "scorer": runs[0].results.scoring.scorer,
        "baselines": metrics.baselines,
        "always_right": int((scored & (histories.answers != 0).all(axis=0)).sum()),
        "never_right": int((scored & (histories.answers != 1).all(axis=0)).sum()),
        "wavering": int((histories.changes > 1).sum()),
    }
    about = {name: column.value(runs[0]) for name, column in PROBE.items()} | counts
    missing = [(_revision_of(request, run.spec)[1], str(run.error)) for run in failed]
    lacking = [
        {"revision": revision.name, "step": revision.step, "error": why}
        for revision, why in missing
    ]
    contrasts = contrasts_table(
        list(compared.values()),
        ("first", "second", "rows", "difference", "p_value"),
    )
    questions = DataTable(
        "questions", _questions(runs[0], revisions.values(), histories), _QUESTIONS
    )
    always, never, wavering = (
        percent(about[name] / metrics.items) for name in ("always_right", "never_right", "wavering")
    )
    return Section(
        {
            **place_of(runs[0], "probe", "split"),
            "model": _revision_of(request, runs[0].asked)[0],
        },
        [
            table,
            contrasts,
            DataTable("probes", [about], fields(_ABOUT)),
            DataTable("failed", lacking, _FAILED),
            questions,
        ],
        [
            _chart(table, by_step, metrics.chance, metrics.baselines),
            table.shown(
                "Accuracy, and its differences in percentage points, with 95% intervals",
                ("revision", "accuracy", "since_previous", "since_first", "until_last"),
            ),
            table.shown(
                "Questions that changed since the revision before, and questions that changed for "
                "the last time",
                (
                    "revision",
                    "became_right",
                    "became_wrong",
                    "learnt_for_good",
                    "forgotten_for_good",
                ),
            ),
        ],
        [
            *_sentences(rows, compared),
            f"{always} of the questions are right at every revision, {never} at none; {wavering} "
            "became right or wrong more than once.",
        ],
        _caveats(rows, lacking, by_step),
    )


def _short(name: Any) -> str:
    return short(str(name), _NAME)


def _columns(
    numbers: Mapping[int, int],
    compared: Mapping[tuple[int, int], Contrast],
    histories: Histories,
) -> dict[str, Column[RunRow]]:
    """Return what is measured of each revision: its differences from others, and its questions."""
    last = len(numbers) - 1

    def place(row: RunRow) -> int:
        return numbers[id(row)]

    def difference_of(first: int, second: int) -> Estimate | None:
        own = compared.get((first, second))
        return None if own is None else own.difference

    def changed(row: RunRow, *, right: bool) -> float | None:
        own = compared.get((place(row) - 1, place(row)))
        if own is None:
            return None
        return own.only_right[right] / own.clusters.size

    return {
        "since_previous": Column(
            "Difference from the revision before, on the questions that both answered.",
            lambda row: difference_of(place(row) - 1, place(row)),
            cells.points,
        ),
        "since_first": Column(
            "Difference from the first revision.",
            lambda row: difference_of(0, place(row)),
            cells.points,
        ),
        "until_last": Column(
            "How the last revision differs from this one.",
            lambda row: difference_of(place(row), last),
            cells.points,
        ),
        "became_right": Column(
            "Share of the questions that this revision has right, and the one before wrong.",
            lambda row: changed(row, right=True),
        ),
        "became_wrong": Column(
            "Share that only the revision before has right.", lambda row: changed(row, right=False)
        ),
        "learnt_for_good": Column(
            "Questions that were wrong before, are right here, and right ever after.",
            lambda row: histories.settled(place(row), right=True),
        ),
        "forgotten_for_good": Column(
            "Questions that were right before, are wrong here, and wrong ever after.",
            lambda row: histories.settled(place(row), right=False),
        ),
        "commit": Column(
            "The commit on the Hub; null for a folder.",
            lambda row: row.runs[0].results.model.revision,
            None,
        ),
        "weights_sha256": Column(
            "Hash of weights and configuration.",
            lambda row: row.runs[0].results.model.weights_sha256,
            None,
        ),
    }


def _questions(
    run: Finished, revisions: Iterable[Revision], histories: Histories
) -> list[dict[str, Any]]:
    names: list[str | None] = [*(one.name for one in revisions), None]  # -1: none
    letters = np.array(["w", "r", "."])[histories.answers].T  # NOT_SCORED, -1, is the last
    shown = run.predictions.select(["id", "cluster", "question"]).to_pylist()
    return [
        {
            **item,
            "learnt": names[histories.learnt[number]],
            "forgotten": names[histories.forgotten[number]],
            "changes": int(histories.changes[number]),
            "answers": "".join(letters[number]),
        }
        for number, item in enumerate(shown)
    ]


def _chart(
    table: DataTable[RunRow], by_step: bool, chance: float, baselines: Mapping[str, float]
) -> doc.Chart:
    """Draw accuracy, and below it the shares that became right or wrong."""
    values = table.values
    steps = [row["step"] or 0 for row in values]
    across = [float(place) for place in (steps if by_step else range(len(values)))]
    levels = [doc.Level("chance", chance)]
    if baselines:
        best = max(baselines, key=baselines.__getitem__)
        levels.append(doc.Level(f"baseline: {best}", baselines[best], "reference", "dashed"))
    right, wrong = ([row[name] for row in values[1:]] for name in ("became_right", "became_wrong"))
    return doc.Chart(
        "Accuracy by revision of the model, and the questions that change.",
        [
            doc.Panel([doc.Line("accuracy", across, [row["accuracy"] for row in values])], levels),
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
        if by_step
        else doc.Across("", "names", [row["revision"] for row in values]),
        note="Above: accuracy of each revision; the band is its 95% interval. Below: the share of "
        "questions that became right (blue) or wrong (orange) since the revision before.",
    )


def _sentences(rows: Sequence[RunRow], compared: Mapping[tuple[int, int], Contrast]) -> list[str]:
    """Describe how accuracy changes, and when it exceeds chance."""
    first, last, end = rows[0], rows[-1], len(rows) - 1
    sentences = []
    if end:
        gain = difference(compared[0, end].difference)
        sentences.append(
            f"From {first.label} to {last.label}, accuracy goes from "
            f"{percent(first.accuracy.value)} to {percent(last.accuracy.value)}: {gain}."
        )
    sentences.append(_above_chance(rows))
    best = max(range(len(rows)), key=lambda place: rows[place].accuracy.value)
    highest = rows[best]
    if best != end and highest.accuracy.value > last.accuracy.value:
        sentences.append(
            f"It is highest at {highest.label}, {percent(highest.accuracy.value)} "
            f"({interval(highest.accuracy)}); from there to {last.label} it changes by "
            f"{difference(compared[best, end].difference)}."
        )
    return sentences


def _above_chance(rows: Sequence[RunRow]) -> str:
    """Return a sentence on the first revision from which the whole interval lies above chance."""
    chance = percent(rows[0].chance)
    above = [row.accuracy.low > row.chance for row in rows]
    since = len(above) - (above[::-1].index(False) if False in above else len(above))
    if since == len(above):
        return f"The last revision is not shown to be above chance ({chance})."
    if since == 0:
        return f"Every revision is above chance ({chance})."
    return f"From {rows[since].label} on, accuracy is above chance ({chance})."


def _caveats(
    rows: Sequence[RunRow], failed: Sequence[Mapping[str, Any]], by_step: bool
) -> list[str]:
    """Return caveats about the numbers."""
    caveats = [
        f"{row['revision']} could not be evaluated and is left out: {row['error']}"
        for row in failed
    ]
    scored = {row.label: row.runs[0].results.metrics for row in rows}
    fewer = {name: own for name, own in scored.items() if own.scored < own.items}
    if fewer:
        name, fewest = min(fewer.items(), key=lambda pair: pair[1].scored)
        caveats.append(
            f"{len(fewer)} revision(s) did not score all questions ({name}: {fewest.scored:,} of "
            f"{fewest.items:,}). Changes are of the questions that both scored."
        )
    weights = [(row.label, row.runs[0].results.model.weights_sha256) for row in rows]
    same = [
        f"{name} and {other}"
        for (name, own), (other, next_own) in pairwise(weights)
        if own == next_own
    ]
    if same:
        caveats.append(f"The same weights, under two names: {', '.join(same)}.")
    if not by_step:
        caveats.append(
            "Not every name tells a training step: revisions are in the order in which they were "
            "given."
        )
    return caveats


def _track(summary: StudyTables) -> list[Tracked]:
    """Return a run for each model, by training step, or by position if some steps are unknown."""
    runs: dict[str, Tracked] = {}
    for about in summary.tables["probes"]:
        place = {name: about[name] for name in ("model", "probe", "split")}
        given = {**place, "scorer": about["scorer"]}
        del given["probe"]
        run = runs.setdefault(about["model"], Tracked(model_name(about["model"]), given))
        # Two builds of a probe have the same name.
        rows = summary.rows("runs", source=about["source"], **place)
        for number, row in enumerate(rows):
            metrics = metrics_of(
                about["probe"],
                chance=about["chance"],
                **{name: row[name] for name in ("accuracy", "became_right", "became_wrong")},
            )
            run.add(row["step"] if about["by_step"] else number, metrics)
    return list(runs.values())


def _sheets(summary: StudyTables) -> dict[str, str]:
    """Return a line for each question of each model and probe, in the probe's order."""
    head = ("probe", "split", "model", *_QUESTIONS)
    lines = [[row[name] for name in head] for row in summary.tables["questions"]]
    return {"revisions.csv": csv_text([head, *lines], line_end="\n")}


REVISIONS = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    partial=True,
    options=RevisionsOptions,
    fixed=frozenset({"revision", "random_weights"}),
    track=_track,
)
"""The study."""
