"""Figures for papers: charts of documents as vector graphics of a column's width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evaluation.report.charts import draw_dots_on, draw_panel, scale_across
from evaluation.report.figures import SHADES, luminance, new_figure, shade_colour, styled
from evaluation.report.matrices import Shading, coloured_by, scale_of
from evaluation.results.types import Estimate
from evaluation.results.words import short, short_names
from kbprobe.document import Chart, Dots, HeatMap, Number
from kbprobe.errors import require
from kbprobe.files import replacing_file
from kbprobe.tables import PlainTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawn: TypeAlias = Chart | Dots | HeatMap

WIDTHS = {"single": 3.3, "double": 6.8}
"""Widths in inches: of one column of a page of two, and of both."""

SUFFIXES = (".pdf", ".svg", ".png")
"""The formats of figures."""

_POINTS = 72
_FONT = 8
_NAME = 32
_LETTER = 0.6 * _FONT / _POINTS
"""About the width of a letter, in inches."""

_STYLE: dict[Any, Any] = {
    "font.size": _FONT,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "xtick.major.pad": 3,
    "ytick.major.pad": 3,
    "legend.columnspacing": 1.2,
    # TrueType, which every reader has the outlines of, and which journals accept.
    "pdf.fonttype": 42,
    # Outlines as well: a file with text would be drawn in the reader's fonts.
    "svg.fonttype": "path",
    "svg.hashsalt": "kbprobe",
    "savefig.dpi": 300,
}
_UNDATED: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}
"""What is said of a file: not when it was made, so that the same numbers give the same bytes."""


def write_figure(path: Path, parts: Sequence[Drawn], width: float) -> None:
    """Draw parts of one kind in one figure, and write it, atomically; its suffix is the format.

    Args:
        path: the file.
        parts: what is drawn: the first panel of each chart, all dot plots, or all heat maps.
        width: in inches.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    require("matplotlib", "eval", "drawing a figure")
    suffix = path.suffix.lower()
    with styled(_STYLE), replacing_file(path) as place:
        if maps := [part for part in parts if isinstance(part, HeatMap)]:
            figure = _heat_maps(maps, width)
        elif plots := [part for part in parts if isinstance(part, Dots)]:
            figure = _dots(plots, width)
        else:
            figure = _charts([part for part in parts if isinstance(part, Chart)], width)
        title = "; ".join(dict.fromkeys(map(_label, parts)))
        figure.savefig(
            place,
            format=suffix.removeprefix("."),
            metadata={"Title": title, **_UNDATED[suffix]},
        )


