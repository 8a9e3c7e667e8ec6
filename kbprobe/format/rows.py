"""Faults of rows: what the item schema and the setup of a row require, checked in all rows at once.

Whatever reads rows finds their faults here: a build in the rows that it made, an evaluation in
those that it is to score, a release check in those to publish. Rows of other formats are first
brought into the schema (:mod:`evaluation.items.rows`).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import AnyInts, Bools, Ints, run_starts
from kbprobe.columns import mask, plain, positions, single_chunk, to_numpy
from kbprobe.format.items import LABELS, UNKNOWN, arrow_schema
from kbprobe.format.setups import MASK, SETUPS, Setup

if TYPE_CHECKING:
    import pyarrow as pa

UNLABELLED = "has no answer yet"
_SETUPS = tuple(SETUPS)
_OPTIONAL = ("pos", "content", "template", "concept", "cluster", "distractor_family")
"""Columns whose texts may be null or empty."""
_COUNTS = ("hops", "distractor_hops", "fold", "choice_hops")
"""Columns of numbers from 0."""
_EXPECTED = ("cluster", "concept", "answerKey", "schema_version", "choice_families", "fact_ids")
"""Columns without nulls in built probes, besides those of the question."""


@dataclass(frozen=True)
class Problem:
    """A fault of some rows.

    Attributes:
        field: the column, or the part of a column (``choices.text``).
        what: what is wrong with it, in words that follow the column's name.
        rows: the numbers of the rows, ascending.
        scorable: whether a model can be scored on such rows all the same; built probes have none.
    """

    field: str
    what: str
    rows: Ints
    scorable: bool = False

    def __str__(self) -> str:
        """Put it in words for all of its rows."""
        return f"{self.field} {self.what}"

    def in_row(self, table: pa.Table, row: int) -> str:
        """Return what is wrong with a row of the table, without the column: with its value."""
        name, _, part = self.field.partition(".")
        if self.what == UNLABELLED or name not in table.column_names:
            return self.what
        value = table[name][row].as_py()
        value = value[part] if part and value is not None else value
        return self.what if value is None else f"{self.what} (got {reprlib.repr(value)})"


class CodedRows:
    """Rows of the schema, with each distinct text once.

    The columns that say what is asked must be there, all others may be missing.
    """

    def __init__(self, table: pa.Table) -> None:
        """Read nothing yet: columns are encoded when they are needed."""
        self.table = table
        self._columns = dict[str, Any]()
        self._codes = dict[str, AnyInts]()
        self._sizes = dict[str, Ints]()
        self._grids = dict[str, list[tuple[Ints, Ints]]]()

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> pa.Array:
        """Return a column of texts as a dictionary; of a column of lists, their entries."""
        import pyarrow.compute as pc

        if name not in self._columns:
            lists = self.lists.get(name)
            entries = None if lists is None else single_chunk(pc.list_flatten(lists))
            self._columns[name] = _coded(self.whole(name) if entries is None else entries)
        return self._columns[name]

    def codes(self, name: str) -> AnyInts:
        """Return the index of each text of a column in its dictionary; -1 for null."""
        if name not in self._codes:
            self._codes[name] = to_numpy(self.column(name).indices.fill_null(-1))
        return self._codes[name]

    def of_values(self, name: str, values: Any, null: Any) -> Any:
        """Spread what is known of each distinct text of a column over its rows or entries."""
        return np.append(values, null)[self.codes(name)]

    @cached_property
    def lists(self) -> dict[str, pa.ChunkedArray]:
        """The columns of lists of texts: ``choices.text``, ``choices.label`` and others."""
        import pyarrow.compute as pc

        choices, names = self.table["choices"], self.table.column_names
        parts = {f"choices.{part}": pc.struct_field(choices, part) for part in ("text", "label")}
        further = ("choice_families", "fact_ids")
        return parts | {name: self.table[name] for name in further if name in names}

    def sizes(self, name: str) -> Ints:
        """Return the length of each list; 0 for null."""
        import pyarrow.compute as pc

        if name not in self._sizes:
            sizes = pc.fill_null(pc.list_value_length(self.lists[name]), 0)
            self._sizes[name] = to_numpy(sizes).astype(np.int64)
        return self._sizes[name]

    def grids(self, name: str) -> list[tuple[Ints, Ints]]:
        """Group rows with equally long lists, with the entries of each: shape [rows, entries]."""
        sizes = self.sizes(name)
        if name == "choices.label" and np.array_equal(sizes, self.sizes("choices.text")):
            return self.grids("choices.text")
        if name not in self._grids:
            starts, groups = run_starts(sizes)[:-1], []
            for size in np.unique(sizes).tolist():
                own = np.flatnonzero(sizes == size)
                groups.append((own, starts[own][:, None] + np.arange(size)))
            self._grids[name] = groups
        return self._grids[name]

    @cached_property
    def starts(self) -> Ints:
        """The start of each row's choices, and their number."""
        return run_starts(self.sizes("choices.text"))

    def row_of_entry(self, name: str) -> Ints:
        """Return the row of each entry of a column of lists."""
        return np.repeat(np.arange(len(self)), self.sizes(name))

    @cached_property
    def answers(self) -> Ints:
        """The index of each gold; -1 where there is none."""
        answers = single_chunk(self.table["answer"]).fill_null(UNKNOWN)
        return to_numpy(answers).astype(np.int64)

    @cached_property
    def labelled(self) -> Bools:
        """Whether the answer is one of the choices."""
        return (self.answers >= 0) & (self.answers < np.diff(self.starts))

    @cached_property
    def setups(self) -> Ints:
        """The number of each row's setup among all; -1 where there is no such setup."""
        known = positions(list(_SETUPS), self.column("setup").dictionary)
        setups: Ints = self.of_values("setup", known, -1)
        return setups

    def whole(self, name: str) -> pa.Array:
        """Return a column as one array; nulls if there is none."""
        import pyarrow as pa

        if name in self.table.column_names:
            return single_chunk(self.table[name])
        return pa.nulls(len(self), arrow_schema().field(name).type)


