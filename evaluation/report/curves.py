"""Parts of figures of accuracy over rows trained on, or over training steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluation.report.figures import TWO
from evaluation.results.types import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SPAN = 25.0
"""Points of accuracy that a figure spans at least."""

_LOG_SPAN = 20
"""How many times the first step the last one is at least where steps are on a log scale."""


def band(
    axes: Axes, x: Sequence[float], estimates: Sequence[Estimate], label: str, **style: Any
) -> None:
    """Draw a line of shares, as percentages, with their intervals as a band.

    Two shares or one are drawn as points with bars, as there is nothing between them. ``style`` is
    matplotlib's, with a ``color``.
    """
    if len(x) <= TWO:
        ends = [[100 * (e.value - e.low), 100 * (e.high - e.value)] for e in estimates]
        bars: Any = list(zip(*ends, strict=True))
        drawn = {"markersize": 5, "marker": "o", **style, "linestyle": "none"}
        axes.errorbar(x, [100 * e.value for e in estimates], bars, label=label, **drawn)
        return
    axes.plot(x, [100 * e.value for e in estimates], label=label, **{"markersize": 5, **style})
    low, high = [100 * e.low for e in estimates], [100 * e.high for e in estimates]
    axes.fill_between(x, low, high, color=style["color"], alpha=0.13, linewidth=0)


def size_axes(axes: Axes, sizes: Sequence[int], shown: Sequence[float]) -> None:
    """Set scales: rows trained on across, on a log scale, and percentages upwards.

    Args:
        axes: to be set.
        sizes: numbers of rows, the ticks.
        shown: all shares that must lie within the figure.
    """
    share_axis(axes, shown)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("rows trained on")


def share_axis(axes: Axes, shown: Sequence[float]) -> None:
    """Set the scale upwards: percentages, with room for all of these shares."""
    low, high = 100 * min(shown) - 4, 100 * max(shown) + 4
    # Noise about chance is not to look like a landscape.
    missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
    axes.set_ylim(max(0.0, low - missing), min(102.0, high + missing))
    axes.yaxis.set_major_formatter("{x:.0f}%")


def step_axis(axes: Axes, steps: Sequence[int]) -> None:
    """Set the scale across: training steps, on a log scale where they span more than a decade.

    Step 0 has its place on a log scale as well, left of the first step: what lies between the two
    is linear.

    Args:
        axes: to be set.
        steps: the steps, ascending.
    """
    trained = [step for step in steps if step > 0]
    if trained and trained[-1] / trained[0] >= _LOG_SPAN:
        first, last = trained[0], trained[-1]
        if steps[0] > 0:
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=first, linscale=0.4)
        ticks = [0] * (steps[0] == 0) + [first]
        ticks += [10**power for power in range(12) if 2 * first <= 10**power <= last]
        axes.set_xticks(ticks)
        axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("training step")
