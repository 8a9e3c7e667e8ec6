"""The figure of the study: probe and original accuracy over the number of rows ([W], Figure 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evaluation.report.figures import draw
from evaluation.results.analyses.inks import SOFT, line_colour
from evaluation.results.words import last_name, short
from evaluation.studies.inoculate.types import Inoculated, ModelInoculation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.6
_LABEL = 36


def inoculation_figure(one: ModelInoculation, probe: Inoculated, name: str) -> Markup:
    """Draw both accuracies over the rows trained on, from none; ``name`` keeps ids apart."""
    places = range(1 + len(probe.points))
    lines = (
        (probe.probe, [probe.test_before, *(point.test for point in probe.points)], "o"),
        (last_name(one.original), [one.original_before, *(p.original for p in probe.points)], "s"),
    )

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for number, (label, estimates, marker) in enumerate(lines):
            colour = line_colour(number)
            values = [100 * estimate.value for estimate in estimates]
            axes.plot(
                places,
                values,
                marker=marker,
                markersize=5,
                color=colour,
                label=short(label, _LABEL),
            )
            low, high = (
                [100 * getattr(estimate, end) for estimate in estimates] for end in ("low", "high")
            )
            axes.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
        chance: dict[str, Any] = {"color": SOFT, "linestyle": (0, (1, 2)), "linewidth": 1}
        axes.axhline(100 * probe.chance, label="chance on the probe", **chance)
        axes.set_xticks(places, ["0", *(f"{point.size:,}" for point in probe.points)])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("rows of the probe trained on")
        figure.legend(loc="outside upper left", ncols=3)

    label = f"Test accuracy on {probe.probe} and accuracy on the original task by rows trained on."
    return draw(name, f"{label} The numbers are in the table below.", _HEIGHT, plot)
