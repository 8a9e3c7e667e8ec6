"""The table of a study's runs, and summaries made of described tables.

A study declares the axes of its runs and the columns of its tables once: its JSON, its tables on a
terminal, on a page and in Markdown, and its heat maps follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, InstanceOf, field_validator

from evaluation.names import model_name
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.breakdown import NEAR_AND_RANDOM, named_rows
from evaluation.results.intervals import DifferenceTest, Resampled
from evaluation.results.pairs import mcnemar
from evaluation.results.types import Estimate, Model
from evaluation.results.words import name_or_count, natural_key, p_value
from evaluation.studies.agreement import AnswerAgreement, agreement_of
from evaluation.studies.base import Finished
from evaluation.studies.counting import DrawAverages, group_by
from evaluation.studies.pairing import PairedRows, pair_rows
from kbprobe import document as doc
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError
from kbprobe.format.sealed import Sealed
from kbprobe.intervals import estimate_of
from kbprobe.tables import PlainTable

if TYPE_CHECKING:
    import pandas as pd

SENTENCES = 5
"""Maximum number of sentences on the runs of a section; everything else is in its tables."""

_Record = TypeVar("_Record")
_Array = TypeVar("_Array", Bools, Ints)


def as_it_is(value: Any) -> doc.Value:
    """Show a value as a document shows it: whole numbers as counts, others as shares."""
    shown: doc.Value = value
    return shown


@dataclass(frozen=True)
class Column(Generic[_Record]):
    """A described column.

    Attributes:
        about: what its values are.
        value: returns the value of a record, as it is in the JSON.
        show: returns what a document shows of a value; None if it is in the JSON alone.
        head: its name in a document, if not that in the JSON.
    """

    about: str
    value: Callable[[_Record], Any]
    show: Callable[[Any], doc.Value] | None = as_it_is
    head: str = ""


def fields(
    about: Mapping[str, str],
    heads: Mapping[str, str] | None = None,
    hidden: Container[str] = (),
    show: Mapping[str, Callable[[Any], doc.Value]] | None = None,
) -> dict[str, Column[Any]]:
    """Return columns named as the fields of records are, or as the keys of mappings.

    Args:
        about: what each is, by name.
        heads: their names in a document, where they have others.
        hidden: those that are in the JSON alone.
        show: how a document shows those that are not counts, shares or texts.
    """

    def of(name: str) -> Callable[[Any], Any]:
        return lambda record: record[name] if isinstance(record, Mapping) else getattr(record, name)

    shown = {name: None if name in hidden else (show or {}).get(name, as_it_is) for name in about}
    return {
        name: Column(what, of(name), shown[name], (heads or {}).get(name, ""))
        for name, what in about.items()
    }


def columns_of(
    kind: type[Model],
    heads: Mapping[str, str] | None = None,
    hidden: Container[str] = (),
    show: Mapping[str, Callable[[Any], doc.Value]] | None = None,
) -> dict[str, Column[Any]]:
    """Return the columns of records whose fields are described, like `fields`."""
    about = {name: field.description or "" for name, field in kind.model_fields.items()}
    return fields(about, heads, hidden, show)


@dataclass(frozen=True)
class DataTable(Generic[_Record]):
    """Records with described columns.

    Attributes:
        name: its name in the JSON.
        records: a record for each row.
        columns: the columns by name.
        overview: caption of the table over all sections, which comes first in a document of
            several; if empty, there is none.
    """

    name: str
    records: Sequence[_Record]
    columns: Mapping[str, Column[_Record]]
    overview: str = ""

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """The values of each row by column."""
        return [
            {name: column.value(record) for name, column in self.columns.items()}
            for record in self.records
        ]

    @property
    def units(self) -> dict[str, Literal["share", "points"]]:
        """What the numbers of each column are, as documents show them; counts are left out."""
        known: dict[Any, Literal["share", "points"]] = {as_it_is: "share", cells.points: "points"}
        return {
            name: known[column.show]
            for name, column in self.columns.items()
            if column.show in known
            and any(isinstance(row[name], Estimate | float) for row in self.values)
        }

    @property
    def heads(self) -> dict[str, str]:
        """What columns are called where people read them, if not by their names."""
        return {name: column.head for name, column in self.columns.items() if column.head}

    @property
    def filled(self) -> list[str]:
        """The columns that have a value in some row."""
        return [name for name in self.columns if any(row[name] is not None for row in self.values)]

    def shown(
        self, caption: str, only: Sequence[str] = (), *, names: int = 1, fold: str = ""
    ) -> doc.Table:
        """Return the table of a document: all columns that are shown, or only those named."""
        chosen = {name: self.columns[name] for name in only or self.columns}
        shown = {name: show for name, column in chosen.items() if (show := column.show)}
        head = [self.heads.get(name) or name.replace("_", " ") for name in shown]
        rows = [[show(row[name]) for name, show in shown.items()] for row in self.values]
        return doc.Table(head, rows, caption, names, fold)

    def _spelt(self, column: str, value: Any) -> str:
        """Return a value as the name of a dot, or of a row or column of a heat map."""
        return str((self.columns[column].show or as_it_is)(value))

    def dots(
        self,
        label: str,
        levels: Sequence[doc.Level] = (),
        name: Callable[[_Record], str] | None = None,
        *,
        number: str = "accuracy",
        reference: Callable[[_Record], bool] = lambda _record: False,
        parts: str = "",
    ) -> doc.Dots:
        """Draw a column of shares; each dot is named by the first column, unless ``name`` is given.

        ``parts`` is the column of small dots, and ``reference`` marks the rows to compare with.
        """
        first = next(iter(self.columns))
        dots = [
            doc.Dot(
                self._spelt(first, values[first]) if name is None else name(record),
                values[number],
                reference(record),
                values[parts] if parts else (),
            )
            for record, values in zip(self.records, self.values, strict=True)
        ]
        return doc.Dots(label, dots, levels, parts and f"a {parts.rstrip('s')}")

    def heat_map(
        self,
        caption: str,
        row: str,
        column: str,
        number: str,
        scale: doc.Scale = "share",
        marked: Callable[[_Record], bool] = lambda _record: False,
        chance: Callable[[_Record], float] | None = None,
    ) -> doc.HeatMap:
        """Arrange the numbers of a column by the values of two others.

        ``chance`` returns the accuracy of guessing, which records of a column share.
        """
        places = [(values[row], values[column]) for values in self.values]
        rows, columns = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
        numbers = {place: values[number] for place, values in zip(places, self.values, strict=True)}
        guessing = {
            other: chance(record)
            for (_, other), record in zip(places, self.records, strict=True)
            if chance is not None
        }
        outlined = [
            place for place, record in zip(places, self.records, strict=True) if marked(record)
        ]
        return doc.HeatMap(
            caption,
            f"{row} / {column}".replace("_", " "),
            [self._spelt(row, name) for name in rows],
            [self._spelt(column, name) for name in columns],
            [[numbers.get((name, other)) for other in columns] for name in rows],
            scale,
            frozenset((rows.index(name), columns.index(other)) for name, other in outlined),
            chance=[guessing[name] for name in columns] if guessing else (),
        )


@dataclass(frozen=True)
class RunRow:
    """A row of the table of runs.

    Attributes:
        axes: what the study varies, by name.
        runs: the run; or runs that differ only in what was drawn at random, which are averaged.
        average: their mean accuracy, resampled together with the rows that it is compared with;
            None for a run by itself, which has the interval of its own results.
    """

    axes: Mapping[str, Any]
    runs: Sequence[Finished]
    average: Resampled | None = None

    @property
    def label(self) -> str:
        """What distinguishes it from other rows."""
        return ", ".join(str(value) for value in self.axes.values() if value is not None)

    @cached_property
    def accuracy(self) -> Estimate:
        """Accuracy, or its mean over the draws."""
        if self.average is None:
            return self.runs[0].results.metrics.accuracy
        return self.average.estimate()

    @property
    def chance(self) -> float:
        """Mean of one over the number of choices."""
        return self.runs[0].results.metrics.chance

    def less(self, other: RunRow | float) -> Estimate | None:
        """Return the difference in points from a row of the same resamples, or from a number."""
        base = other.average if isinstance(other, RunRow) else other
        if self.average is None or base is None:
            return None
        return self.average.less(base).estimate(100)


def run_rows(
    runs: Sequence[Finished], axes: Mapping[str, Column[Finished]], average: int | None = None
) -> list[RunRow]:
    """Arrange runs by the axes of a study, in the order of the runs.

    Args:
        runs: the runs; if they are averaged, on one probe.
        axes: what the study varies, by name.
        average: the seed of the bootstrap, if runs of the same place are draws to be averaged.

    Raises:
        KbprobeError: no row of a run was scored.
    """
    groups = group_by(runs, lambda run: tuple(axis.value(run) for axis in axes.values()))
    averages = {} if average is None else DrawAverages(groups, average).each()
    return [
        RunRow(dict(zip(axes, place, strict=True)), group, averages.get(place))
        for place, group in groups.items()
    ]


RUN: dict[str, Column[RunRow]] = {
    "accuracy": Column(
        "Share of the scored rows answered right; mean over the draws if there are several. The "
        "interval resamples clusters of rows, and draws that are averaged.",
        lambda row: row.accuracy,
    ),
    "draws": Column(
        "Accuracy of each run.",
        lambda row: [run.results.metrics.accuracy.value for run in row.runs],
        len,
    ),
    "chance": Column("Mean of one over the number of choices.", lambda row: row.chance, None),
    "rows": Column("Rows evaluated.", lambda row: row.runs[0].results.metrics.items, None),
    "scored": Column(
        "Rows that were scored, in the run that scored the fewest.",
        lambda row: min(run.results.metrics.scored for run in row.runs),
        head="rows scored",
    ),
    "skipped": Column(
        "Rows that were not scored, in the run that scored the fewest.",
        lambda row: max(run.results.metrics.items - run.results.metrics.scored for run in row.runs),
    ),
    "clusters": Column(
        "Clusters with a scored row.", lambda row: row.runs[0].results.metrics.clusters, None
    ),
    "source": Column(
        "The probe: folder, file or Hub id, as it was given.",
        lambda row: row.runs[0].results.probe.source,
        None,
    ),
    "folders": Column(
        "The folders of the results; empty if none were written.",
        lambda row: [str(run.folder) for run in row.runs if run.folder is not None],
        None,
    ),
}
"""The columns that the table of runs has in every study, after those of its axes."""

PROBE: dict[str, Column[Finished]] = {
    "source": Column(
        "Folder, file or Hub id, as it was given.", lambda run: run.results.probe.source, None
    ),
    "fingerprint": Column(
        "sha256 of the rows evaluated.", lambda run: run.results.probe.fingerprint, None
    ),
    "rows": Column("Rows evaluated.", lambda run: run.results.metrics.items),
    "clusters": Column("Clusters with a scored row.", lambda run: run.results.metrics.clusters),
    "chance": Column("Mean of one over the number of choices.", lambda r: r.results.metrics.chance),
}
"""The columns of a table of probes, of which each record is a run on the probe."""


def runs_table(
    rows: Sequence[RunRow],
    axes: Mapping[str, Column[Finished]],
    further: Mapping[str, Column[RunRow]] | None = None,
) -> DataTable[RunRow]:
    """Return the table of runs: the axes, the numbers of all studies, and the study's own."""
    return DataTable("runs", rows, {**axes_columns(axes), **RUN, **(further or {})})