def _arranged(count: int, width: float) -> tuple[int, int]:
    """Return the rows and columns of some drawings: two columns in a wide figure."""
    across = min(count, 2 if width > WIDTHS["single"] + 1 else 1)
    return -(-count // across), across


def _charts(charts: Sequence[Chart], width: float) -> Figure:
    """Draw the first panel of each chart: side by side if wide; on one scale."""
    rows, across = _arranged(len(charts), width)
    figure = new_figure(width, rows * min(3.2, max(2.0, 0.62 * width / across)))
    grid = list(figure.subplots(rows, across, squeeze=False).flat)
    for axes, chart in zip(grid, charts, strict=False):
        draw_panel(axes, chart.panels[0])
        scale_across(axes, chart.across)
        axes.set_ylabel("accuracy")
        if len(charts) == 1:
            axes.set_title("", loc="left")
    for axes in grid[len(charts) :]:
        axes.set_visible(False)
    drawn = grid[: len(charts)]
    ends = [end for axes in drawn for end in axes.get_ylim()]
    for axes in drawn:
        axes.set_ylim(min(ends), max(ends))
    _legend(figure, width)
    return figure


def _dots(plots: Sequence[Dots], width: float) -> Figure:
    heights = [0.35 + 0.2 * len(plot.dots) for plot in plots]
    figure = new_figure(width, 0.6 + sum(heights))
    rows = figure.subplots(len(plots), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, plot in zip(rows, plots, strict=True):
        draw_dots_on(axes, plot)
        if len(plots) > 1:
            # To the right: the axes are narrow where names are long.
            axes.set_title(short(plot.label, 48), loc="right", fontsize="medium")
            axes.set_xlabel("accuracy" if axes is rows[-1] else "")
    ends = [end for axes in rows for end in axes.get_xlim()]
    for axes in rows:
        axes.set_xlim(min(ends), max(ends))
    _legend(figure, width)
    return figure


def _legend(figure: Figure, width: float) -> None:
    """Draw one legend of all axes, with as many columns as fit."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        named |= {label: named.get(label, own) for own, label in zip(handles, labels, strict=True)}
    if not named:
        return
    # About half of the font's size for each letter, and four times that size for its line.
    widest = _FONT * (0.52 * max(map(len, named)) + 4)
    columns = max(1, min(len(named), 4, int(width * _POINTS / widest)))
    figure.legend(named.values(), named, loc="outside upper left", ncols=columns)


def _heat_maps(maps: Sequence[HeatMap], width: float) -> Figure:
    """Draw heat maps below each other, or two in a row of a wide figure, with one colour bar."""
    rows, across = _arranged(len(maps), width)
    tallest = max(len(heat.rows) for heat in maps)
    names = max(len(name) for heat in maps for name in heat.column_names)
    below = _LETTER * min(names, _NAME) if names > _fitting(maps[0], width, across) else 0.2
    figure = new_figure(width, 0.5 + rows * (0.45 + 0.3 * tallest + below))
    grid = figure.subplots(rows, across, squeeze=False)
    for axes, heat in zip(grid.flat, maps, strict=False):
        _heat_map(axes, heat, _fitting(heat, width, across))
        if len(maps) > 1:
            axes.set_title(short(heat.caption, 60), loc="left", fontsize="medium")
    for axes in list(grid.flat)[len(maps) :]:
        axes.set_visible(False)
    _colour_bar(figure, grid, scale_of(maps[0]))
    return figure


def _fitting(heat: HeatMap, width: float, across: int) -> int:
    """Return about how many letters fit above or in a cell of a heat map."""
    return int(0.72 * width / across / len(heat.columns) / _LETTER)


def _heat_map(axes: Axes, heat: HeatMap, fitting: int) -> None:
    scale = scale_of(heat)
    for row, numbers in enumerate(heat.cells):
        for column, number in enumerate(numbers):
            if number is None:
                continue
            colour = _colour(scale, coloured_by(heat, column, number))
            ink = "black" if luminance(colour) > 0.179 else "white"
            box: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
            behind: dict[str, Any] | None = None
            if (row, column) in heat.faint:
                # Seen on each shade, but not through the number.
                box |= {"hatch": "////", "edgecolor": _between(colour, ink)}
                behind = {"facecolor": colour, "edgecolor": "none", "pad": 1}
            axes.add_patch(_rectangle(column, row, **box))
            value = number if isinstance(number, float | int) else number.value
            size = min(1.0, fitting / 7) * _FONT
            text = scale.spell(value)
            centred: dict[str, Any] = {"ha": "center", "va": "center"}
            axes.text(column, row, text, color=ink, fontsize=size, bbox=behind, **centred)
    names = short_names(heat.column_names, _NAME)
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    long = max(map(len, names)) > fitting
    axes.set_xticks(range(len(names)), names, **(turned if long else {}))
    axes.set_yticks(range(len(heat.rows)), short_names(heat.rows, _NAME))
    axes.set_xlim(-0.5, len(heat.columns) - 0.5)
    axes.set_ylim(len(heat.rows) - 0.5, -0.5)
    axes.set_ylabel(heat.corner)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _rectangle(column: int, row: int, **box: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, **box)


def _between(colour: str, ink: str) -> tuple[float, ...]:
    """Return a colour with half as much of an ink."""
    from matplotlib.colors import to_rgb

    pairs = zip(to_rgb(colour), to_rgb(ink), strict=True)
    return tuple((2 * own + other) / 3 for own, other in pairs)


def _colour(scale: Shading, value: float) -> str:
    return shade_colour(scale.palette, round(SHADES * min(1.0, max(0.0, scale.along(value)))))


def _colour_bar(figure: Figure, grid: Any, scale: Shading) -> None:
    """Draw the scale of colours, with the names of its ends and of what is marked on it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ListedColormap([shade_colour(scale.palette, step) for step in range(SHADES + 1)])
    shown = ScalarMappable(Normalize(scale.low, scale.high), shades)
    bar = figure.colorbar(shown, ax=grid, shrink=0.9, aspect=20 * len(grid), pad=0.02)
    middle = (scale.low + scale.high) / 2
    name = scale.spell(middle) if scale.level is None else "chance"
    bar.set_ticks([scale.low, middle if scale.level is None else scale.level, scale.high])
    bar.set_ticklabels([scale.names[0], name, scale.names[1]])
    bar.outline.set_visible(False)


def data_of(parts: Sequence[Drawn]) -> PlainTable:
    """Return all numbers that are drawn, one in each row.

    The columns are the panel, the series (a line, a dot, a level, the row of a heat map), the place
    in it (such as the number of training rows, or the column of a heat map), the number, the ends
    of its interval, and how many rows it is of.
    """
    rows = [row for part in parts for row in _numbers(part)]
    head = ("panel", "series", "place", "value", "low", "high", "rows")
    return PlainTable(head, rows)


def _label(part: Drawn) -> str:
    return part.caption if isinstance(part, HeatMap) else part.label


def _numbers(part: Drawn) -> Iterator[list[Any]]:
    if isinstance(part, HeatMap):
        for name, numbers in zip(part.rows, part.cells, strict=True):
            for column, number in zip(part.column_names, numbers, strict=True):
                if number is not None:
                    yield [part.caption, name, column, *_spread(number)]
        return
    if isinstance(part, Dots):
        for dot in part.dots:
            yield [part.label, dot.name, None, *_spread(dot.accuracy)]
        yield from ([part.label, level.name, None, *_spread(level.value)] for level in part.levels)
        return
    panel = part.panels[0]
    for line in panel.lines:
        for x, number in zip(line.x, line.y, strict=True):
            place = part.across.ticks[round(x)] if part.across.kind == "names" else x
            yield [panel.title, line.name, place, *_spread(number)]
    yield from ([panel.title, level.name, None, *_spread(level.value)] for level in panel.levels)


def _spread(number: Number) -> list[Any]:
    if isinstance(number, float | int):
        return [number, None, None, None]
    rows = number.n if isinstance(number, Estimate) else None
    return [number.value, number.low, number.high, rows]
