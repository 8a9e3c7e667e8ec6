"""Published numbers, the contents of ``reproduction.json``, and the document made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from evaluation.names import model_name
from evaluation.report import cells
from evaluation.reproduce.marks import Mark, superscript
from evaluation.results.types import Estimate, Model
from kbprobe.document import Caveats, Cell, Document, Findings, Row, Section, Table, Text
from kbprobe.parsing import read_yaml, validated

PUBLISHED = Path(__file__).parent / "data" / "published.yaml"

Value: TypeAlias = float | None


class Figure(Model):
    """A number of a table, in percent or percentage points."""

    value: float = Field(description="The number.")
    low: float | None = Field(None, description="Lower end of its 95% interval; null: none.")
    high: float | None = Field(None, description="Upper end; null: none.")
    marks: list[str] = Field(
        [], description="Letters of the legend: in what kind it differs from the published numbers."
    )

    @classmethod
    def of(cls, value: Estimate | float, scale: float, marks: Sequence[str] = ()) -> Figure:
        """Return a share or a difference, with its interval if it has one, times ``scale``."""
        if isinstance(value, Estimate):
            ends = {"low": scale * value.low, "high": scale * value.high}
            return cls(value=scale * value.value, **ends, marks=list(marks))
        return cls(value=scale * value, marks=list(marks))

    @property
    def interval(self) -> str:
        """The interval, in words; "" if there is none."""
        return "" if self.low is None or self.high is None else f"{self.low:.1f} to {self.high:.1f}"


Numbers: TypeAlias = Mapping[str, Figure]
"""The numbers of a cell, by measure."""


class _PublishedPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedTable(_PublishedPart):
    """A table of a paper.

    Attributes:
        source: where it is in the paper.
        about: what its numbers are, in sentences.
        columns: names of its columns.
        rows: cells by the name of the row, in the order of the columns: a number, or one for each
            measure.
        measures: what the numbers of a cell are.
        form: how they are written.
        people: accuracy of people, where the paper gives it outside the rows.
        evaluated: rows that the numbers of a probe are of, by probe.
        split: the split that its numbers are of, where those of a user may be of another one.
        wording: the wording that they are of, as the builders name it; "": it has no name there.
    """

    source: str = Field(min_length=1)
    about: str = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=1)
    rows: Mapping[str, tuple[Value | tuple[Value, ...], ...]] = Field(min_length=1)
    measures: tuple[str, ...] = ("accuracy",)
    form: str = "{accuracy}"
    people: float | None = None
    evaluated: Mapping[str, int] = Field(default_factory=dict)
    split: str = ""
    wording: str = ""

    def cells(self, name: str) -> dict[str, dict[str, Figure]]:
        """Return the published numbers of a row, by column and measure."""
        row = zip(self.columns, self.rows[name], strict=True)
        return {column: self._named(cell) for column, cell in row}

    def _named(self, cell: Value | Sequence[Value]) -> dict[str, Figure]:
        numbers = cell if isinstance(cell, Sequence) else (cell,)
        named = zip(self.measures, numbers, strict=True)
        return {name: Figure(value=number) for name, number in named if number is not None}


class PublishedPaper(_PublishedPart):
    """A paper.

    Attributes:
        paper: how it is cited.
        probes: its probes, each with what the names of its published files contain: a regular
            expression for names in lower case without digits, "_" for "-".
        differences: what differs from it in any case, in sentences.
        of_builds: what differs where the probes were built and are not its own files.
        of_built: likewise what differs in one of them, by probe.
        tables: its tables, by name.
    """

    paper: str = Field(min_length=1)
    probes: Mapping[str, str] = Field(min_length=1)
    differences: tuple[str, ...] = Field(min_length=1)
    of_builds: tuple[str, ...] = Field(min_length=1)
    of_built: Mapping[str, str] = Field(default_factory=dict)
    tables: Mapping[str, PublishedTable] = Field(min_length=1)

    def notes(self, probes: Collection[str], built: bool) -> list[str]:
        """Return what differs from the paper where these probes are used, built or published."""
        own = [note for probe, note in self.of_built.items() if probe in probes]
        return [*self.differences, *([*self.of_builds, *own] if built else [])]


class _PublishedFile(BaseModel):
    papers: Mapping[str, PublishedPaper]


@lru_cache(maxsize=1)
def published_papers() -> Mapping[str, PublishedPaper]:
    """Read the published numbers of all papers, by the name of the paper."""
    read = {"papers": read_yaml(PUBLISHED)}
    return validated(read, _PublishedFile, str(PUBLISHED)).papers


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

    schema_version: str = Field("1.1", description="Version of this schema.")
    paper: str = Field(description="Its name on the command line.")
    citation: str = Field(description="What is reproduced.")
    quick: bool = Field(description="Whether it is the small version.")
    reduced: str | None = Field(description="What the small version reduces; null: nothing.")
    models: list[str] = Field(
        description="The models as given, or the folders of those that were trained first."
    )
    probes: list[UsedProbe] = Field(description="The probes.")
    tables: list[FilledTable] = Field(description="The paper's tables, with own rows.")
    marks: list[Mark] = Field(
        [], description="The legend: in what kinds marked numbers differ from the published ones."
    )
    differences: list[str] = Field(description="What differs from the paper, in sentences.")
    left_out: list[str] = Field(description="What could not be run, and why.")
    seconds: float = Field(description="Time of this command, without finished runs.")

    def document(self, further: Sequence[Section] = ()) -> Document:
        """Make the document: the paper's tables, what differs, and further sections."""
        title = f"{self.paper}{' (quick: a small version)' if self.quick else ''}"
        warning = [f"QUICK: {self.reduced} Do not quote these numbers."] if self.reduced else []
        about = f"{self.citation}, with {', '.join(map(model_name, self.models))}."
        names = [probe.name for probe in self.probes]
        return Document(
            "Reproduction",
            title,
            [
                Section("", [Text(about), Caveats(warning)]),
                *(filled_section(table, names, self.marks) for table in self.tables),
                Section("What differs from the paper", [Findings(self.differences)]),
                Section("Rows", [_rows(self.probes)]),
                Section("Left out", [Findings(self.left_out)]),
                *further,
            ],
            reading=[
                "**Published rows** are the paper's numbers, as it prints them; **yours** were "
                "made here, with 95% intervals that resample clusters of rows. A row of yours is "
                "shown below the published one that is most like it. The two can be compared only "
                "as far as rows, model and protocol are the same. **Raised letters** mark numbers "
                "of yours that differ in kind, as the legend below each table says; those after "
                "the name of a row are of all its numbers."
            ],
        )