def axes_columns(axes: Mapping[str, Column[Finished]]) -> dict[str, Column[RunRow]]:
    """Return the columns of the axes in the table of runs."""

    def along(name: str) -> Callable[[RunRow], Any]:
        return lambda row: row.axes[name]

    return {
        name: Column(axis.about, along(name), axis.show, axis.head) for name, axis in axes.items()
    }


@dataclass(frozen=True)
class Contrast:
    """Two rows of the table of runs, compared on the rows of the probe that both scored.

    Attributes:
        first, second: the rows of the table.
        paired: their predictions, with the same item in each row.
        seed: the seed of the bootstrap.
        part: the rows compared, if not all, such as those of a distractor family.
        name: of these rows.
    """

    first: RunRow
    second: RunRow
    paired: PairedRows
    seed: int
    part: Ints | None = None
    name: str = ""

    @classmethod
    def of(cls, first: RunRow, second: RunRow, seed: int, *, partial: bool = False) -> Contrast:
        """Pair the rows of two runs.

        Raises:
            UsageError: the runs are on different rows.
        """
        return cls(first, second, pair_rows(first.runs[0], second.runs[0], partial=partial), seed)

    def by(self, column: str) -> list[Contrast]:
        """Return the contrast on the rows of each value of a column, such as the family."""
        parts = sorted(named_rows(self.paired.first[column]), key=lambda part: natural_key(part[0]))
        return [replace(self, part=rows, name=name) for name, rows in parts]

    def near_and_random(self) -> list[Contrast]:
        """Return the contrast on rows with near, and with random distractors, if there are both."""
        parts = {name: rows(self.paired.first) for name, rows in NEAR_AND_RANDOM.items()}
        if not all(rows.size for rows in parts.values()):
            return []
        return [replace(self, part=rows, name=name) for name, rows in parts.items()]

    def _own(self, numbers: _Array) -> _Array:
        """Return what is known of the rows that are compared."""
        return numbers if self.part is None else numbers[self.part]

    @cached_property
    def right(self) -> tuple[Bools, Bools]:
        """Whether each gets each row right."""
        first, second = self.paired.right
        return self._own(first), self._own(second)

    @cached_property
    def clusters(self) -> Ints:
        """The number of each row's cluster."""
        return self._own(self.paired.clusters)

    @cached_property
    def accuracies(self) -> tuple[Estimate, Estimate]:
        """Accuracy of both."""
        first, second = self.right
        return (
            intervals.accuracy(first, self.clusters, self.seed),
            intervals.accuracy(second, self.clusters, self.seed),
        )

    @cached_property
    def test(self) -> DifferenceTest:
        """The difference and its p, from the same resamples of whole clusters."""
        return intervals.paired_test(*self.right, self.clusters, self.seed)

    @property
    def subtraction(self) -> str:
        """What the difference is of, in words: ``B minus A``."""
        return f"{self.second.label} minus {self.first.label}"

    @property
    def gain(self) -> float:
        """Mean of being right of the second minus that of the first, without an interval."""
        first, second = self.right
        return float(second.mean() - first.mean())

    @property
    def difference(self) -> Estimate:
        """Accuracy of the second minus that of the first, in points."""
        return self.test.difference

    @property
    def p_value(self) -> float:
        """Two-sided p of the hypothesis that the difference is 0."""
        return self.test.p_value

    @cached_property
    def same(self) -> Estimate:
        """Share of rows with the same answer."""
        return intervals.accuracy(self._own(self.paired.same), self.clusters, self.seed)

    @cached_property
    def agreement(self) -> AnswerAgreement:
        """How similar the answers are."""
        same, choices = self._own(self.paired.same), self._own(self.paired.choices)
        return agreement_of(*self.right, same, choices, self.clusters, self.seed)

    @property
    def only_right(self) -> tuple[int, int]:
        """Number of rows that the first alone, and the second alone, gets right."""
        first, second = self.right
        return int((first & ~second).sum()), int((second & ~first).sum())


