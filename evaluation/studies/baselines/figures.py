"""The figure of the study: the accuracy of each baseline, and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.results.analyses.inks import MODEL, REFERENCE, SOFT
from evaluation.results.words import short
from evaluation.studies.baselines.types import Measured, Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.3
_MARGIN = 0.9
_LEAST_SPAN = 30.0
"""Points of accuracy that a figure spans at least."""


def accuracy_figure(one: Measurement, name: str) -> Markup:
    """Draw a dot with its interval for each baseline, and a line for chance.

    ``name`` keeps ids apart.
    """
    held = [*one.baselines, *one.beside]

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for place, measured in enumerate(held):
            beside = place >= len(one.baselines)
            _dot(axes, place, measured, REFERENCE if beside else MODEL, "s" if beside else "o")
        axes.axvline(100 * one.chance, color=SOFT, linestyle=(0, (3, 2)), label="chance")
        axes.set_yticks(range(len(held)), [short(measured.name, 34) for measured in held])
        axes.set_ylim(len(held) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        ends = [end for one in held for end in (one.accuracy.low, one.accuracy.high)]
        low, high = 100 * min([*ends, one.chance]) - 3, 100 * max([*ends, one.chance]) + 3
        # Noise about chance is not to look like a landscape.
        high = max(high, low + _LEAST_SPAN)
        axes.set_xlim(max(0.0, low), min(102.0, high))
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("accuracy")
        figure.legend(loc="outside upper left")

    label = f"Accuracy of each baseline on {one.probe}, with 95% intervals and chance."
    return draw(
        name, f"{label} The numbers are in the table below.", _MARGIN + _ROW * len(held), plot
    )


def _dot(axes: Axes, place: int, measured: Measured, colour: str, marker: str) -> None:
    estimate = measured.accuracy
    axes.plot([100 * estimate.low, 100 * estimate.high], [place, place], color=colour, linewidth=2)
    axes.plot([100 * estimate.value], [place], color=colour, marker=marker, markersize=6)
