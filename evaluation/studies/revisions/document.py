"""The document of revisions, a line for each question, and what is logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.report import cells
from evaluation.results.words import (
    clip,
    difference,
    interval,
    last_name,
    name_or_count,
    percent,
    short,
)
from evaluation.studies.revisions.record import (
    Change,
    ModelRevisions,
    RevisionPoint,
    RevisionsSummary,
)
from evaluation.tracking import Tracked, metrics_of
from kbprobe.document import (
    Across,
    Caveats,
    Cell,
    Chart,
    Document,
    Findings,
    Level,
    Line,
    Panel,
    Section,
    Table,
    Tiles,
)
from kbprobe.tables import csv_text

_NAME = 30
"""Maximum length of a revision's name in tables."""


def _title(one: ModelRevisions) -> str:
    """Return a title that names the model and the probe."""
    return f"{last_name(one.model)} on {one.probe}"


def _name_of(point: RevisionPoint) -> str:
    """Return the name of a revision in tables."""
    return short(point.name, _NAME)


def document(summary: RevisionsSummary) -> Document:
    """Return the document: a section for each model on each probe."""
    names = [_title(one) for one in summary.models]
    return Document(
        "Revisions",
        name_or_count(names, "series of revisions"),
        [_section(one) for one in summary.models],
        reading=[
            "**Differences** compare two revisions on the same questions: both are resampled "
            "together, in whole clusters. So they are more certain than the intervals of the two "
            "accuracies suggest.",
            "**Became right, became wrong** are shares of the questions that both revisions "
            "answered. Accuracy may stay the same while many questions change: where both shares "
            "are large, the model has not settled.",
            "**Learnt for good** counts the questions that were wrong before, are right at this "
            "revision, and stay right at all later ones; **forgotten for good** likewise. The last "
            "revisions have many such questions, since few revisions follow that could change them "
            "again. `revisions.csv` has each question’s answers.",
            "**The highest accuracy** of many revisions is too high by chance alone: choose a "
            "revision on the validation split, and report its accuracy on the test split.",
        ],
    )


def _section(one: ModelRevisions) -> Section:
    last = one.points[-1]
    failed = f"{len(one.failed)} more failed" if one.failed else ""
    return Section(
        f"{_title(one)} ({one.split})",
        [
            Tiles(
                {
                    f"Accuracy at {clip(last.name, 40)}": cells.headline(last.accuracy),
                    "Revisions": Cell(f"{len(one.points):,}", failed),
                    "Chance": Cell(percent(one.chance), "1 / number of choices"),
                    "Questions": Cell(f"{one.rows:,}", f"{one.clusters:,} clusters"),
                }
            ),
            _chart(one),
            Findings(_sentences(one)),
            Caveats(_caveats(one)),
            Table.of(
                one.points,
                {
                    "revision": _name_of,
                    "accuracy": lambda point: cells.share(point.accuracy),
                    "since previous": lambda point: _gain(point.since_previous),
                    "since first": lambda point: _gain(point.since_first),
                    "until last": lambda point: _gain(point.until_last),
                },
                "Accuracy, and its differences in percentage points, with 95% intervals",
            ),
            Table.of(
                one.points,
                {
                    "revision": _name_of,
                    "became right": lambda point: _changed(point, "became_right"),
                    "became wrong": lambda point: _changed(point, "became_wrong"),
                    "learnt for good": lambda point: cells.count(point.learnt_for_good),
                    "forgotten for good": lambda point: cells.count(point.forgotten_for_good),
                },
                "Questions that changed since the revision before, and questions that changed for "
                "the last time",
            ),
        ],
        link=_title(one),
    )


def _gain(change: Change | None) -> Cell:
    return cells.points(None if change is None else change.difference)


def _changed(point: RevisionPoint, name: str) -> Cell:
    change = point.since_previous
    return cells.share(None if change is None else getattr(change, name))


def _chart(one: ModelRevisions) -> Chart:
    """Draw accuracy, and below it the shares that became right or wrong."""
    steps = [point.step or 0 for point in one.points]
    across = [float(place) for place in (steps if one.by_step else range(len(one.points)))]
    levels = [Level("chance", one.chance)]
    if one.baselines:
        best = max(one.baselines, key=one.baselines.__getitem__)
        levels.append(Level(f"baseline: {best}", one.baselines[best], "reference", "dashed"))
    changes = [p.since_previous for p in one.points if p.since_previous is not None]
    right, wrong = [c.became_right for c in changes], [c.became_wrong for c in changes]
    return Chart(
        f"Accuracy on {one.probe} by revision of the model, and the questions that change.",
        [
            Panel([Line("accuracy", across, [point.accuracy for point in one.points])], levels),
            Panel(
                [
                    Line("became right", across[1:], right),
                    Line("became wrong", across[1:], wrong, "reference"),
                ],
                title="Questions that changed since the revision before",
                from_zero=True,
            ),
        ],
        Across("training step", "steps", steps)
        if one.by_step
        else Across("", "names", [point.name for point in one.points]),
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
        lost = best.until_last.difference
        said.append(
            f"It is highest at {best.name}, {percent(best.accuracy.value)} "
            f"({interval(best.accuracy)}); from there to {last.name} it changes by "
            f"{difference(lost)}."
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
        for before, after in zip(one.points, one.points[1:], strict=False)
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


def track(summary: RevisionsSummary) -> list[Tracked]:
    """Return a run for each model, by training step, or by position if some steps are unknown."""
    runs: dict[str, Tracked] = {}
    for one in summary.models:
        about = {"model": one.model, "scorer": one.scorer, "split": one.split}
        run = runs.setdefault(one.model, Tracked(last_name(one.model), about))
        for place, point in enumerate(one.points):
            step = point.step if one.by_step and point.step is not None else place
            run.add(
                step, {**metrics_of(one.probe, chance=one.chance), **_metrics(one.probe, point)}
            )
    return list(runs.values())


def _metrics(probe: str, point: RevisionPoint) -> dict[str, float]:
    change = point.since_previous
    return metrics_of(
        probe,
        accuracy=point.accuracy,
        became_right=None if change is None else change.became_right,
        became_wrong=None if change is None else change.became_wrong,
    )


_SHEET_HEAD = (
    *("probe", "split", "model", "id", "cluster", "question"),
    *("learnt", "forgotten", "changes", "answers"),
)


def sheet(summary: RevisionsSummary) -> str:
    """Return a line for each question of each model and probe, in the probe's order."""
    lines: list[Sequence[Any]] = [_SHEET_HEAD]
    for one in summary.models:
        for asked in one.questions:
            lines.append(
                (
                    *(one.probe, one.split, one.model),
                    *(asked.id, asked.cluster or "", asked.question or ""),
                    *(asked.learnt or "", asked.forgotten or "", asked.changes),
                    asked.answers,
                )
            )
    return csv_text(lines, line_end="\n")