CONTRAST: dict[str, Column[Contrast]] = {
    "part": Column("The rows that are compared, if not all.", lambda pair: pair.name),
    "first": Column("A: one row of the table of runs.", lambda pair: pair.first.label, head="A"),
    "second": Column("B: the other.", lambda pair: pair.second.label, head="B"),
    "rows": Column("Rows that both scored.", lambda pair: pair.clusters.size),
    "clusters": Column("Their clusters.", lambda pair: np.unique(pair.clusters).size),
    "accuracy_first": Column(
        "Accuracy of A on these rows.", lambda pair: pair.accuracies[0], head="accuracy of A"
    ),
    "accuracy_second": Column(
        "Accuracy of B.", lambda pair: pair.accuracies[1], head="accuracy of B"
    ),
    "difference": Column(
        "Accuracy of B minus that of A, in percentage points; both are resampled together, by "
        "cluster.",
        lambda pair: pair.difference,
        cells.points,
        "B minus A",
    ),
    "p_value": Column(
        "Of the hypothesis that the difference is 0, two-sided: the level at which its interval "
        "ends at 0.",
        lambda pair: pair.p_value,
        p_value,
        "p",
    ),
    "p_mcnemar": Column(
        "Exact McNemar test, two-sided: takes rows to be independent.",
        lambda pair: mcnemar(*pair.only_right),
        p_value,
        "p (McNemar)",
    ),
    "only_first_right": Column(
        "Rows that A alone gets right.", lambda pair: pair.only_right[0], head="only A right"
    ),
    "only_second_right": Column(
        "Rows that B alone gets right.", lambda pair: pair.only_right[1], head="only B right"
    ),
    "same": Column(
        "Share of the rows with the same answer.", lambda pair: pair.same, head="same answer"
    ),
    "expected": Column(
        "That share for independent models with these accuracies, if each wrong choice is equally "
        "likely.",
        lambda pair: pair.agreement.expected,
    ),
    "kappa": Column(
        "Error consistency (Geirhos et al. 2020): Cohen's kappa of both being right, 0 if "
        "independent, 1 if right on the same rows. Without an interval where clusters are few; "
        "null if both are right on all rows, or both on none.",
        lambda pair: pair.agreement.kappa,
        cells.coefficient,
    ),
    "both_wrong": Column(
        "Rows of three choices or more that both get wrong.", lambda p: p.agreement.both_wrong
    ),
    "same_error": Column(
        "Share of these with the same wrong choice; null where there are none.",
        lambda pair: pair.agreement.errors,
        head="same wrong choice",
    ),
    "expected_error": Column(
        "That share if each wrong choice is equally likely.",
        lambda pair: pair.agreement.expected_errors,
        head="expected of errors",
    ),
    "only_first": Column("Items that only A was asked.", lambda pair: pair.paired.only_first),
    "only_second": Column("Items that only B was asked.", lambda pair: pair.paired.only_second),
    "skipped": Column(
        "Items asked of both, and not scored by one or both.", lambda p: p.paired.set_aside
    ),
}
"""The columns of contrasts; a study chooses those that it reports."""


