"""What an analysis is, and what its section of the report is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from evaluation.results.types import Estimate, Model, Results

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ResultFiles:
    """What a report is made from.

    Attributes:
        results: of the rows.
        predictions: of the rows.
        facts: predictions of the single facts that the rows rest on, where they are there.
    """

    results: Results
    predictions: pa.Table
    facts: pa.Table | None = None


@dataclass(frozen=True)
class Text:
    """A paragraph; ``note`` sets it smaller."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Shares:
    """A table of named estimates, each drawn beside its numbers. ``what`` is what the names are."""

    what: str
    caption: str
    rows: tuple[tuple[str, Estimate], ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts, whose first column names the rows.

    Attributes:
        caption: what it shows.
        head: the names of the columns.
        rows: as many texts as ``head`` has.
        fold: what it unfolds under; "" shows it at once.
        faint: indices of rows with too few questions to be read.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    fold: str = ""
    faint: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Picture:
    """A figure: ``plot`` fills it, ``height`` is in inches of 72 units for a width of 6."""

    label: str
    height: float
    plot: Callable[[Figure], None] = field(compare=False)


@dataclass(frozen=True)
class Example:
    """A row of the predictions shown as a question, and lines beneath it: text, strong text, id."""

    row: int
    lines: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Examples:
    """Questions shown in full, drawn from ``candidates`` by a hash of their ids."""

    title: str
    candidates: tuple[Example, ...]
    most: int


Part: TypeAlias = Text | Shares | Grid | Picture | Examples


@dataclass(frozen=True)
class Section:
    """A section of the report: ``link`` names it in the list of sections."""

    id: str
    link: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Analysis:
    """Numbers and a section of the report for the probes that it applies to.

    Attributes:
        name: its key among ``analyses`` in ``results.json``.
        section: makes its section of the report; None where it has nothing to say.
        block: the schema of what it keeps in ``results.json``, if anything.
        columns: what it adds to ``predictions.parquet``: Arrow types by name.
    """

    name: str
    section: Callable[[ResultFiles], Section | None]
    block: type[Model] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
