"""Documents: headings, sentences, tables, charts, questions, independent of the output format.

The writer of a document decides on its content and order; renderers turn it into an HTML page, text
for a terminal, or Markdown. Texts are plain; in those of `Text` and of `Document.reading`,
``**`` around words and backquotes around code mean what they mean in Markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Interval(Protocol):
    """A number with the ends of its confidence interval."""

    @property
    def value(self) -> float:
        """The number."""
        ...

    @property
    def low(self) -> float:
        """The lower end."""
        ...

    @property
    def high(self) -> float:
        """The upper end."""
        ...


Number: TypeAlias = Interval | float


_Record = TypeVar("_Record")

Tone: TypeAlias = Literal["", "success", "partial", "failure", "none"]
"""Whether something is good, partly good, bad or neutral news; empty: it is no news."""

Ink: TypeAlias = Literal["model", "reference", "soft"] | int
"""A colour in a figure, by its meaning; numbers distinguish several lines."""


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: what it says.
        note: shown in smaller type, such as the interval of a number.
        lines: a list below the text.
        tone: whether what it says is good, partly good or neutral news.
    """

    text: str
    note: str = ""
    lines: tuple[str, ...] = ()
    tone: Tone = ""


class Bar(NamedTuple):
    """A share drawn on a scale from 0 to 100%, with its interval; text leaves it out.

    Attributes:
        number: the share, which another column of the table gives as a number.
        level: where a dashed line is drawn, such as chance.
        ink: its colour.
    """

    number: Number
    level: float | None = None
    ink: Ink = "model"


Value: TypeAlias = Cell | Bar | str | Number | None
"""The content of a table cell: a cell, its text, or a number, which the renderer formats.

Integers are counts, other numbers are shares; None means no value. Bars are the last column of a
table.
"""

Row: TypeAlias = Sequence[Value]
"""A row of a table."""


@dataclass(frozen=True)
class Text:
    """A paragraph; ``note`` sets it in smaller type."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Conclusion:
    """The conclusion in a few words, with a sentence that gives the numbers."""

    text: str
    detail: str
    tone: Tone = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Findings:
    """Sentences that say what the numbers show."""

    sentences: Sequence[str]


@dataclass(frozen=True)
class Caveats:
    """Sentences that a reader must know before quoting a number."""

    sentences: Sequence[str]


@dataclass(frozen=True)
class Tiles:
    """The most important numbers by name, at a glance; the first one stands out."""

    tiles: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        head: names of the columns.
        rows: their contents, row by row.
        caption: what the numbers are.
        names: how many columns, from the left, are names; the others hold numbers.
        fold: the label under which the table is collapsed; empty if it is always shown.
        faint: the rows with too few questions to be interpreted.
    """

    head: Sequence[str]
    rows: Sequence[Row]
    caption: str = ""
    names: int = 1
    fold: str = ""
    faint: frozenset[int] = frozenset()

    @property
    def drawn(self) -> bool:
        """Whether the last column holds bars."""
        return any(row and isinstance(row[-1], Bar) for row in self.rows)

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns, without that of the bars."""
        return self.head[:-1] if self.drawn else self.head

    @classmethod
    def of(
        cls,
        records: Iterable[_Record],
        columns: Mapping[str, Callable[[_Record], Value]],
        caption: str = "",
        *,
        names: int = 1,
        fold: str = "",
    ) -> Table:
        """Make a table with a row per record; ``columns`` maps names to functions of a record.

        >>> Table.of(["a", "bc"], {"text": str, "length": len}).rows
        [['a', 1], ['bc', 2]]
        """
        rows = [[cell(record) for cell in columns.values()] for record in records]
        return cls(tuple(columns), rows, caption, names, fold)


Scale: TypeAlias = Literal["share", "coefficient", "points"]
"""Scale of a heat map: shares from 0 to 1, coefficients from -1 to 1, or percentage points."""


@dataclass(frozen=True)
class HeatMap:
    """A heat map: a shaded matrix of numbers, with named rows and columns.

    Attributes:
        caption: what the numbers are.
        corner: what the rows and columns are, such as ``trained on / tested on``.
        rows: their names.
        columns: their names.
        cells: numbers, row by row; None where there is none.
        scale: the kind of numbers.
        marked: row and column of the cells that are outlined.
        groups: names above the columns, each with the number of columns it spans.
        lines: by row and column, lines below the number of a cell.
        faint: row and column of the cells on too few questions to be interpreted.
        apart: columns set off from those before them.
        chance: by column, the share that guessing gives: cells are coloured by what they are above
            it, on a scale from chance to 1, not by the share. Empty where shares are no accuracies.
        foot: how many rows, at the end, are totals or numbers to compare the others with.
        links: by row and column, the fragment of the page's address that a cell leads to.
    """

    caption: str
    corner: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Number | None]]
    scale: Scale = "share"
    marked: frozenset[tuple[int, int]] = frozenset()
    groups: Sequence[tuple[str, int]] = ()
    lines: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    faint: frozenset[tuple[int, int]] = frozenset()
    apart: frozenset[int] = frozenset()
    chance: Sequence[float] = ()
    foot: int = 0
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, each with that of its group."""
        groups = [name for name, width in self.groups for _ in range(width)]
        if not groups:
            return list(self.columns)
        pairs = zip(groups, self.columns, strict=True)
        return [" ".join(filter(None, dict.fromkeys(pair))) for pair in pairs]

    @classmethod
    def of_pairs(
        cls,
        caption: str,
        corner: str,
        labels: Sequence[str],
        numbers: Mapping[tuple[str, str], Number | None],
        scale: Scale = "share",
        marked: frozenset[tuple[int, int]] = frozenset(),
    ) -> HeatMap:
        """Arrange numbers given by pairs of labels (row, column), in one order or in both."""
        cells = [
            [numbers.get((row, column), numbers.get((column, row))) for column in labels]
            for row in labels
        ]
        return cls(caption, corner, labels, labels, cells, scale, marked)


