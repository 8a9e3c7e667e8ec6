"""The contents of ``reproduction.json``, and the document made of it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from evaluation.report import cells
from evaluation.results.types import Estimate, Model
from kbprobe.document import Caveats, Cell, Document, Findings, Row, Section, Table, Text


class Figure(Model):
    """A number of a table, in percent or percentage points."""

    value: float = Field(description="The number.")
    low: float | None = Field(None, description="Lower end of its 95% interval; null: published.")
    high: float | None = Field(None, description="Upper end; null: published.")

    @classmethod
    def of(cls, value: Estimate | float, scale: float) -> Figure:
        """Return a share or a difference, with its interval if it has one, times ``scale``."""
        if isinstance(value, Estimate):
            return cls(value=scale * value.value, low=scale * value.low, high=scale * value.high)
        return cls(value=scale * value)


class TableRow(Model):
    """A row of a table."""

    name: str = Field(description="As the paper names it; of an own row, what was evaluated.")
    published: bool = Field(description="Whether the numbers are the paper's.")
    cells: list[list[Figure | None]] = Field(
        description="For each column the numbers of the measures; null: there is none."
    )


class FilledTable(Model):
    """A table of the paper, with the user's rows."""

    name: str = Field(description="Its name in the file of published numbers.")
    source: str = Field(description="Where it is in the paper.")
    columns: list[str] = Field(description="Its columns.")
    measures: list[str] = Field(description="What the numbers of a cell are.")
    form: str = Field(description="How the numbers of a cell are written.")
    people: float | None = Field(description="Accuracy of people, where it is in no row.")
    rows: list[TableRow] = Field(description="Published rows, each followed by own ones like it.")


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
    models: list[str] = Field(description="The models, as they were given.")
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
                *map(_section, self.tables),
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


def _section(table: FilledTable) -> Section:
    title = table.name.replace("_", " ")
    people = "" if table.people is None else f" People: {table.people:g}."
    form = table.form.replace("{", "").replace("}", "")
    caption = f"{table.source}. Cells: {form}, in %; differences and costs in points.{people}"
    rows: list[Row] = [
        (
            row.name,
            "published" if row.published else "yours",
            *(_cell(table, numbers, row.published) for numbers in row.cells),
        )
        for row in table.rows
    ]
    return Section(title, [Table(("row", "numbers", *table.columns), rows, caption, names=2)])


def _cell(table: FilledTable, numbers: Sequence[Figure | None], published: bool) -> Cell:
    if not any(numbers):
        return cells.NONE
    form = "g" if published else ".1f"
    said = {
        measure: "–" if number is None else format(number.value, form)
        for measure, number in zip(table.measures, numbers, strict=True)
    }
    text = table.form.format(**said).removesuffix(" (–)")
    of = next((number for number in reversed(numbers[:2]) if number is not None), None)
    if of is None or of.low is None or of.high is None:
        return Cell(text)
    return Cell(text, f"{of.low:.1f} to {of.high:.1f}")


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
