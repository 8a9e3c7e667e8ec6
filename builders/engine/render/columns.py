"""Columns of items from plans: only the values in use, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.render.jinja import Rewrite, TemplateError, render_batch
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import Ints, UInts, ragged_ranges, sorted_unique
from kbprobe.columns import to_numpy
from kbprobe.format.items import Coded, Items, Ragged
from kbprobe.format.setups import MASK

Fields = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class QuestionBatch:
    """Distinct questions, each with its wording.

    Attributes:
        template: the wordings.
        fields: template field -> values of all of the plan's questions.
        used: (questions,) those in use, as lines of ``fields``.
        wording: (questions,) index of each one's wording.
    """

    template: Template
    fields: Mapping[str, pa.Array]
    used: Ints
    wording: Ints

    def render(
        self,
        rewrite: Callable[[Wording], Rewrite | None] = lambda _: None,
        more: Callable[[Wording, Ints], Fields] = lambda *_: {},
    ) -> pa.Array:
        """Render each question with its wording, one Jinja call for each wording.

        Args:
            rewrite: the change to a wording's syntax tree, if any.
            more: given a wording and the questions that have it (as positions in ``used``),
                fields that the change brings in.

        Returns:
            The texts, one for each of ``used``.
        """
        order = np.argsort(self.wording, kind="stable")
        rendered: list[str] = []
        for number, wording in enumerate(self.template.questions):
            some = order[self.wording[order] == number]
            lines = pa.array(self.used[some])
            fields: dict[str, Sequence[Any]] = {
                name: values.take(lines).to_pylist() for name, values in self.fields.items()
            }
            fields |= more(wording, some)
            where = f"{self.template.probe}: {wording.id}"
            rendered += render_batch(wording.text, fields, where, rewrite(wording))
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        return pa.array(rendered, pa.string()).take(pa.array(place))

    def arguments(self) -> dict[str, pa.Array]:
        """Return the task's arguments: name -> texts, one for each of ``used``."""
        lines = pa.array(self.used)
        return {
            name: self.fields[name].take(lines).cast(pa.string())
            for name in self.template.arguments
        }

    def check_masks(self, texts: pa.Array, what: str) -> None:
        """Make sure that each rendered question shows the mask once.

        Raises:
            TemplateError: one does not; the message names the wording and shows the question.
        """
        wrong = pc.index(pc.equal(pc.count_substring(texts, MASK), 1), False).as_py()
        if wrong >= 0:
            wording = self.template.questions[int(self.wording[wrong])]
            raise TemplateError(
                f"a cloze question shows {MASK} exactly once, not as in {texts[wrong].as_py()!r}",
                where=f"{self.template.probe}: {wording.id} ({what})",
            )


SPARSE = 4
"""If there are more than this many values per code, codes are sorted instead of looked up."""


def compact(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the codes in use, ascending, and the codes renumbered by them.

    If ``size`` is much larger than the number of codes, it does not affect the running time.
    """
    if size > SPARSE * codes.size:
        used = sorted_unique(codes)
        return used.astype(np.int64), np.searchsorted(used, codes)
    found = np.zeros(size, dtype=np.bool_)
    found[codes.ravel()] = True
    number = np.cumsum(found) - 1
    return np.flatnonzero(found), number[codes]


def compacted(column: Any) -> Any:
    """Keep only the values in use, each once.

    Columns point into tables that are much larger, or that hold a text several times; Parquet's
    writer takes an index over as it is only where all its values differ.
    """
    if isinstance(column, Coded):
        used, codes = compact(column.codes, len(column.values))
        distinct = column.values.take(pa.array(used)).dictionary_encode()
        return Coded(distinct.dictionary, to_numpy(distinct.indices).astype(np.int64)[codes])
    if isinstance(column, Ragged):
        lines, line = compact(column.line, column.indptr.size - 1)
        starts = column.indptr[lines]
        lengths = column.indptr[lines + 1] - starts
        entries = ragged_ranges(starts, lengths)
        parts = {
            name: compacted(replace(part, codes=part.codes[entries]))
            for name, part in column.parts.items()
        }
        return Ragged(line, np.concatenate([[0], np.cumsum(lengths)]), parts)
    return column


def some_items(columns: dict[str, Any], start: int, stop: int) -> Items:
    """Return a stretch of the rows that some columns hold."""
    rows = slice(start, stop)
    return Items(stop - start, {name: _sliced(column, rows) for name, column in columns.items()})


def _sliced(column: Any, rows: slice) -> Any:
    if isinstance(column, Coded):
        return Coded(column.values, column.codes[rows])
    if isinstance(column, Ragged):
        return replace(column, line=column.line[rows])
    return column if isinstance(column, str) else column[rows]


def argument_column(batch: QuestionBatch, question: Ints) -> Ragged:
    """List the question's arguments by name, one line a question."""
    arguments = batch.arguments()
    names, lines = list(arguments), batch.used.size
    entry = np.arange(lines * len(names), dtype=np.int64)
    # Entry e belongs to line e // len(names) and to argument e % len(names).
    argument, line = entry % max(len(names), 1), entry // max(len(names), 1)
    joined = pa.concat_arrays([*arguments.values(), pa.array([], pa.string())])
    parts = {
        "name": Coded(pa.array(names, pa.string()), argument),
        "value": Coded(joined, argument * lines + line),
    }
    return Ragged(question, np.arange(lines + 1, dtype=np.int64) * len(names), parts)


def id_texts(ids: UInts) -> pa.Array:
    """Spell 64-bit ids out as 16 hexadecimal digits, without a Python string for each."""
    digits = ids.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(ids.size + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(ids.size, pa.py_buffer(offsets), pa.py_buffer(digits))