def problems(rows: CodedRows, built: bool = False) -> Iterator[Problem]:
    """Find the faults of rows, each with the rows that have it.

    A row may have several; a fault that follows from another comes after it.

    Args:
        rows: the rows; columns that are missing are not checked.
        built: whether a build made them, which has further rules: the labels are A, B, ... in
            order, and no choice is repeated, for example.
    """
    checks = [_identified(rows), _questions(rows), _choices(rows), _answers(rows), _about(rows)]
    if built:
        checks += [_built_choices(rows), _built_texts(rows)]
    return (problem for problem in chain(*checks) if problem.rows.size)


def _problem(field: str, what: str, where: Ints | Bools, scorable: bool = False) -> Problem:
    """Make a problem, perhaps of no row, from the numbers of its rows or a mask of all rows."""
    rows = np.flatnonzero(where) if where.dtype == np.bool_ else where.astype(np.int64)
    return Problem(field, what, rows, scorable)


def _identified(rows: CodedRows) -> Iterator[Problem]:
    ids = rows.whole("id")
    yield _problem("id", "is missing", mask(ids.is_null()))
    yield _problem("id", "is empty", _blank(ids))
    yield _problem("setup", f"is none of {', '.join(_SETUPS)}", rows.setups < 0)


def _questions(rows: CodedRows) -> Iterator[Problem]:
    """Check the texts that the setup of each row shows."""
    for number, setup in enumerate(SETUPS.values()):
        own = rows.setups == number
        if not own.any():
            continue
        for name in setup.texts:
            yield _problem(name, "is missing", own & (rows.codes(name) < 0))
            blank = _blank(rows.column(name).dictionary)
            yield _problem(name, "is empty", own & rows.of_values(name, blank, False))
        yield from _masks(rows, setup, own)


def _masks(rows: CodedRows, setup: Setup, own: Bools) -> Iterator[Problem]:
    import pyarrow.compute as pc

    times = f"{MASK} exactly once" if setup.masks else f"no {MASK}"
    for name in setup.texts:
        counts = to_numpy(pc.count_substring(rows.column(name).dictionary, MASK).fill_null(0))
        wrong = rows.of_values(name, counts != setup.masks, False)
        yield _problem(name, f"must show {times}", own & wrong, not (setup.masks or setup.labels))


