"""The figure of the study: accuracy over the revisions, and what changed between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from evaluation.report.curves import band, share_axis, step_axis
from evaluation.report.figures import TWO, draw
from evaluation.results.analyses.inks import MODEL, REFERENCE, SOFT
from evaluation.results.words import short
from evaluation.studies.revisions.types import ModelRevisions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 5.2
_LABELS = 24
"""Names of revisions below the figure at most: of more only some are shown."""


def revisions_figure(one: ModelRevisions, name: str) -> Markup:
    """Draw accuracy with its intervals, and below it the shares that became right or wrong.

    ``name`` keeps ids apart.
    """
    places = [point.step or 0 for point in one.points] if one.by_step else range(len(one.points))
    across = [float(place) for place in places]

    def plot(figure: Figure) -> None:
        top, low = figure.subplots(2, sharex=True, height_ratios=[5, 2])
        estimates = [point.accuracy for point in one.points]
        band(top, across, estimates, "accuracy", color=MODEL, marker="o")
        top.axhline(100 * one.chance, color=SOFT, linestyle=(0, (1, 2)), label="chance")
        shown = [end for e in estimates for end in (e.low, e.high)] + [one.chance]
        if one.baselines:
            best = max(one.baselines, key=one.baselines.__getitem__)
            label = short(f"baseline: {best}", 30)
            height = one.baselines[best]
            top.axhline(100 * height, color=REFERENCE, linestyle=(0, (6, 3)), label=label)
            shown.append(height)
        share_axis(top, shown)
        _draw_changes(low, one, across)
        _name_places(low, one)
        figure.legend(loc="outside upper left", ncols=3)

    label = f"Accuracy on {one.probe} by revision of the model, and the questions that change."
    return draw(name, f"{label} The numbers are in the table below.", _HEIGHT, plot)


def _draw_changes(axes: Axes, one: ModelRevisions, across: list[float]) -> None:
    """Draw the shares of questions that became right or wrong since the revision before."""
    found = [
        (x, point.since_previous)
        for x, point in zip(across, one.points, strict=True)
        if point.since_previous is not None
    ]
    x = [place for place, _ in found]
    line = "o-" if len(x) > TWO else "o"
    right = [100 * change.became_right for _, change in found]
    wrong = [100 * change.became_wrong for _, change in found]
    axes.plot(x, right, line, color=MODEL, markersize=4, label="became right")
    axes.plot(x, wrong, line, color=REFERENCE, markersize=4, label="became wrong")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:.0f}%")
    axes.set_title("Questions that changed since the revision before", loc="left", fontsize=11)


def _name_places(axes: Axes, one: ModelRevisions) -> None:
    if one.by_step:
        step_axis(axes, [point.step or 0 for point in one.points])
        return
    every = -(-len(one.points) // _LABELS)
    names = [short(point.name, 16) for point in one.points[::every]]
    axes.set_xticks(range(0, len(one.points), every), names, rotation=45, ha="right")
