"""The interface of analyses, and the parts of their sections in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evaluation.results.types import Estimate, Model, Results

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


class ResultFiles(NamedTuple):
    """The input of a report; ``facts`` are predictions of the facts that rows rest on, if any."""

    results: Results
    predictions: pa.Table
    facts: pa.Table | None = None


class Text(NamedTuple):
    """A paragraph; a ``note`` is set smaller."""

    text: str
    note: bool = False


class Shares(NamedTuple):
    """A table of named estimates, each also drawn. ``what`` is the heading of the names."""

    what: str
    caption: str
    rows: tuple[tuple[str, Estimate], ...]


class Grid(NamedTuple):
    """A table of texts, whose first column names the rows.

    ``fold`` is the title under which the table is folded away ("" shows it at once), ``faint`` the
    indices of rows with too few questions to be interpreted.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    fold: str = ""
    faint: frozenset[int] = frozenset()


class Picture(NamedTuple):
    """A figure: ``plot`` draws it; ``height`` is in inches of 72 units, for a width of 6."""

    label: str
    height: float
    plot: Callable[[Figure], None]


class Example(NamedTuple):
    """A row of the predictions shown as a question, with lines below it: text, strong text, id."""

    row: int
    lines: tuple[tuple[str, str, str], ...] = ()


class Examples(NamedTuple):
    """Questions shown in full, drawn from ``candidates`` by a hash of their ids."""

    title: str
    candidates: tuple[Example, ...]
    most: int


Part: TypeAlias = Text | Shares | Grid | Picture | Examples


@dataclass(frozen=True)
class Analysis:
    """Numbers and a section of the report for the probes that it applies to.

    Attributes:
        name: its key among ``analyses`` in ``results.json``, and the id of its section.
        link: the section's name in the list of sections.
        title: the title of the section.
        parts: makes the section's parts of the files and, if there is one, of the block in
            ``results.json``, without which it is not called; empty if there is nothing to say.
        block: the schema of what it adds to ``results.json``, if anything.
        columns: the columns that it adds to ``predictions.parquet``: Arrow types by name.
    """

    name: str
    link: str
    title: str
    parts: Callable[..., Sequence[Part]]
    block: type[Model] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def section(self, files: ResultFiles) -> Sequence[Part]:
        """Return the parts of its section of the report; none if there is nothing to say."""
        if self.block is None:
            return self.parts(files)
        block = files.results.analysis(self.name, self.block)
        return () if block is None else self.parts(files, block)