Dash: TypeAlias = Literal["solid", "dashed", "short dashes", "dotted", "dash-dotted", "none"]


@dataclass(frozen=True)
class Line:
    """A series in a chart; its intervals are drawn as a band.

    Attributes:
        name: in the legend; "" leaves it out.
        x: the horizontal positions of the numbers.
        y: the numbers.
        ink: its colour.
        dash: how the numbers are joined, if at all.
        marker: of each number, as matplotlib names it; "" draws none.
        weights: areas of the markers, where they differ; the numbers are not joined then.
    """

    name: str
    x: Sequence[float]
    y: Sequence[Number]
    ink: Ink = "model"
    dash: Dash = "solid"
    marker: str = "o"
    weights: Sequence[float] = ()


class Level(NamedTuple):
    """A reference level, such as chance, drawn as a line across the panel, with its interval."""

    name: str
    value: Number
    ink: Ink = "soft"
    dash: Dash = "dotted"


@dataclass(frozen=True)
class Panel:
    """A panel of a chart, with its own vertical axis.

    Attributes:
        lines: what is drawn.
        levels: where horizontal reference lines are drawn.
        title: above it.
        upwards: the vertical scale: shares as percentages, or coefficients from -1 to 1.
        from_zero: whether the axis starts at 0 rather than near the smallest number.
    """

    lines: Sequence[Line]
    levels: Sequence[Level] = ()
    title: str = ""
    upwards: Literal["share", "coefficient"] = "share"
    from_zero: bool = False


@dataclass(frozen=True)
class Across:
    """The horizontal axis of a chart.

    Attributes:
        label: below it.
        kind: numbers of rows trained on (logarithmic), training steps (logarithmic where they
            span more than a decade), counts, shares, or names in their order from 0.
        ticks: numbers or names to label; if empty, the renderer chooses them.
        mark: where to draw a vertical line, if anywhere.
    """

    label: str = ""
    kind: Literal["rows", "steps", "count", "share", "names"] = "count"
    ticks: Sequence[int | str] = ()
    mark: Level | None = None


