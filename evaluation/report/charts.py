"""Charts and dot plots of a document, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evaluation.report.cells import ends
from evaluation.report.figures import TWO, draw
from evaluation.results.colours import MODEL, REFERENCE, SOFT, line_colour
from evaluation.results.words import short, short_names
from kbprobe.document import Across, Chart, Dots, Ink, Level, Line, Number, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ONE_ROW, _SEVERAL_ROWS = 3.6, 5.2
"""Heights of charts with one row of panels and with several, in inches of 72 units."""

_DOT_ROW, _DOT_MARGIN = 0.34, 1.1
_NAME = 36
"""Maximum length of a name in a figure."""

_LEGEND = 20
"""Maximum length of the names in a legend of three columns; if one is longer, there are two."""

_LEAST_SPAN = 25.0
"""Minimum range of a figure in points of accuracy, so that noise does not look meaningful."""

_LOG_SPAN = 20
"""Minimum ratio of the last step to the first for a log scale."""

_FAINT = 0.13
"""Opacity of intervals that are areas."""

_NAMED_TICKS = 24
"""Maximum number of names below a figure; if there are more, only some are shown."""

_INKS = {"model": MODEL, "reference": REFERENCE, "soft": SOFT}
_DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (6, 2)),
    "short dashes": (0, (3, 1.5)),
    "dotted": (0, (1, 2)),
    "dash-dotted": "-.",
    "none": "none",
}


MARKERS = "os^Dvp*"
"""Markers of several lines in one chart: more than there are colours, so that no two look alike."""


def draw_chart(chart: Chart, name: str) -> Markup:
    """Draw a chart; ``name`` keeps its ids apart from those of other figures."""
    count = len(chart.panels)
    rows, columns = (1, count) if chart.beside else (count, 1)

    def plot(figure: Figure) -> None:
        grid = figure.subplots(
            rows,
            columns,
            squeeze=False,
            sharex=not chart.beside,
            sharey=chart.beside,
            height_ratios=[5, *[2] * (rows - 1)],
        ).flat
        for axes, panel in zip(grid, chart.panels, strict=True):
            draw_panel(axes, panel)
            if chart.beside:
                scale_across(axes, chart.across)
        if not chart.beside:
            scale_across(axes, chart.across)
        names = [line.name for panel in chart.panels for line in panel.lines]
        names += [level.name for panel in chart.panels for level in panel.levels]
        names += [] if chart.across.mark is None else [chart.across.mark.name]
        long = max(map(len, names)) > _LEGEND
        figure.legend(loc="outside upper left", ncols=2 if long else 3)

    height = _ONE_ROW if rows == 1 else _SEVERAL_ROWS
    return draw(name, f"{chart.label} The numbers are in the table below.", height, plot)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel of a chart on its axes."""
    factor = 100 if panel.upwards == "share" else 1
    names = short_names([line.name for line in panel.lines], _NAME)
    for line, name in zip(panel.lines, names, strict=True):
        _draw_line(axes, replace(line, name=name), factor)
    for level in panel.levels:
        style = _style(level.ink, level.dash)
        low, value, high = (factor * end for end in ends(level.value))
        axes.axhline(value, label=short(level.name, _NAME), linewidth=1, **style)
        if low < high:
            axes.axhspan(low, high, color=style["color"], alpha=_FAINT, linewidth=0)
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize="medium")
    if panel.upwards == "coefficient":
        axes.set_ylim(-1.05, 1.05)
        return
    axes.yaxis.set_major_formatter("{x:.0f}%")
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    else:
        reached = [end for line in panel.lines for number in line.y for end in _both_ends(number)]
        axes.set_ylim(*_span([*reached, *_reached(panel.levels)], 4))


def _draw_line(axes: Axes, line: Line, factor: float) -> None:
    """Draw a line with its band; one or two intervals are drawn as error bars instead."""
    style = _style(line.ink, line.dash)
    style |= {"marker": line.marker or "none", "label": line.name or "_"}
    low, middle, high = (
        [factor * bound for bound in bounds] for bounds in zip(*map(ends, line.y), strict=True)
    )
    if line.weights:
        sizes, style = line.weights, style | {"alpha": 0.6, "linewidths": 0}
        del style["linestyle"]
        axes.scatter(line.x, middle, sizes, **style)
    elif low == high:
        if len(line.x) <= TWO and line.marker:
            style["linestyle"] = "none"
        axes.plot(line.x, middle, markersize=4, **style)
    elif len(line.x) <= TWO or line.dash == "none":
        below = [value - end for value, end in zip(middle, low, strict=True)]
        above = [end - value for value, end in zip(middle, high, strict=True)]
        style |= {"linestyle": "none", "marker": line.marker or "o", "markersize": 5}
        axes.errorbar(line.x, middle, [below, above], **style)
    else:
        axes.plot(line.x, middle, markersize=5, **style)
        axes.fill_between(line.x, low, high, color=style["color"], alpha=_FAINT, linewidth=0)