def _choices(rows: CodedRows) -> Iterator[Problem]:
    sizes, labels = rows.sizes("choices.text"), rows.sizes("choices.label")
    missing = mask(rows.lists["choices.text"].is_null())
    yield _problem("choices.text", "are missing", missing)
    yield _problem(
        "choices", "hold another number of labels than of texts", ~missing & (sizes != labels)
    )
    yield _problem("choices.text", "are fewer than 2", ~missing & (sizes < 2))
    for name in ("choices.text", "choices.label"):
        yield _problem(name, "hold a null", _rows_with(rows, name, rows.codes(name) < 0))
        blank = rows.of_values(name, _blank(rows.column(name).dictionary), False)
        yield _problem(name, "hold an empty text", _rows_with(rows, name, blank))
    yield _problem("choices.label", "are not all different", _repeating(rows, "choices.label"))
    for number, setup in enumerate(SETUPS.values()):
        own = rows.setups == number
        if setup.labels and own.any():
            listed = ", ".join(setup.labels)
            wrong = own & ~_are(rows, np.flatnonzero(own), setup.labels)
            yield _problem("choices.text", f"must be the labels of {setup.name}: {listed}", wrong)


def _answers(rows: CodedRows) -> Iterator[Problem]:
    answers, sizes = rows.answers, rows.sizes("choices.text")
    outside = (answers < UNKNOWN) | (answers >= sizes)
    yield _problem("answer", "is not the index of a choice", outside & (sizes > 0))
    yield _problem("answer", UNLABELLED, answers == UNKNOWN)
    labelled = np.flatnonzero(rows.labelled & (sizes == rows.sizes("choices.label")))
    keys = rows.whole("answerKey")
    key_of = positions(rows.column("choices.label").dictionary, keys)
    stated = labelled[mask(keys.is_valid())[labelled]] if keys.null_count else labelled
    golds = run_starts(rows.sizes("choices.label"))[:-1][stated] + answers[stated]
    wrong = stated[key_of[stated] != rows.codes("choices.label")[golds]]
    yield _problem("answerKey", "is not the label of answer", wrong)
    texts, copies = rows.codes("choices.text"), np.zeros(len(rows), dtype=np.bool_)
    for own, grid in rows.grids("choices.text"):
        if grid.shape[1]:
            places = np.clip(answers[own], 0, grid.shape[1] - 1)
            shown = texts[grid]
            gold = np.take_along_axis(shown, places[:, None], axis=1)
            copies[own] = (shown == gold).sum(axis=1) > 1
    what = "hold the gold twice, and no choice could be called right"
    yield _problem("choices.text", what, copies & rows.labelled)