@dataclass(frozen=True)
class Chart:
    """A chart of panels with the same horizontal axis, stacked or side by side.

    Attributes:
        label: a description of the chart for readers who cannot see it.
        panels: from top to bottom, or from left to right.
        across: their horizontal axis.
        beside: whether the panels are side by side.
        note: how to read the chart, shown below it.
    """

    label: str
    panels: Sequence[Panel]
    across: Across = Across()
    beside: bool = False
    note: str = ""


class Dot(NamedTuple):
    """A row of a dot plot.

    Attributes:
        name: of the row.
        accuracy: a share and its interval.
        reference: whether it stands out as something to compare the others with.
        parts: shares of parts of the rows, such as folds, as small dots.
    """

    name: str
    accuracy: Interval
    reference: bool = False
    parts: Sequence[float] = ()


@dataclass(frozen=True)
class Dots:
    """A dot plot of shares by name.

    Attributes:
        label: a description of the plot for readers who cannot see it.
        dots: the rows, from top to bottom.
        levels: shares at which lines are drawn, such as chance.
        parts: what the small dots are, for the legend.
    """

    label: str
    dots: Sequence[Dot]
    levels: Sequence[Level] = ()
    parts: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure that matplotlib draws; ``height`` is in inches of 72 units, for a width of 6."""

    label: str
    height: float
    plot: Callable[[Figure], None]


class Choice(NamedTuple):
    """A choice of a question.

    Attributes:
        label: its letter or number.
        text: what it says.
        gold: whether it is the right answer.
        chosen: whether it is the model's choice.
        share: its share of the softmax over the choices.
        score: the score that is compared, formatted.
        detail: what the score is made of.
    """

    label: str
    text: str
    gold: bool
    chosen: bool
    share: float
    score: str
    detail: str = ""


class Basis(NamedTuple):
    """A line below a question: a text, its answer, and its id."""

    text: str
    answer: str
    id: str


@dataclass(frozen=True)
class Question:
    """A question, with the model's answer to it.

    Attributes:
        id: of its row.
        text: what is asked.
        choices: the choices that are shown.
        right: whether the model is right.
        tie: whether its two best scores are equal.
        about: where the question belongs, such as its concept and hops.
        hidden: how many further choices there are.
        evidence: what it rests on.
    """

    id: str
    text: str
    choices: Sequence[Choice]
    right: bool
    tie: bool = False
    about: str = ""
    hidden: int = 0
    evidence: Sequence[Basis] = ()


@dataclass(frozen=True)
class Fold:
    """Parts that a reader unfolds, under a title."""

    title: str
    parts: Sequence[Part | None]
    open: bool = False

    @property
    def shown(self) -> list[Part]:
        """The parts that are not None and not empty."""
        return _shown(self.parts)


Part: TypeAlias = (
    Text
    | Conclusion
    | Heading
    | Findings
    | Caveats
    | Tiles
    | Table
    | HeatMap
    | Chart
    | Dots
    | Picture
    | Question
    | Fold
)


@dataclass(frozen=True)
class Section:
    """A titled part of a document; ``link`` is its name in the list of sections.

    Parts that are None are left out, so that writers can include parts conditionally. ``name`` is
    the fragment of the page's address that leads to it; if empty, it is numbered.
    """

    title: str
    parts: Sequence[Part | None]
    link: str = ""
    name: str = ""

    @property
    def shown(self) -> list[Part]:
        """The parts that are not None and not empty."""
        return _shown(self.parts)


@dataclass(frozen=True)
class Document:
    """A complete document.

    Attributes:
        kind: what kind of document it is, such as ``Learning curves``.
        title: what it is about.
        sections: its sections.
        reading: paragraphs on how to read the numbers.
    """

    kind: str
    title: str
    sections: Sequence[Section]
    reading: Sequence[str] = ()


def _shown(parts: Iterable[Part | None]) -> list[Part]:
    return [part for part in parts if part is not None and not _empty(part)]


def _empty(part: Part) -> bool:
    if isinstance(part, Findings | Caveats):
        return not part.sentences
    if isinstance(part, Fold):
        return not part.shown
    return isinstance(part, Table | HeatMap) and not part.rows