def scale_across(axes: Axes, across: Across) -> None:
    """Scale and label the horizontal axis of a chart."""
    if across.mark is not None:
        mark = across.mark
        style = _style(mark.ink, mark.dash)
        axes.axvline(ends(mark.value)[1], label=mark.name, linewidth=1, **style)
    if across.kind == "rows":
        sizes = [int(size) for size in across.ticks]
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
    elif across.kind == "steps":
        _scale_steps(axes, [int(step) for step in across.ticks])
        axes.xaxis.set_major_formatter("{x:,.0f}")
    elif across.kind == "names":
        _name_places(axes, [str(tick) for tick in across.ticks])
    elif across.kind == "share":
        axes.set_xlim(-3, 103)
        axes.xaxis.set_major_formatter("{x:.0f}%")
    else:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(across.label)


def _scale_steps(axes: Axes, steps: Sequence[int]) -> None:
    """Set a log scale if the steps span a large range (:data:`_LOG_SPAN`).

    Step 0 is shown as well, left of the first step: the scale is linear between the two.
    """
    trained = [step for step in steps if step > 0]
    if not trained or trained[-1] / trained[0] < _LOG_SPAN:
        return
    first, last = trained[0], trained[-1]
    if steps[0] > 0:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=first, linscale=0.4)
    ticks = [0] * (steps[0] == 0) + [first]
    ticks += [10**power for power in range(12) if 2 * first <= 10**power <= last]
    axes.set_xticks(ticks)
    axes.minorticks_off()


def _name_places(axes: Axes, names: Sequence[str]) -> None:
    every = -(-len(names) // _NAMED_TICKS) or 1
    shown = [short(name, 16) for name in names[::every]]
    turned: dict[str, Any] = (
        {"rotation": 45, "ha": "right"} if max(map(len, shown), default=0) > 6 else {}
    )
    axes.set_xticks(range(0, len(names), every), shown, **turned)
    axes.set_xlim(-0.5, len(names) - 0.5)


def draw_dots(dots: Dots, name: str) -> Markup:
    """Draw a dot plot; ``name`` keeps its ids apart from those of other figures."""

    def plot(figure: Figure) -> None:
        draw_dots_on(figure.subplots(), dots)
        figure.legend(loc="outside upper left", ncols=3)

    text = f"{dots.label} The numbers are in the table below."
    return draw(name, text, _DOT_MARGIN + _DOT_ROW * len(dots.dots), plot)


def draw_dots_on(axes: Axes, dots: Dots) -> None:
    """Draw a dot plot on its axes."""
    from matplotlib.ticker import MaxNLocator

    legend = dots.parts
    for place, dot in enumerate(dots.dots):
        shares = [100 * share for share in dot.parts]
        style: dict[str, Any] = {"s": 12, "color": SOFT, "alpha": 0.55, "linewidths": 0}
        axes.scatter(shares, [place] * len(shares), label=legend or None, **style)
        legend = "" if shares else legend
        colour, marker = (REFERENCE, "s") if dot.reference else (MODEL, "o")
        low, value, high = (100 * end for end in ends(dot.accuracy))
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot([value], [place], color=colour, marker=marker, markersize=6)
    for level in dots.levels:
        style = _style(level.ink, level.dash)
        low, value, high = (100 * end for end in ends(level.value))
        axes.axvline(value, label=level.name, linewidth=1, **style)
        if low < high:
            axes.axvspan(low, high, color=style["color"], alpha=_FAINT, linewidth=0)
    axes.set_yticks(range(len(dots.dots)), short_names([dot.name for dot in dots.dots], _NAME))
    axes.set_ylim(len(dots.dots) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    reached = [end for dot in dots.dots for end in (*_both_ends(dot.accuracy), *dot.parts)]
    axes.set_xlim(*_span([*reached, *_reached(dots.levels)], 3))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter("{x:.0f}%")
    axes.set_xlabel("accuracy")


def _style(ink: Ink, dash: str) -> dict[str, Any]:
    colour = line_colour(ink) if isinstance(ink, int) else _INKS[ink]
    return {"color": colour, "linestyle": _DASHES[dash]}


def _both_ends(number: Number) -> Iterable[float]:
    low, _, high = ends(number)
    return low, high


def _reached(levels: Iterable[Level]) -> list[float]:
    return [end for level in levels for end in _both_ends(level.value)]


def _span(shares: Sequence[float], margin: float) -> tuple[float, float]:
    """Return the ends, in percent, of a scale that covers all of these shares."""
    low, high = 100 * min(shares) - margin, 100 * max(shares) + margin
    missing = max(0.0, _LEAST_SPAN - (high - low)) / 2
    return max(0.0, low - missing), min(102.0, high + missing)