def _about(rows: CodedRows) -> Iterator[Problem]:
    """Check what is known about the questions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    there = rows.table.column_names
    for name in _OPTIONAL:
        if name in there:
            column = plain(rows.whole(name))
            words = column.unique()
            blank = words.filter(pa.array(_blank(words) & ~mask(_equal(words, ""))))
            if len(blank):
                yield _problem(name, "is white space", mask(pc.is_in(column, value_set=blank)))
    for name in _COUNTS:
        if name not in there:
            continue
        column = single_chunk(rows.table[name])
        lists = name == "choice_hops"
        entries = column.flatten() if lists else column
        if (pc.min(entries).as_py() or 0) >= 0:
            continue
        negative = to_numpy(entries.fill_null(0)) < 0
        if lists:
            sizes = to_numpy(column.value_lengths().fill_null(0))
            negative = np.unique(np.repeat(np.arange(len(rows)), sizes)[negative])
        yield _problem(
            name, "must be numbers from 0" if lists else "must be a number from 0", negative
        )


def _built_choices(rows: CodedRows) -> Iterator[Problem]:
    """Check what a build promises of choices."""
    sizes = rows.sizes("choices.text")
    odd = sizes != rows.sizes("choice_families")
    yield _problem("choice_families", "are not as many as the choices", odd, True)
    same = (sizes == rows.sizes("choices.label")) & ~odd
    label_row = rows.row_of_entry("choices.label")
    place = np.arange(label_row.size) - run_starts(rows.sizes("choices.label"))[label_row]
    expected = np.append(positions(rows.column("choices.label").dictionary, list(LABELS)), -2)
    wrong = rows.codes("choices.label") != expected[np.minimum(place, len(LABELS))]
    yield _problem("choices.label", "are not A, B, ... in order", np.unique(label_row[wrong]), True)
    yield _problem("choices.text", "hold a choice twice", _repeating(rows, "choices.text"), True)
    for number, setup in enumerate(SETUPS.values()):
        own = np.flatnonzero((rows.setups == number) & (sizes == len(setup.labels)))
        if setup.labels and own.size:
            grid = rows.starts[:-1][own][:, None] + np.arange(len(setup.labels))
            ordered = positions(rows.column("choices.text").dictionary, list(setup.labels))
            wrong = own[(rows.codes("choices.text")[grid] != ordered).any(axis=1)]
            yield _problem(
                "choices.text", f"must be in order: {', '.join(setup.labels)}", wrong, True
            )
    family = rows.column("choice_families").dictionary
    gold = rows.of_values("choice_families", mask(_equal(family, "gold")), False)
    golds = np.bincount(rows.row_of_entry("choice_families")[gold], minlength=len(rows))
    labelled = np.flatnonzero(rows.labelled & same)
    at_answer = np.zeros(len(rows), dtype=np.bool_)
    at_answer[labelled] = gold[
        run_starts(rows.sizes("choice_families"))[:-1][labelled] + rows.answers[labelled]
    ]
    wrong = rows.labelled & same & ((golds != 1) | ~at_answer)
    yield _problem("choice_families", "must be gold at the answer alone", wrong, True)


def _built_texts(rows: CodedRows) -> Iterator[Problem]:
    """Check what a build promises of texts: none is null, and the texts of a pair differ."""
    for name in (*_EXPECTED, "question", "premise", "hypothesis"):
        lists = rows.lists.get(name)
        missing = (rows.whole(name) if lists is None else lists).is_null()
        shown = np.isin(rows.setups, [n for n, s in enumerate(SETUPS.values()) if name in s.texts])
        yield _problem(name, "is missing", mask(missing) & ~shown, True)
        if lists is not None:
            yield _problem(name, "hold a null", _rows_with(rows, name, rows.codes(name) < 0), True)
    for number, setup in enumerate(SETUPS.values()):
        own = rows.setups == number
        if len(setup.texts) > 1 and own.any():
            first, second = (rows.column(name).dictionary_decode() for name in setup.texts)
            yield _problem(
                " and ".join(setup.texts), "are the same", own & mask(_equal(first, second)), True
            )


def _rows_with(rows: CodedRows, name: str, entries: Bools) -> Ints:
    """Return the rows whose lists have such an entry."""
    return np.unique(rows.row_of_entry(name)[entries]) if entries.any() else np.empty(0, np.int64)


def _repeating(rows: CodedRows, name: str) -> Ints:
    """Return the rows whose lists hold an entry twice."""
    codes, repeating = rows.codes(name), [np.empty(0, dtype=np.int64)]
    for own, grid in rows.grids(name):
        ordered = np.sort(codes[grid], axis=1)
        repeating.append(own[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)])
    return np.sort(np.concatenate(repeating))


def _are(rows: CodedRows, own: Ints, labels: tuple[str, ...]) -> Bools:
    """Return for all rows whether they are among some, and their choices these, in any order."""
    result = np.zeros(len(rows), dtype=np.bool_)
    expected = np.sort(positions(rows.column("choices.text").dictionary, list(labels)))
    own = own[rows.sizes("choices.text")[own] == len(labels)]
    grid = rows.starts[:-1][own][:, None] + np.arange(len(labels))
    codes = np.sort(rows.codes("choices.text")[grid], axis=1)
    result[own] = (codes == expected).all(axis=1) & (expected[0] >= 0)
    return result


def _coded(array: pa.Array) -> pa.Array:
    """Return texts as a dictionary."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type) and not array.dictionary.null_count:
        return array
    return plain(array).dictionary_encode()


def _blank(words: pa.Array) -> Bools:
    """Return which of some texts are white space alone; null is not."""
    import pyarrow.compute as pc

    return mask(_equal(pc.utf8_trim_whitespace(words), ""))


def _equal(first: pa.Array, second: Any) -> pa.Array:
    import pyarrow.compute as pc

    return pc.equal(first, second)
