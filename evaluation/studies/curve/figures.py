"""Figures of learning curves: accuracy over the number of rows trained on, or over steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evaluation.report.curves import band, size_axes, step_axis
from evaluation.report.figures import draw
from evaluation.results.analyses.inks import REFERENCE, SOFT, line_colour
from evaluation.results.types import Estimate
from evaluation.results.words import short
from evaluation.studies.curve.types import (
    PROBE,
    RANDOM_LABELS,
    Curve,
    LearnerCurves,
    ModelCurves,
    Series,
)
from evaluation.studies.curve.words import rendering_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.6
_CONTROLS: tuple[dict[str, Any], ...] = (
    {"linestyle": (0, (6, 2)), "marker": "s"},
    {"linestyle": (0, (3, 1.5)), "marker": "^"},
)
"""Lines of controls, in their order: dashed, in the learner's colour."""

_LABEL = 30
"""Characters of a baseline's name in a legend."""


def learners_figure(one: ModelCurves, name: str, without_model: Sequence[LearnerCurves]) -> Markup:
    """Draw the curve of each learner on the probe itself, and of those that need no model.

    ``name`` keeps ids apart.
    """

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for number, learner in enumerate(one.learners):
            _line(axes, learner.own, learner.learner, color=line_colour(number))
        for learner in without_model:
            style = {"color": REFERENCE, "linestyle": "--", "marker": "d"}
            _line(axes, learner.own, f"{learner.learner} (no model)", **style)
        _references(axes, one)
        curves = [learner.own for learner in (*one.learners, *without_model)]
        _finish(figure, axes, curves, one)

    names = " and ".join(learner.learner for learner in one.learners)
    label = f"Accuracy on {one.probe} by rows trained on: {names}."
    return draw(name, f"{label} The numbers are in the table below.", _HEIGHT, plot)


def renderings_figure(one: ModelCurves, number: int, name: str) -> Markup | None:
    """Draw one learner's curves on the probe, its controls and its random labels, if any."""
    learner = one.learners[number]
    if len(learner.curves) < 2:
        return None

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for curve, style in zip(learner.curves, _styles(learner, number), strict=True):
            _line(axes, curve, rendering_name(curve.rendering), **style)
        _references(axes, one)
        axes.set_title(learner.learner, loc="left", fontsize=11)
        _finish(figure, axes, learner.curves, one)

    kinds = ", ".join(rendering_name(curve.rendering) for curve in learner.curves)
    label = f"Accuracy of {learner.learner} by rows trained on: {kinds}."
    return draw(name, f"{label} The numbers are in the table below.", _HEIGHT, plot)


def series_figure(series: Series, name: str) -> Markup:
    """Draw accuracy over the training steps of a series of checkpoints."""
    steps = [point.step for point in series.points]

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        lines: list[tuple[str, list[Estimate]]] = [
            ("WS", [point.ws for point in series.points]),
            ("at the smallest size", [point.first for point in series.points]),
        ]
        zero = [point.zero_shot for point in series.points if point.zero_shot is not None]
        if len(zero) == len(steps):
            lines.append(("zero-shot", zero))
        for number, (label, estimates) in enumerate(lines):
            band(axes, steps, estimates, label, color=line_colour(number), marker="o")
        axes.axhline(100 * series.chance, color=SOFT, linestyle=":", label="chance")
        step_axis(axes, steps)
        axes.yaxis.set_major_formatter("{x:.0f}%")
        figure.legend(loc="outside upper left", ncols=4)

    label = f"Accuracy of {series.learner} on {series.probe} by training step."
    return draw(name, f"{label} The numbers are in the table below.", _HEIGHT, plot)


def _styles(learner: LearnerCurves, number: int) -> list[dict[str, Any]]:
    """Return the style of each of a learner's curves."""
    styles: list[dict[str, Any]] = []
    controls = 0
    for curve in learner.curves:
        if curve.rendering == PROBE:
            styles.append({"color": line_colour(number)})
        elif curve.rendering == RANDOM_LABELS:
            styles.append({"color": SOFT, "linestyle": ":", "marker": "x"})
        else:
            style = _CONTROLS[controls % len(_CONTROLS)]
            styles.append({"color": line_colour(number), "markersize": 4, **style})
            controls += 1
    return styles


def _line(axes: Axes, curve: Curve, label: str, **style: Any) -> None:
    sizes = [point.size for point in curve.points]
    estimates = [point.accuracy for point in curve.points]
    band(axes, sizes, estimates, label, **{"marker": "o", **style})


def _references(axes: Axes, one: ModelCurves) -> None:
    """Draw what is reached without training: zero-shot, the strongest baseline, chance."""
    zero = one.own_zero_shot
    if zero is not None:
        axes.axhline(100 * zero.value, color=line_colour(4), linestyle="-.", label="zero-shot")
    if one.baselines:
        best = one.baselines[0]
        label = short(f"baseline: {best.name}", _LABEL)
        axes.axhline(100 * best.accuracy, color=REFERENCE, linestyle=(0, (6, 3)), label=label)
    axes.axhline(100 * one.chance, color=SOFT, linestyle=(0, (1, 2)), linewidth=1, label="chance")


def _finish(figure: Figure, axes: Axes, curves: Sequence[Curve], one: ModelCurves) -> None:
    """Set scales and legend."""
    shown = [
        end for curve in curves for p in curve.points for end in (p.accuracy.low, p.accuracy.high)
    ]
    shown += [one.chance, *(best.accuracy for best in one.baselines[:1])]
    shown += [] if one.own_zero_shot is None else [one.own_zero_shot.value]
    size_axes(axes, one.sizes, shown)
    figure.legend(loc="outside upper left", ncols=3 if len(curves) < 3 else 2)