def contrasts_table(
    contrasts: Sequence[Contrast],
    only: Sequence[str],
    name: str = "contrasts",
    further: Mapping[str, Column[Contrast]] | None = None,
) -> DataTable[Contrast]:
    """Return a table of contrasts, with the columns named and the study's own."""
    columns = {column: CONTRAST[column] for column in only}
    return DataTable(name, contrasts, {**columns, **(further or {})})


@dataclass(frozen=True)
class Section:
    """What a study reports on runs that belong together, such as those of a model on a probe.

    Attributes:
        place: what distinguishes it from other sections: the first columns of all its tables.
        tables: its tables, of which the JSON has every column.
        parts: what its document shows of them, below the sentences and notes.
        sentences: what the numbers show; the first five are kept.
        notes: what a reader must know.
        heading: its title, if it is about all others rather than about a place.
    """

    place: Mapping[str, str]
    tables: Sequence[DataTable[Any]]
    parts: Sequence[doc.Part | None]
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    heading: str = ""

    @property
    def title(self) -> str:
        """The values of its place, in short: ``wordnet_hypernymy (test), gpt2``."""
        if self.heading:
            return self.heading
        names = {**self.place}
        if split := names.pop("split", None):
            names["probe"] = f"{names['probe']} ({split})"
        if "model" in names:
            names["model"] = model_name(names["model"])
        return ", ".join(filter(None, names.values()))

    @property
    def shown(self) -> doc.Section:
        """The section of the document."""
        findings, caveats = doc.Findings(self.sentences[:SENTENCES]), doc.Caveats(self.notes)
        return doc.Section(self.title, [findings, caveats, *self.parts])