def filled_section(
    table: FilledTable, probes: Collection[str] = (), marks: Sequence[Mark] = ()
) -> Section:
    """Show a table: published rows, each followed by the user's that are like it, and the legend.

    If its columns are probes, those that were not evaluated are left out. Marks that all numbers of
    a row have are shown at its name.
    """
    paper = table.published
    columns = [column for column in paper.columns if column in probes] or paper.columns
    people = "" if paper.people is None else f" People: {paper.people:g}."
    rows: list[Row] = []
    published = [cell for name in paper.rows for cell in paper.cells(name).values()]
    whole = all(number.value % 1 == 0 for cell in published for number in cell.values())

    def printed(value: float) -> str:
        return f"{value:.1f}" if round(value, 1) == value and not whole else f"{value:g}"

    def add(
        name: str, whose: str, numbers: Mapping[str, Numbers], spell: Callable[[float], str]
    ) -> None:
        shown = [numbers.get(column, {}) for column in columns]
        marked = [set(one.marks) for cell in shown for one in cell.values()]
        common = set[str]().union(*marked).intersection(*marked)
        own = (_cell(paper, cell, spell, common) for cell in shown)
        rows.append((f"{name}{superscript(common)}", whose, *own))

    for name in [*paper.rows, ""]:
        if name:
            add(name, "published", paper.cells(name), printed)
        for own in table.own:
            if own.after == name or (not name and own.after not in paper.rows):
                add(own.name, "yours", own.cells, "{:.1f}".format)
    of_probes = columns[0] in probes
    title = paper.source if of_probes else table.name.replace("_", " ")
    source = "" if of_probes else f" Source: {paper.source}."
    caption = f"{paper.about}{source}{people}"
    used = {
        letter
        for row in table.own
        for column in columns
        for one in row.cells.get(column, {}).values()
        for letter in one.marks
    }
    legend = [Text(str(mark), note=True) for mark in marks if mark.letter in used]
    return Section(title, [Table(("row", "numbers", *columns), rows, caption, names=2), *legend])


def _cell(
    paper: PublishedTable, numbers: Numbers, spell: Callable[[float], str], common: Collection[str]
) -> Cell:
    if not numbers:
        return cells.NONE
    said = {
        measure: spell(numbers[measure].value) if measure in numbers else "–"
        for measure in paper.measures
    }
    # Of several measures, the interval is that of the last accuracy; a difference has none.
    intervals = (numbers[name].interval for name in paper.measures[1::-1] if name in numbers)
    text = paper.form.format(**said).removesuffix(" (–)").replace("-", "−")
    marks = {letter for number in numbers.values() for letter in number.marks} - {*common}
    return Cell(f"{text}{superscript(marks)}", next(filter(None, intervals), ""))


def _rows(probes: Sequence[UsedProbe]) -> Table:
    return Table.of(
        probes,
        {
            "probe": lambda one: one.name,
            "source": lambda one: one.source,
            "rows evaluated": lambda one: one.rows,
            "rows in the paper": lambda one: one.published,
        },
        "The rows that the numbers are of",
        names=2,
    )
