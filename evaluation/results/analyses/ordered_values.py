"""Answers to questions about two values on one scale, by value (oLMpics, Figure 3 and Table 4).

None of this is stored in ``results.json``: it is computed from the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.analyses.argument_order import OrderedArguments, ordered_arguments
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import bools, cluster_codes
from evaluation.results.colours import PAIR_SHADES, SOFT, TYPE, pair_colours
from evaluation.results.intervals import quick_accuracy
from evaluation.results.parts import shares
from evaluation.results.types import Estimate
from evaluation.results.words import ROUND, percent, short
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import to_numpy
from kbprobe.document import Part, Picture, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = 32
LISTED = 12
"""Maximum number of lines in the picture and in the table; if there are more, they are joined."""

MARKED = 8
"""Maximum number of lines in a picture whose numbers are written next to it."""

_NAMED = 3
"""Maximum number of words named of a joined line."""


class GridLine(NamedTuple):
    """A row and column of the grid: one value or neighbouring values; ``mark`` is a short name."""

    label: str
    mark: str


@dataclass(frozen=True)
class PairAnswers:
    """The questions about one pair of lines.

    Attributes:
        scored: how many were scored; ``set_aside`` how many were not.
        answer: 0 or 1, the most frequent answer; None if none was scored.
        share: the share of scored questions with this answer.
        confidence: the mean softmax share of this answer.
        right: the number of scored questions answered right.
    """

    scored: int
    set_aside: int
    answer: int | None
    share: float
    confidence: float
    right: int

    @property
    def ink(self) -> str:
        """The name of its colour: shades of one colour for each answer; "" if none was scored."""
        if self.answer is None:
            return ""
        step = int((self.confidence - 0.5) * 2 * PAIR_SHADES)
        return f"{'uv'[self.answer]}{min(PAIR_SHADES - 1, max(0, step))}"


class AnswerGrid(NamedTuple):
    """Cells with the first argument down and the second across; None if nothing was asked."""

    lines: tuple[GridLine, ...]
    cells: tuple[tuple[PairAnswers | None, ...], ...]


@dataclass(frozen=True)
class OrderedView:
    """The contents of the section.

    Attributes:
        names: the names of the two arguments.
        answers: the right answer if the first argument is lower, and the other one.
        sentences: what is compared, and what the model answers.
        drawn: a fine grid, for the picture.
        joined: a sentence on what a line of the picture joins; "" if nothing.
        table: a coarse grid, for the numbers.
        distances: accuracy by how far apart the two values are.
        places: whether the distances count places in the order.
        numeric: whether the values are numbers.
    """

    names: tuple[str, str]
    answers: tuple[str, str]
    sentences: tuple[str, ...]
    drawn: AnswerGrid
    joined: str
    table: AnswerGrid
    distances: tuple[tuple[str, Estimate], ...]
    places: bool
    numeric: bool


class _Outcomes(NamedTuple):
    """What the model answered: arrays [rows]; rows set aside are not ``scored``."""

    scored: Bools
    answer: Ints
    share: Floats
    right: Bools


def _parts(files: ResultFiles) -> list[Part]:
    view = ordered_view(files.predictions)
    if view is None:
        return []
    (one, two), (low, high) = view.names, view.answers
    joined = f" Each line joins {view.joined}." if view.joined else ""
    colours = (
        f"The stronger the colour, the larger the answer’s share of the softmax: the faintest "
        f"up to 60%, the strongest from 90%. Above the dashed line “{low}” is right, below it "
        f"“{high}”.{joined} A field with several questions has the colour of the answer that "
        "most of them get, and where nothing was asked it is empty."
    )
    label = (
        f"What the model answers, {low} or {high}, by {one} (down) and {two} (across). "
        "The numbers are in the table below."
    )
    rows = tuple(
        (line.label, *("" if cell is None else describe(cell, view.answers) for cell in cells))
        for line, cells in zip(*view.table, strict=True)
    )
    parts: list[Part] = [
        *map(Text, view.sentences),
        Text(colours, note=True),
        Picture(label, 6.6, lambda figure: plot(figure, view)),
        Table(
            (f"{one} ↓ {two} →", *(line.mark for line in view.table.lines)),
            rows,
            f"What the model answers, by {one} (rows) and {two} (columns)",
            fold="As numbers",
        ),
    ]
    if len(view.distances) > 1:
        places = ", in places of the order" if view.places else ""
        caption = f"Accuracy by how far apart the two values are{places}"
        chance = files.results.metrics.chance
        parts.append(shares("distance", caption, view.distances, chance))
    return parts


def ordered_view(predictions: pa.Table) -> OrderedView | None:
    """Arrange the predictions by their two arguments; None if these have no order."""
    order = ordered_arguments(predictions)
    if order is None:
        return None
    correct = predictions["correct"]
    right = bools(correct)
    outcomes = _Outcomes(
        scored=bools(correct.is_valid()),
        answer=np.where(right, order.gold, 1 - order.gold),
        share=to_numpy(predictions["probability"].fill_null(0.0)).astype(np.float64),
        right=right,
    )
    (one, two), (low, high) = order.names, order.answers
    names, answers = (short(one), short(two)), (short(low), short(high))
    drawn, of_value = _lines(order, DRAWN)
    return OrderedView(
        names=names,
        answers=answers,
        sentences=_sentences(order, outcomes, names, answers),
        drawn=_grid(order, outcomes, drawn, of_value),
        joined=_joined(order, drawn, of_value),
        table=_grid(order, outcomes, *_lines(order, LISTED)),
        distances=_distances(predictions, order, outcomes),
        places=order.places,
        numeric=order.numeric,
    )


def _lines(order: OrderedArguments, most: int) -> tuple[tuple[GridLine, ...], Ints]:
    """Arrange the values as lines: one for each value or place, joined if there are too many.

    Returns:
        The lines, the lowest first, and the line of each value, shape [values].
    """
    values = len(order.values)
    unit = np.arange(values) if values <= most else order.level
    # Each line joins as few units as the maximum number of lines allows.
    line = unit // next(per for per in ROUND if int(unit[-1]) // per < most)
    starts = np.flatnonzero(np.diff(line, prepend=-1)).tolist()
    groups = [order.values[start:end] for start, end in pairwise([*starts, values])]
    return tuple(_line(group, order.numeric) for group in groups), line


def _line(values: Sequence[str], numeric: bool) -> GridLine:
    first, last = short(values[0]), short(values[-1])
    if len(values) == 1:
        return GridLine(first, first)
    if numeric:
        return GridLine(f"{first} to {last}", f"{first}–{last}")
    named = ", ".join(short(value) for value in values[:_NAMED])
    more = len(values) - _NAMED
    label = f"{named} and {more:,} more" if more > 0 else named
    return GridLine(label, short(f"{values[0]}, …", 16))


def _joined(order: OrderedArguments, lines: Sequence[GridLine], of_value: Ints) -> str:
    """Return a sentence on what a line of the picture joins."""
    if len(lines) == len(order.values):
        return ""
    if order.numeric:
        return f"{int(np.bincount(of_value).max())} neighbouring values"
    places = int(order.level[-1]) + 1
    return "the values of one place" if places == len(lines) else "values of neighbouring places"


def _grid(
    order: OrderedArguments, outcomes: _Outcomes, lines: tuple[GridLine, ...], of_value: Ints
) -> AnswerGrid:
    size = len(lines)
    at = of_value[order.first] * size + of_value[order.second]
    scored = outcomes.scored

    def total(weights: Ints | Floats | Bools) -> list[float]:
        summed: list[float] = np.bincount(at, weights=weights, minlength=size * size).tolist()
        return summed

    higher = outcomes.answer == 1
    second = np.where(higher, outcomes.share, 1.0 - outcomes.share)
    sums = map(total, (scored, ~scored, scored & higher, scored * second, outcomes.right))
    cells = [_cell(*values) for values in zip(*sums, strict=True)]
    rows = (tuple(cells[row : row + size]) for row in range(0, size * size, size))
    return AnswerGrid(lines, tuple(rows))


def _cell(
    scored: float, set_aside: float, higher: float, share: float, right: float
) -> PairAnswers | None:
    """Return a cell with these counts; ``share`` is the summed softmax share of ``answers[1]``."""
    if not scored:
        return PairAnswers(0, int(set_aside), None, 0.0, 0.0, 0) if set_aside else None
    answer = int((higher, share) > (scored / 2, scored / 2))
    given, sure = (higher, share) if answer else (scored - higher, scored - share)
    return PairAnswers(
        scored=int(scored),
        set_aside=int(set_aside),
        answer=answer,
        share=given / scored,
        confidence=sure / scored,
        right=int(right),
    )


def _sentences(
    order: OrderedArguments, outcomes: _Outcomes, names: tuple[str, str], answers: tuple[str, str]
) -> tuple[str, ...]:
    (one, two), (low, high) = names, answers
    if order.numeric:
        said = (
            f"Every question compares two numbers, {one} and {two}: “{low}” is right where {one} "
            f"is the smaller, “{high}” where it is the larger."
        )
    else:
        places = int(order.level[-1]) + 1
        said = (
            f"Every question compares two values, {one} and {two}. The right answers put all "
            f"{len(order.values):,} values into one order of {places:,} places: “{low}” is right "
            f"where {one} stands before {two} in it, “{high}” where it stands after."
        )
    scored, gold = outcomes.scored, order.gold
    if not scored.any():
        return (said, "None was scored.")
    given, due = (float((what[scored] == 1).mean()) for what in (outcomes.answer, gold))
    sides = [(side, scored & (gold == side)) for side in (0, 1)]
    parts = [
        f"{percent(float(outcomes.right[rows].mean()))} where “{answers[side]}” is right"
        for side, rows in sides
        if rows.any()
    ]
    return (
        said,
        f"“{high}” is the model’s answer to {percent(given)} of the questions, and the right one "
        f"to {percent(due)}.",
        f"Its accuracy is {' and '.join(parts)}.",
    )


def _distances(
    predictions: pa.Table, order: OrderedArguments, outcomes: _Outcomes
) -> tuple[tuple[str, Estimate], ...]:
    """Return accuracy by distance; if there are many, by 1, 2, 3 to 5, 6 to 10, 11 to 20, ..."""
    scored = outcomes.scored
    distance, right = order.distance[scored], outcomes.right[scored]
    cluster = cluster_codes(predictions)[scored]
    far = int(distance.max(initial=0))
    steps = range(1, far) if far <= MARKED else takewhile(lambda step: step < far, ROUND)
    bands = []
    for low, high in pairwise([0, *steps, far]):
        inside = (distance > low) & (distance <= high)
        if inside.any():
            name = f"{high:,}" if high == low + 1 else f"{low + 1:,} to {high:,}"
            bands.append((name, quick_accuracy(right[inside], cluster[inside])))
    return tuple(bands)


def plot(figure: Figure, view: OrderedView) -> None:
    """Draw the fine grid, and the line along which the right answer changes."""
    from matplotlib.patches import Patch

    axes = figure.subplots()
    lines, grid = view.drawn
    size = len(lines)
    places: dict[str, list[tuple[int, int]]] = {}
    for row, cells in enumerate(grid):
        for column, cell in enumerate(cells):
            if cell is not None:
                places.setdefault(cell.ink, []).append((column, row))
    colours = {name: light for name, (light, _) in pair_colours().items()}
    for ink, corners in sorted(places.items()):
        _fields(axes, corners, colours.get(ink))
    (turn,) = axes.plot([0, size], [0, size], "--", color=TYPE, linewidth=1.2)
    handles: list[Artist] = [Patch(color=colours[f"{name}3"]) for name in "uv"]
    called = [f"answers “{answer}”" for answer in view.answers]
    if "" in places:
        handles.append(Patch(facecolor="none", edgecolor=SOFT, linestyle=":"))
        called.append("not scored")
    figure.legend(
        [*handles, turn], [*called, "the right answer changes"], loc="outside upper left", ncols=2
    )
    # Words are all written: a picture without names for its lines would be meaningless.
    every = -(-size // MARKED) if view.numeric else 1
    marks = [line.mark for line in lines[::every]]
    middles = [line + 0.5 for line in range(0, size, every)]
    small = 11 if len(marks) <= 16 else 8
    axes.set_xticks(middles, marks, fontsize=small, rotation=90 if max(map(len, marks)) > 4 else 0)
    axes.set_yticks(middles, marks, fontsize=small)
    axes.grid(False)
    axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
    axes.set(xlabel=f"{view.names[1]} →", ylabel=f"← {view.names[0]}")


def _fields(axes: Axes, corners: Sequence[tuple[int, int]], colour: str | None) -> None:
    """Draw fields of one colour; None draws fields of questions that were not scored."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    low, high = 0.04, 0.96
    square = np.array([[low, low], [high, low], [high, high], [low, high], [low, low]])
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    outline = Path(np.concatenate([square + corner for corner in corners]), codes * len(corners))
    style = (
        {"facecolor": colour, "linewidth": 0}
        if colour
        else {"facecolor": "none", "edgecolor": SOFT, "linestyle": ":"}
    )
    axes.add_patch(PathPatch(outline, **style))


def describe(cell: PairAnswers, answers: tuple[str, str]) -> str:
    """Describe a cell: ``older 87.5% of 8 questions, mean share 71.2%, 7 right``."""
    left = f"{cell.set_aside:,} not scored" if cell.set_aside else ""
    if cell.answer is None:
        return left
    answer, right = answers[cell.answer], f"{cell.right:,} right"
    if cell.scored == 1:
        right = "right" if cell.right else "wrong"
        text = f"{answer}, share {percent(cell.confidence)}"
    else:
        text = (
            f"{answer} {percent(cell.share)} of {cell.scored:,} questions, mean share "
            f"{percent(cell.confidence)}"
        )
    return ", ".join(part for part in (text, right, left) if part)


ANALYSIS = Analysis(
    "order", "Two values", "Two values: does the answer change where it should?", _parts
)
