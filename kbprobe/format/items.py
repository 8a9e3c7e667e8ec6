"""The item: one schema for every probe, as Arrow types and as ``datasets.Features``.

The schema only grows within a major version. Every row states ``SCHEMA_VERSION``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kbprobe.arrays import Ints, Some, ragged_ranges, run_starts
from kbprobe.format.manifest import SCHEMA_VERSION
from kbprobe.format.setups import SETUPS

if TYPE_CHECKING:
    import datasets

UNKNOWN = -1
"""The ``answer`` of a row without an answer; its ``answerKey`` is empty."""

LABELS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

COLUMNS: dict[str, str] = {
    "id": "Identity of the row: a hash of probe, question, gold and distractors, not of wording.",
    "question": "The question as rendered.",
    "choices": "The choices: `text` and `label` (A, B, ...), in the order shown.",
    "answer": "Index of the gold in `choices` (-1: not labelled yet).",
    "answerKey": "Label of the gold (empty: not labelled yet).",
    "setup": "How the row is evaluated: " + ", ".join(SETUPS) + ".",
    "cluster": "Rows of one concept, or of concepts that belong together; splits never divide one.",
    "concept": "The knowledge-base node asked about.",
    "relation": "What holds between concept and gold.",
    "hops": "Edges between concept and gold (0: the gold is the concept's own text).",
    "distractor_family": "Where the distractors come from.",
    "distractor_hops": "Their distance k' within the family (0: random).",
    "choice_nodes": "The node behind each choice.",
    "choice_families": "The family of each choice: gold, the row's family, or a random fill.",
    "choice_hops": "The distance of each choice.",
    "context": "The example sentence shown, if any.",
    "surface_form": "The word asked about as it stands in the context.",
    "pos": "Part of speech.",
    "content": "What the concept is: a common word, or a name: a taxon, a person, a place, another "
    "name (empty: not recorded).",
    "template": "Id of the wording used.",
    "arguments": "The task's arguments by name: what a no-language control keeps.",
    "triples": "The knowledge-base edges that make the gold true, or, where people tell what is "
    "true, those that the question was made from.",
    "fact_ids": "For each of `triples` the id of the row of another config that asks for it.",
    "premise": "First sentence of an NLI pair.",
    "hypothesis": "Second sentence of an NLI pair.",
    "flags": "What keeps the row out of the clean tier (empty: nothing).",
    "fold": "Which of ten folds the row is in, for cross-validation: whole clusters (null: none).",
    "schema_version": "Version of this schema.",
}
"""Every column, in order, and what it holds."""

ADDED = {"flags": "1.1", "fold": "1.2", "content": "1.3"}
"""The schema version that introduced a column, for columns added after the first version."""

COMMON = "common"
CONTENTS = (COMMON, "taxon", "person", "place", "name")
"""Kinds of concepts in the column ``content``: common words, or what encyclopedias list."""

MOST_NAMES = 0.2
"""If more than this share of rows is not about common words, the headline leaves them out."""

_STRING_LISTS = ("choice_nodes", "choice_families", "fact_ids", "flags")
_INTS = ("answer", "hops", "distractor_hops", "fold")


def _field_type(name: str) -> pa.DataType:
    if name == "choices":
        return pa.struct([("text", pa.list_(pa.string())), ("label", pa.list_(pa.string()))])
    if name in _STRING_LISTS:
        return pa.list_(pa.string())
    if name == "choice_hops":
        return pa.list_(pa.int32())
    if name == "arguments":
        return pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
    if name == "triples":
        names = ("subject", "relation", "object")
        return pa.list_(pa.struct([(part, pa.string()) for part in names]))
    return pa.int32() if name in _INTS else pa.string()


def arrow_schema(version: str = SCHEMA_VERSION) -> pa.Schema:
    """Return the item as an Arrow schema, carrying the ``huggingface`` metadata.

    ``version`` may be an earlier version with the same major number, which has fewer columns.
    """
    minor = int(version.split(".")[1])
    names = [name for name in COLUMNS if int(ADDED.get(name, "1.0").split(".")[1]) <= minor]
    schema = pa.schema([(name, _field_type(name)) for name in names])
    return schema.with_metadata({"huggingface": huggingface_metadata(schema)})


def huggingface_metadata(schema: pa.Schema) -> str:
    """Return the metadata by which ``datasets`` finds its Features in a Parquet file."""
    features = {field.name: _feature(field.type) for field in schema}
    return json.dumps({"info": {"features": features}}, separators=(",", ":"))


def features() -> datasets.Features:
    """Return the item as typed ``datasets.Features``."""
    from datasets import Features

    return Features.from_arrow_schema(arrow_schema())


def _feature(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": str(kind), "_type": "Value"}


@dataclass(frozen=True)
class Coded:
    """A column as distinct values and, for each row (or row and choice), an index into them."""

    values: pa.Array
    codes: Ints

    def take(self, rows: Some) -> Coded:
        """Return some of the rows."""
        return Coded(self.values, self.codes[rows])

    def array(self, rows: slice) -> pa.Array:
        """Return the rows as a dictionary array, or as lists of its values if codes are 2-d."""
        codes = self.codes[rows]
        flat = pa.DictionaryArray.from_arrays(pa.array(codes.ravel().astype(np.int32)), self.values)
        return flat if codes.ndim == 1 else pa.ListArray.from_arrays(_even(codes), flat)


@dataclass(frozen=True)
class Ragged:
    """A column of lists: row ``i`` shows list ``line[i]``.

    List ``j`` holds entries ``indptr[j] .. indptr[j + 1]`` of the parts, each part a coded
    column over all entries. Lists hold structs of the parts, or, if there is a single part without
    a name (""), its values.
    """

    line: Ints
    indptr: Ints
    parts: dict[str, Coded]

    def array(self, rows: slice) -> pa.Array:
        """Return the rows as a list array of dictionary arrays, or of structs of them."""
        line = self.line[rows]
        lengths = np.diff(self.indptr)[line]
        entries = ragged_ranges(self.indptr[line], lengths)
        parts = {name: part.take(entries).array(slice(None)) for name, part in self.parts.items()}
        offsets = run_starts(lengths).astype(np.int32)
        values = (
            parts[""] if "" in parts else pa.StructArray.from_arrays([*parts.values()], [*parts])
        )
        return pa.ListArray.from_arrays(pa.array(offsets), values)


@dataclass(frozen=True)
class Items:
    """All rows of one split and config, not yet laid out: columns by name.

    A column is a string (the same in every row), integers (1-d, or 2-d for lists), a
    :class:`Coded` or a :class:`Ragged`. The column ``choice_text`` becomes part of ``choices``.
    """

    rows: int
    columns: dict[str, str | Ints | Coded | Ragged | pa.Array]

    @property
    def clusters(self) -> Ints:
        """(rows,) the number of each row's cluster."""
        cluster = self.columns["cluster"]
        assert isinstance(cluster, Coded)
        return cluster.codes

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Lay out rows ``start .. stop`` in the order of :data:`COLUMNS`.

        Strings stay dictionary-encoded: gathered by index, never copied.
        """
        rows = slice(start, self.rows if stop is None else min(stop, self.rows))
        return pa.table({name: self._column(name, rows) for name in COLUMNS})

    def _column(self, name: str, rows: slice) -> pa.Array:
        if name == "choices":
            texts = self.columns["choice_text"]
            assert isinstance(texts, Coded)
            width = texts.codes.shape[1]
            position = np.tile(np.arange(width), rows.stop - rows.start).reshape(-1, width)
            label = Coded(pa.array(list(LABELS)), position)
            return pa.StructArray.from_arrays(
                [texts.array(rows), label.array(slice(None))], ["text", "label"]
            )
        value = self.columns.get(name, "")
        if isinstance(value, str):
            constant = np.zeros(rows.stop - rows.start, dtype=np.int64)
            return Coded(pa.array([value]), constant).array(slice(None))
        if isinstance(value, Coded | Ragged):
            return value.array(rows)
        if isinstance(value, np.ndarray):
            numbers = pa.array(value[rows].ravel().astype(np.int32))
            if value.ndim == 1:
                return numbers
            return pa.ListArray.from_arrays(_even(value[rows]), numbers)
        return value[rows]


@dataclass(frozen=True)
class ItemsInParts:
    """All rows of one split and config, produced one part at a time.

    Attributes:
        cuts: where parts begin, and where the last ends.
        make: makes the items of rows ``start .. stop``.
        clusters: (rows,) the number of each row's cluster.
        count: returns counts for rows ``start .. stop`` once they have been made.
        num_bytes: the bytes of all rows as Arrow has them, once they are known.
    """

    cuts: tuple[int, ...]
    make: Callable[[int, int], Items]
    clusters: Ints
    count: Callable[[int, int], int]
    num_bytes: int | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.cuts[-1]

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Lay out rows ``start .. stop`` like :meth:`Items.table`; decoded, if of several parts."""
        stop = self.rows if stop is None else min(stop, self.rows)
        ends = [*(cut for cut in self.cuts if start < cut < stop), stop]
        tables = [self.make(at, end).table() for at, end in zip([start, *ends], ends, strict=False)]
        return tables[0] if len(tables) == 1 else pa.concat_tables(map(plain, tables))


def plain(table: pa.Table) -> pa.Table:
    """Decode the dictionaries of a table of items: the types of :func:`arrow_schema`."""
    schema = arrow_schema()
    return pa.table(
        [_decoded(table[name].combine_chunks(), schema.field(name).type) for name in COLUMNS],
        schema=schema,
    )


def _decoded(array: Any, kind: pa.DataType) -> Any:
    if isinstance(array, pa.ChunkedArray):
        chunks = [_decoded(chunk, kind) for chunk in array.chunks]
        return pa.chunked_array(chunks, type=kind)
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode().cast(kind)
    if pa.types.is_struct(array.type):
        parts = [_decoded(array.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in kind])
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _decoded(array.values, kind.value_type))
    return array.cast(kind)


def _even(codes: Ints) -> pa.Array:
    """Return the offsets of lists that are all as long as the second axis."""
    return pa.array(np.arange(codes.shape[0] + 1, dtype=np.int32) * codes.shape[1])