def place_of(run: Finished, *names: str) -> dict[str, str]:
    """Return the place of a section of runs on one probe, or of one model on one probe."""
    results = run.results
    known = {"probe": results.probe.name, "split": results.probe.split, "model": results.model.id}
    return {name: known[name] for name in names}


class SectionText(Model):
    """The sentences and notes of a section."""

    title: str = Field(description="What it is about.")
    sentences: list[str] = Field(description="What the numbers show.")
    notes: list[str] = Field(description="What a reader must know.")


class StudyTables(Model, Sealed):
    """The summary of a study: its tables, the meaning of their columns, and its text."""

    schema_version: str = "2.0"
    study: str = Field(description="The study.")
    columns: dict[str, dict[str, str]] = Field(
        description="What the columns of each table are. Shares are between 0 and 1, differences "
        "in percentage points."
    )
    units: dict[str, dict[str, Literal["share", "points"]]] = Field(
        {},
        description="What the numbers in the columns of each table are: shares, or differences in "
        "percentage points; those of other columns have no unit.",
    )
    heads: dict[str, dict[str, str]] = Field(
        {},
        description="What the columns of each table are called where people read them, if not by "
        "their names.",
    )
    tables: dict[str, list[dict[str, Any]]] = Field(
        description="The rows of each table; the first columns name the section that they are of."
    )
    sections: list[SectionText] = Field(description="The text of each section.")
    document: InstanceOf[doc.Document] | None = Field(
        None,
        exclude=True,
        repr=False,
        description="The document, which a summary that was read from a file does not have.",
    )
    sheets: dict[str, str] = Field(
        {}, exclude=True, repr=False, description="Additional files: texts by file name."
    )

    @field_validator("tables")
    @classmethod
    def _with_estimates(cls, tables: dict[str, list[dict[str, Any]]]) -> Any:
        """Turn what was read from a file into estimates."""
        for row in (row for rows in tables.values() for row in rows):
            for name, value in row.items():
                if (estimate := estimate_of(value)) is not None:
                    row[name] = estimate
        return tables

    def rows(self, table: str, **values: Any) -> list[dict[str, Any]]:
        """Return the rows of a table that have these values."""
        wanted = values.items()
        return [row for row in self.tables[table] if all(row[name] == own for name, own in wanted)]

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Return a table, by default the first; an estimate is its value.

        Raises:
            UsageError: there is no table of that name.
        """
        import pandas as pd

        name = table or next(iter(self.tables))
        if name not in self.tables:
            raise UsageError(f"there is no table {name!r}; there are: {', '.join(self.tables)}")
        return pd.DataFrame([*map(_plain_row, self.tables[name])])

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(sentence)}</p>" for sentence in self.sentences]
        for name, rows in self.tables.items():
            head = [*dict.fromkeys(column for row in rows for column in row)]
            cells = [[row.get(column) for column in head] for row in map(_plain_row, rows)]
            parts.append(PlainTable(head, cells).html(f"{self.study}: {name}"))
        return "\n".join(parts)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} ({len(rows):,})" for name, rows in self.tables.items())
        return "\n".join([f"{self.study}: tables {counts}", *self.sentences])

    __str__ = __repr__

    @property
    def notes(self) -> list[str]:
        """The notes of all sections."""
        return [note for section in self.sections for note in section.notes]

    @property
    def sentences(self) -> list[str]:
        """The sentences of all sections."""
        return [sentence for section in self.sections for sentence in section.sentences]


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.value if isinstance(value, Estimate) else value for name, value in row.items()
    }


def summary_of(
    study: str, kind: str, sections: Sequence[Section], what: str, reading: Sequence[str] = ()
) -> StudyTables:
    """Make the summary of a study, with its document.

    Args:
        study: the study's name.
        kind: what kind of document it has, such as ``Learning curves``.
        sections: its sections.
        what: what there are several of, if there are several sections, such as ``probes``.
        reading: paragraphs on how to read the numbers; those of some studies are in
            ``data/reading.yaml``.
    """
    tables: dict[str, list[dict[str, Any]]] = {}
    columns: dict[str, dict[str, str]] = {}
    units: dict[str, dict[str, Literal["share", "points"]]] = {}
    heads: dict[str, dict[str, str]] = {}
    for section in sections:
        place = dict.fromkeys(section.place, "What the section is about.")
        for table in section.tables:
            described = {name: column.about for name, column in table.columns.items()}
            columns.setdefault(table.name, {}).update(place | described)
            units.setdefault(table.name, {}).update(table.units)
            heads.setdefault(table.name, {}).update(table.heads)
            rows = tables.setdefault(table.name, [])
            rows += [{**section.place, **values} for values in table.values]
    texts = [
        SectionText(
            title=section.title,
            sentences=list(section.sentences[:SENTENCES]),
            notes=list(section.notes),
        )
        for section in sections
    ]
    shown = [section.shown for section in sections]
    placed = [section.title for section in sections if not section.heading]
    if len(placed) > 1 and (overviews := _overviews(sections)):
        shown.insert(0, doc.Section(f"All {what}", overviews))
    title = name_or_count(placed, what)
    return StudyTables(
        study=study,
        columns=columns,
        units=units,
        heads=heads,
        tables=tables,
        sections=texts,
        document=doc.Document(kind, title, shown, reading),
    )


def _overviews(sections: Sequence[Section]) -> list[doc.Table]:
    """Return the tables over all sections that have an overview."""
    tables: dict[str, doc.Table] = {}
    for section in sections:
        for table in section.tables:
            if table.overview:
                own = table.shown(table.overview)
                rows = [(section.title, *row) for row in own.rows]
                earlier = tables[table.name].rows if table.name in tables else []
                tables[table.name] = doc.Table(("", *own.head), [*earlier, *rows], own.caption)
    return list(tables.values())
