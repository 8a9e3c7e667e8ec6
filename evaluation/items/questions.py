"""Questions from the columns of published rows, checked all at once.

Rows reach this module in one form, whatever file or table they come from: as
:class:`RowColumns`. Here are all checks of their values, each vectorised over the rows.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from evaluation.items.rows import UNLABELLED, Problem, refusal
from evaluation.items.types import SCORED_SETUPS, Item, Links
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import KbprobeError
from kbprobe.format.setups import CLOZE, MASK

if TYPE_CHECKING:
    import pyarrow as pa

ABOUT = {
    "cluster": "string",
    "hops": "int32",
    "distractor_family": "string",
    "distractor_hops": "int32",
    "pos": "string",
    "template": "string",
    "concept": "string",
}
"""What is known of an item beside its question: columns and their Arrow types."""


@dataclass(frozen=True)
class Questions:
    """The questions of a split, and what is known of each (:data:`ABOUT`, null: unknown).

    ``links`` is None where no question names the facts that it rests on, ``arguments`` where none
    names what fills its template.
    """

    items: tuple[Item, ...]
    about: pa.Table
    links: Links | None = None
    arguments: pa.Array | None = None


@dataclass(frozen=True)
class RowColumns:
    """Published rows as columns of the right types, without blank or missing texts.

    Attributes:
        unit: what ``places`` count: line, row or item.
        places: where each row is in its source, from 1. Shape [rows].
        nested: whether question and choices are in an object ``question``. Shape [rows].
        columns: ``id``, ``question``, ``setup``, ``key`` (strings), ``answer`` and ``key_number``
            (integers), ``texts`` and ``labels`` (lists of strings, as many of one as of the
            other), those of :data:`ABOUT`, ``fact_ids``, ``relation`` and ``arguments``.
            ``answer`` is the gold's index where the row gives one, else null, and ``key`` or
            ``key_number`` gives it.
        problems: rows that could not be brought into this form; they are not among the columns.
    """

    unit: str
    places: Ints
    nested: Bools
    columns: pa.Table
    problems: list[Problem] = field(default_factory=list)


def questions(rows: RowColumns, source: str) -> Questions:
    """Check rows and return them as questions.

    Args:
        rows: the rows.
        source: what they were read from, for the message.

    Raises:
        KbprobeError: any row is malformed or unlabelled; it names the first few by place and
            field and counts the rest. Nothing is ever scored on the rows that happen to be well.
    """
    import pyarrow as pa

    check = _Check(rows)
    items = check.items()
    if problems := sorted([*rows.problems, *check.problems]):
        total = rows.places.size + len(rows.problems)
        raise KbprobeError(refusal(source, rows.unit, problems, total))
    held = check.columns
    about = pa.table([held[name] for name in ABOUT], schema=pa.schema(list(ABOUT.items())))
    links = None
    if len(held["fact_ids"].flatten()):
        ids = tuple(tuple(names or ()) for names in held["fact_ids"].to_pylist())
        links = Links(ids, tuple(name or "" for name in held["relation"].to_pylist()))
    arguments = held["arguments"] if len(held["arguments"].flatten()) else None
    return Questions(items, about, links, arguments)


class _Check:
    """The checks, in the order in which a row's first problem is reported."""

    def __init__(self, rows: RowColumns) -> None:
        self.rows = rows
        self.columns = {
            name: single_chunk(rows.columns[name]) for name in rows.columns.column_names
        }
        self.sound: Bools = np.ones(rows.places.size, dtype=np.bool_)
        self.problems: list[Problem] = []
        self.sizes = to_numpy(self.columns["texts"].value_lengths()).astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.row_of = np.repeat(np.arange(self.sizes.size), self.sizes)
        self.labels, self.label_of = coded(self.columns["labels"].flatten())

    def items(self) -> tuple[Item, ...]:
        """Check all rows; return the sound ones as items."""
        texts_asked, question_of = coded(self.columns["question"])
        texts, text_of = coded(self.columns["texts"].flatten())
        self._choices()
        gold = self._gold()
        self._gold_once(texts, text_of, gold)
        setups = self._setups(texts_asked, question_of)
        names = self.columns["id"].to_pylist()
        words = [texts[code] for code in text_of.tolist()]
        ends = (self.starts + self.sizes).tolist()
        columns = (names, setups, question_of.tolist(), self.starts.tolist(), ends, gold.tolist())
        rows = (
            Item(name, setup, texts_asked[asked] or "", tuple(words[start:end]), answer)
            for name, setup, asked, start, end, answer in zip(*columns, strict=True)
        )
        sound = self.sound.tolist()
        return self._own_ids([item for item, kept in zip(rows, sound, strict=True) if kept])

    def refuse(self, bad: Bools, path: str, what: str | Callable[[int], str]) -> None:
        """Report rows that are ``bad`` and had no problem so far. Shape [rows]."""
        for row in np.flatnonzero(bad & self.sound).tolist():
            nested = self.rows.nested[row] and path == "choices"
            said = what if isinstance(what, str) else what(row)
            place = int(self.rows.places[row])
            self.problems.append(Problem(place, f"question.{path}" if nested else path, said))
        self.sound &= ~bad

    def _per_row(self, marked: Bools) -> Ints:
        """Count the marked choices of each row."""
        return np.bincount(self.row_of[marked], minlength=self.sizes.size)

    def _labels_of(self, row: int) -> list[str]:
        here = slice(self.starts[row], self.starts[row] + self.sizes[row])
        return [str(self.labels[code]) for code in self.label_of[here].tolist()]

    def _choices(self) -> None:
        few = "are {}; there must be at least 2"
        self.refuse(self.sizes < 2, "choices", lambda row: few.format(self.sizes[row]))
        pairs = np.unique(np.stack([self.row_of, self.label_of]), axis=1)
        shared = np.bincount(pairs[0], minlength=self.sizes.size) < self.sizes
        self.refuse(
            shared, "choices", lambda row: f"share a label: {', '.join(self._labels_of(row))}"
        )

    def _gold(self) -> Ints:
        """Return the gold's index in each row, 0 where there is a problem.

        kbprobe's own rows give it as ``answer``, and ``answerKey`` must agree. Elsewhere
        ``answerKey`` is a label, or an index from 0 where it is an integer and labels are letters.
        """
        own, answer = _numbers(self.columns["answer"])
        is_number, key_number = _numbers(self.columns["key_number"])
        keys = [
            number if numeric else key
            for key, number, numeric in zip(
                self.columns["key"].to_pylist(), key_number.tolist(), is_number, strict=True
            )
        ]
        digits = np.array([str(label).isdigit() for label in self.labels], dtype=np.bool_)
        by_index = own | (is_number & (self._per_row(digits[self.label_of]) == 0))
        index = np.where(own, answer, key_number)
        unset = np.array([key in (None, "", -1, "-1") for key in keys], dtype=np.bool_)
        outside = by_index & ((index < 0) | (index >= self.sizes))

        def range_of(row: int) -> str:
            return f"is {index[row]}; the {self.sizes[row]} choices are 0 to {self.sizes[row] - 1}"

        for asked, path in ((own, "answer"), (~own, "answerKey")):
            self.refuse(asked & np.where(own, answer == -1, unset), path, UNLABELLED)
            self.refuse(asked & outside, path, range_of)
        number_of = {label: code for code, label in enumerate(self.labels) if label is not None}
        key_of = np.array([number_of.get(str(key), -1) for key in keys], dtype=np.int64)
        same = np.flatnonzero(self.label_of == key_of[self.row_of])
        place = np.full(self.sizes.size, -1)
        place[self.row_of[same]] = same - self.starts[self.row_of[same]]

        def disagrees(row: int) -> str:
            label = self._labels_of(row)[answer[row]]
            return f"is {reprlib.repr(keys[row])}, but answer is {answer[row]}, labelled {label!r}"

        def unknown(row: int) -> str:
            named = ", ".join(self._labels_of(row))
            return f"is {reprlib.repr(keys[row])}, which is not among the labels {named}"

        given = np.array([key is not None for key in keys], dtype=np.bool_)
        self.refuse(own & given & (is_number | (place != answer)), "answerKey", disagrees)
        self.refuse(~by_index & (place < 0), "answerKey", unknown)
        return np.where(self.sound, np.where(by_index, index, place), 0)

    def _gold_once(self, texts: list[str | None], text_of: Ints, gold: Ints) -> None:
        code = np.append(text_of, -1)[np.minimum(self.starts + gold, text_of.size)]
        twice = self._per_row(text_of == code[self.row_of]) > 1
        said = "hold the gold twice: {}; no choice could be called right"
        self.refuse(twice, "choices", lambda row: said.format(reprlib.repr(texts[code[row]])))

    def _setups(self, texts_asked: list[str | None], question_of: Ints) -> list[str]:
        """Return each row's setup: where it gives none, a mask makes it a cloze."""
        masks = np.array([(text or "").count(MASK) for text in texts_asked], dtype=np.int64)[
            question_of
        ]
        setups = [
            name if name is not None else CLOZE if mask else "mc_qa"
            for name, mask in zip(self.columns["setup"].to_pylist(), masks.tolist(), strict=True)
        ]
        unknown = np.array([name not in SCORED_SETUPS for name in setups], dtype=np.bool_)
        several = np.array([name == CLOZE for name in setups], dtype=np.bool_) & (masks != 1)
        self.refuse(unknown, "setup", lambda row: unknown_setup(setups[row]))
        said = "holds {} {}; a cloze has exactly one"
        self.refuse(several, "question", lambda row: said.format(masks[row] or "no", MASK))
        return setups

    def _own_ids(self, items: list[Item]) -> tuple[Item, ...]:
        """Give each row an id of its own.

        Published files repeat questions, id and all: the second becomes ``ID#2``, so that every
        row is scored, as in the published figures. Other questions under one id are an error.
        """
        taken = {item.id for item in items}
        if len(taken) == len(items):
            return tuple(items)
        places = self.rows.places[self.sound].tolist()
        first: dict[str, int] = {}
        times: dict[str, int] = {}
        result = []
        for at, item in enumerate(items):
            earlier = first.setdefault(item.id, at)
            if earlier != at and items[earlier].question != item.question:
                where = f"{self.rows.unit} {places[earlier]}"
                what = f"{item.id!r} is also that of {where}, another question"
                self.problems.append(Problem(places[at], "id", what))
            elif earlier != at:
                number = times.get(item.id, 1) + 1
                while f"{item.id}#{number}" in taken:
                    number += 1
                times[item.id] = number
                item = replace(item, id=f"{item.id}#{number}")
                taken.add(item.id)
            result.append(item)
        return tuple(result)


def unknown_setup(value: object) -> str:
    """Say that rows of a setup are not scored."""
    known = " and ".join(SCORED_SETUPS)
    return f"is {reprlib.repr(value)}; choices are scored in {known} rows, others need a classifier"


def coded(column: pa.Array) -> tuple[list[str | None], Ints]:
    """Return a column's distinct texts (null is one, None) and each entry's index into them."""
    import pyarrow as pa

    array = single_chunk(column)
    array = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    words: list[str | None] = [*array.dictionary.to_pylist(), None]
    return words, to_numpy(array.indices.fill_null(len(words) - 1)).astype(np.int64)


def _numbers(column: pa.Array) -> tuple[Bools, Ints]:
    """Which entries of a column of integers are there, and their values (0 where null)."""
    given = to_numpy(column.is_valid().cast("int8")).astype(np.bool_)
    return given, to_numpy(column.fill_null(0)).astype(np.int64)
