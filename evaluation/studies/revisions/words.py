"""What the revisions show, in sentences."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.results.words import interval, last_name, percent, points, short
from evaluation.studies.revisions.types import ModelRevisions, RevisionPoint

_NAME = 30
"""Characters of a revision's name in tables."""


def title(one: ModelRevisions) -> str:
    """Name a model and the probe."""
    return f"{last_name(one.model)} on {one.probe}"


def revision_name(point: RevisionPoint) -> str:
    """Name a revision in tables."""
    return short(point.name, _NAME)


def sentences(one: ModelRevisions) -> list[str]:
    """Say how accuracy changes, from when on it is above chance, and which questions waver."""
    first, last = one.points[0], one.points[-1]
    said = []
    if last.since_first is not None:
        said.append(
            f"From {first.name} to {last.name}, accuracy goes from {percent(first.accuracy.value)} "
            f"to {percent(last.accuracy.value)}: {spelt(last.since_first.difference)}."
        )
    said.append(_above_chance(one))
    best = max(one.points, key=lambda point: point.accuracy.value)
    if best.until_last is not None and best.accuracy.value > last.accuracy.value:
        lost = best.until_last.difference
        said.append(
            f"It is highest at {best.name}, {percent(best.accuracy.value)} "
            f"({interval(best.accuracy)}); from there to {last.name} it changes by {spelt(lost)}."
        )
    shares = (one.always_right, one.never_right, one.wavering)
    always, never, wavering = (percent(count / one.rows) for count in shares)
    said.append(
        f"{always} of the questions are right at every revision, {never} at none; {wavering} "
        "became right or wrong more than once."
    )
    return said


def _above_chance(one: ModelRevisions) -> str:
    """Say from which revision on the whole interval lies above chance."""
    above = [point.accuracy.low > one.chance for point in one.points]
    since = len(above) - (above[::-1].index(False) if False in above else len(above))
    if since == len(above):
        return f"The last revision is not shown to be above chance ({percent(one.chance)})."
    if since == 0:
        return f"Every revision is above chance ({percent(one.chance)})."
    return f"From {one.points[since].name} on, accuracy is above chance ({percent(one.chance)})."


def remarks(one: ModelRevisions) -> list[str]:
    """Say what a reader must know."""
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


def spelt(difference: Estimate) -> str:
    """Spell a difference with its interval, in words."""
    low, high = points(difference.low), points(difference.high)
    return f"{points(difference.value)} points ({low} to {high})"
