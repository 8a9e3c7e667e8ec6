"""The contents of ``reproduction.json``, and the document made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from evaluation.report import cells
from evaluation.reproduce.published import PublishedTable
from evaluation.results.types import Estimate, Model
from kbprobe.document import Caveats, Cell, Document, Findings, Row, Section, Table, Text


class Figure(Model):
    """A number of a table, in percent or percentage points."""

    value: float = Field(description="The number.")
    low: float | None = Field(None, description="Lower end of its 95% interval; null: none.")
    high: float | None = Field(None, description="Upper end; null: none.")

    @classmethod
    def of(cls, value: Estimate | float, scale: float) -> Figure:
        """Return a share or a difference, with its interval if it has one, times ``scale``."""
        if isinstance(value, Estimate):
            return cls(value=scale * value.value, low=scale * value.low, high=scale * value.high)
        return cls(value=scale * value)

    @property
    def interval(self) -> str:
        """The interval, in words; "" if there is none."""
        return "" if self.low is None or self.high is None else f"{self.low:.1f} to {self.high:.1f}"


class OwnRow(Model):
    """A row of a paper's table for what was evaluated here."""

    name: str = Field(description="What was evaluated.")
    after: str = Field(description="The published row below which it is shown; empty: the last.")
    cells: dict[str, dict[str, Figure]] = Field(description="By column and measure.")


class FilledTable(Model):
    """A table of the paper, with the user's rows."""

    name: str = Field(description="Its name in the file of published numbers.")
    published: PublishedTable = Field(description="The table as published, in percent.")
    own: list[OwnRow] = Field(description="The user's rows.")


class UsedProbe(Model):
    """A probe that was evaluated."""

    name: str = Field(description="Its name.")
    source: str = Field(description="Folder or file.")
    rows: int | None = Field(description="Rows evaluated; null: none.")
    published: int | None = Field(description="Rows that the published numbers are of, if known.")


class Reproduction(Model):
    """All of ``reproduction.json``."""

    schema_version: str = Field("1.0", description="Version of this schema.")
    paper: str = Field(description="Its name on the command line.")
    citation: str = Field(description="What is reproduced.")
    quick: bool = Field(description="Whether it is the small version.")
    reduced: str | None = Field(description="What the small version reduces; null: nothing.")
    models: list[str] = Field(
        description="The models as given, or the folders of those that were trained first."
    )
    probes: list[UsedProbe] = Field(description="The probes.")
    tables: list[FilledTable] = Field(description="The paper's tables, with own rows.")
    differences: list[str] = Field(description="What differs from the paper, in sentences.")
    left_out: list[str] = Field(description="What could not be run, and why.")
    seconds: float = Field(description="Time of this command, without finished runs.")

    def document(self, further: Sequence[Section] = ()) -> Document:
        """Make the document: the paper's tables, what differs, and further sections."""
        title = f"{self.paper}{' (quick: a small version)' if self.quick else ''}"
        warning = [f"QUICK: {self.reduced} Do not quote these numbers."] if self.reduced else []
        return Document(
            "Reproduction",
            title,
            [
                Section("", [Text(f"{self.citation}."), Caveats(warning)]),
                *map(filled_section, self.tables),
                Section("Rows", [_rows(self.probes)]),
                Section("What differs from the paper", [Findings(self.differences)]),
                Section("Left out", [Caveats(self.left_out)]),
                *further,
            ],
            reading=[
                "**Published rows** are the paper's numbers, as it prints them; **yours** were "
                "made here, with 95% intervals that resample clusters of rows. A row of yours can "
                "be held against a published one only as far as rows, model and protocol are the "
                "same: see what differs."
            ],
        )


def filled_section(table: FilledTable) -> Section:
    """Show a table: published rows, each followed by the user's that are like it."""
    paper = table.published
    people = "" if paper.people is None else f" People: {paper.people:g}."
    form = paper.form.replace("{", "").replace("}", "")
    caption = f"{paper.source}. Cells: {form}, in %; differences and costs in points.{people}"
    rows: list[Row] = []
    for name in paper.rows:
        said = [[_spelt(one) for one in cell] for cell in paper.cells(name)]
        rows.append((name, "published", *(_cell(paper, numbers) for numbers in said)))
        rows += [_own(paper, row) for row in table.own if row.after == name]
    rows += [_own(paper, row) for row in table.own if row.after not in paper.rows]
    title = table.name.replace("_", " ")
    return Section(title, [Table(("row", "numbers", *paper.columns), rows, caption, names=2)])


def _own(paper: PublishedTable, row: OwnRow) -> Row:
    cells_of = [row.cells.get(column, {}) for column in paper.columns]
    return (row.name, "yours", *(_own_cell(paper, numbers) for numbers in cells_of))


def _own_cell(paper: PublishedTable, numbers: Mapping[str, Figure]) -> Cell:
    held = [numbers.get(measure) for measure in paper.measures]
    said = ["–" if one is None else f"{one.value:.1f}" for one in held]
    # Of several measures, the interval is that of the last accuracy; a difference has none.
    intervals = (one.interval for one in reversed(held[:2]) if one is not None)
    interval = next(filter(None, intervals), "")
    return _cell(paper, said)._replace(note=interval)


def _cell(paper: PublishedTable, said: Sequence[str]) -> Cell:
    if set(said) == {"–"}:
        return cells.NONE
    return Cell(
        paper.form.format(**dict(zip(paper.measures, said, strict=True))).removesuffix(" (–)")
    )


def _spelt(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"


def _rows(probes: Sequence[UsedProbe]) -> Table:
    return Table.of(
        probes,
        {
            "probe": lambda one: one.name,
            "source": lambda one: one.source,
            "rows evaluated": lambda one: cells.count(one.rows),
            "rows in the paper": lambda one: cells.count(one.published),
        },
        "The rows that the numbers are of",
        names=2,
    )
