"""Streaming ConceptNet's tab-separated files: the 5.7 assertions dump and CN-100K triples.

The files have no quoting, so that lines are split by looking for tabs and newlines in blocks of
bytes. Arrow's and DuckDB's readers of CSV are about as fast (see benchmarks/conceptnet.py); but
at a line that is not UTF-8 they reject the whole file, or cannot name the line. Lines that the
selection leaves out are only checked for the number and beginnings of their columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from kb_cache.base import Progress
from kb_cache.conceptnet.types import Malformed, Selection, edges_schema
from kb_cache.unpack import DAMAGE, LineTooLong, UnpackedFile
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import SourceError

#: Bytes that are parsed at a time.
_BLOCK = 4 << 20
#: No line of a dump is nearly as long; a file without newlines must not fill the memory.
_LONGEST_LINE = 16 << 20
_NEWLINE = 10
#: The dataset that edges of CN-100K are said to come from.
CN100K = "/d/cn100k"
_INFO = pa.schema(
    [("dataset", pa.string()), ("weight", pa.float64()), ("surfaceText", pa.string())]
)
_CONCEPT = r"^/c/[^/]+/[^/]"
#: The required prefixes of columns, and the message if one is missing.
_BEGINNINGS = (
    (1, "/r/", "its second column is not a relation"),
    (2, "/c/", "its third column is not a concept"),
)


@dataclass
class _Lines:
    """The well-formed lines of a file, a block at a time."""

    path: Path
    columns: int
    malformed: Malformed
    progress: Progress | None

    def __iter__(self) -> Iterator[_Fields]:
        """Yield the fields of each block; lines with another number of columns are left out."""
        try:
            with self.path.open("rb") as file:
                for block in UnpackedFile(file, self.progress).blocks(_BLOCK, _LONGEST_LINE):
                    yield self._split(block if block.endswith(b"\n") else block + b"\n")
                    self.malformed.check()
        except LineTooLong as error:
            raise SourceError(
                f"{self.path}: line {self.malformed.lines + 1:,} is longer than "
                f"{_LONGEST_LINE:,} bytes; this is not ConceptNet"
            ) from error
        except (OSError, *DAMAGE) as error:
            raise SourceError(
                f"cannot read {self.path} after line {self.malformed.lines:,}: {error}"
            ) from error

    def _split(self, block: bytes) -> _Fields:
        content = np.frombuffer(block, np.uint8)
        # Tab is 9, newline 10; all other bytes are further from 9 in unsigned arithmetic.
        ends = np.flatnonzero(content - np.uint8(9) < 2)
        last = np.flatnonzero(content[ends] == _NEWLINE)
        first = np.concatenate([np.zeros(1, dtype=np.int64), last[:-1] + 1])
        found = last - first + 1
        line = self.malformed.lines + 1 + np.arange(last.size, dtype=np.int64)
        self.malformed.lines += last.size
        valid = found == self.columns
        for number, count in zip(line[~valid].tolist(), found[~valid].tolist(), strict=True):
            self.malformed.add(number, f"{count} columns instead of {self.columns}")
        offsets = np.zeros(ends.size + 1, dtype=np.int32)
        offsets[1:] = ends + 1
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
        pieces = pa.Array.from_buffers(pa.binary(), ends.size, buffers)
        return _Fields(content, pieces, offsets, first[valid], line[valid])

    def reject(self, batch: pa.RecordBatch, valid: Any, why: str) -> pa.RecordBatch:
        """Leave out the rows that are not valid, and note their lines."""
        if pc.all(valid, min_count=0).as_py():
            return batch
        for line in batch["line"].filter(pc.invert(valid)).to_pylist():
            self.malformed.add(line, why)
        return batch.filter(valid)

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn the binary columns into strings; lines that are not UTF-8 are left out."""
        for name in batch.schema.names:
            if batch.schema.field(name).type != pa.binary():
                continue
            try:
                column = batch[name].cast(pa.string())
            except pa.ArrowInvalid:
                batch = self.reject(batch, _is_utf8(batch[name]), "not UTF-8")
                column = batch[name].cast(pa.string())
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        return batch


@dataclass(frozen=True)
class _Fields:
    """The fields of some lines of a block.

    ``pieces`` are all fields of the block with the separators after them, ``offsets`` where they
    begin. A line is the index of its first field, and its number in the file.
    """

    content: npt.NDArray[np.uint8]
    pieces: pa.Array
    offsets: npt.NDArray[np.int32]
    first: Ints
    line: Ints

    def starts_with(self, column: int, prefix: str) -> Bools:
        """Mark the lines that have a prefix in a column."""
        at = self.offsets[self.first + column]
        result = np.ones(at.size, dtype=np.bool_)
        for place, byte in enumerate(prefix.encode()):
            # Past the end of the block there is no prefix: its last byte is a newline.
            result &= self.content[np.minimum(at + place, self.content.size - 1)] == byte
        return result

    def filter(self, mask: Bools) -> _Fields:
        """Some of the lines."""
        return replace(self, first=self.first[mask], line=self.line[mask])

    def batch(self, columns: dict[str, int]) -> pa.RecordBatch:
        """Some columns by name, as binary arrays, and ``line``."""
        arrays = {
            name: pc.binary_slice(self.pieces.take(pa.array(self.first + at)), 0, -1)
            for name, at in columns.items()
        }
        return pa.record_batch({**arrays, "line": pa.array(self.line)})


def read_dump(
    path: Path, selection: Selection, malformed: Malformed, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    """Stream the edges of a 5.7 dump: edge URI, relation, start, end, JSON. See `read_edges`."""
    lines = _Lines(path, 5, malformed, progress)
    wanted = pa.array([f"/r/{name}" for name in selection.relation_names], pa.string())
    prefixes = [f"/c/{language}/" for language in selection.languages] or ["/c/"]
    for fields in lines:
        for column, prefix, why in _BEGINNINGS:
            valid = fields.starts_with(column, prefix)
            for line in fields.line[~valid].tolist():
                malformed.add(line, why)
            fields = fields.filter(valid)
        for end in (2, 3):
            inside = [fields.starts_with(end, prefix) for prefix in prefixes]
            fields = fields.filter(np.logical_or.reduce(inside))
        batch = lines.decoded(fields.batch({"relation": 1, "start": 2, "end": 3, "info": 4}))
        if len(wanted):
            batch = batch.filter(pc.is_in(batch["relation"], value_set=wanted))
        for name in ("start", "end"):
            texts = pc.match_substring_regex(batch[name], _CONCEPT)
            batch = lines.reject(batch, texts, f"its {name} has no text")
        if batch.num_rows:
            yield _with_info(batch, lines)


def read_triples(
    path: Path, selection: Selection, malformed: Malformed, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    """Stream the edges of CN-100K: relation, head, tail as English text; all of weight 1."""
    lines = _Lines(path, 3, malformed, progress)
    english = not selection.languages or "en" in selection.languages
    wanted = pa.array(selection.relation_names, pa.string())
    for fields in lines:
        batch = lines.decoded(fields.batch({"relation": 0, "start": 1, "end": 2}))
        for at, name in enumerate(("start", "end"), start=1):
            batch = batch.set_column(at, name, pc.utf8_trim_whitespace(batch[name]))
            terms = pc.match_substring_regex(batch[name], "^[^/_]+$")
            batch = lines.reject(batch, terms, f"its {name} is not a term")
        if len(wanted):
            batch = batch.filter(pc.is_in(batch["relation"], value_set=wanted))
        if not batch.num_rows or not english:
            continue
        uris = [
            pc.binary_join_element_wise("/c/en/", pc.replace_substring(batch[name], " ", "_"), "")
            for name in ("start", "end")
        ]
        rows = batch.num_rows
        columns = [
            batch["relation"], *uris, pa.repeat(1.0, rows), pa.repeat(CN100K, rows),
            pa.nulls(rows, pa.string()),
        ]  # fmt: skip
        yield pa.record_batch(columns, schema=edges_schema())


def parse_info(infos: pa.Array) -> tuple[pa.Table, Any]:
    """Read the JSON column of edges: ``{"dataset": "/d/x", "weight": 2.0, "surfaceText": "..."}``.

    Returns:
        A table (``dataset``, ``weight``, ``surfaceText``) with a row for each of ``infos``, and a
        boolean array that tells which rows are valid: JSON objects with a finite weight.
    """
    table = _parse_at_once(infos)
    if table is None:
        table = pa.Table.from_pylist([_parse_one(text) for text in infos.to_pylist()], _INFO)
    return table, pc.fill_null(pc.is_finite(table["weight"]), False).combine_chunks()


def _parse_at_once(infos: pa.Array) -> pa.Table | None:
    """Read all with Arrow's parser; None if any is malformed, or the parser cannot tell."""
    # A line that is not an object, or two, would shift all the others.
    if not pc.all(pc.match_substring_regex(infos, r"(?s)^\{.*\}$")).as_py():
        return None
    one = pa.ListArray.from_arrays(pa.array([0, len(infos)], pa.int32()), infos)
    content = pc.binary_join(one, "\n")[0].as_buffer()
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(content),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=content.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=_INFO, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(infos) else None


def _parse_one(text: str) -> dict[str, Any]:
    """Read one JSON column; a malformed one has no weight."""
    try:
        info = json.loads(text)
        weight = info["weight"]
        strings = {key: info.get(key) for key in ("dataset", "surfaceText")}
        for value in filter(None, strings.values()):
            value.encode()  # JSON can spell characters that UTF-8 cannot
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}
    if not isinstance(weight, (int, float)) or isinstance(weight, bool):
        return {}
    try:
        number = float(weight)
    except OverflowError:  # an integer of hundreds of digits
        return {}
    return {**strings, "weight": number} if math.isfinite(number) else {}


def _is_utf8(column: pa.Array) -> pa.Array:
    def valid(value: bytes) -> bool:
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
        return True

    return pa.array([valid(value) for value in column.to_pylist()], pa.bool_())


def _with_info(batch: pa.RecordBatch, lines: _Lines) -> pa.RecordBatch:
    info, valid = parse_info(pc.ascii_rtrim_whitespace(batch["info"]))
    batch = lines.reject(batch, valid, "its last column is not a JSON object with a weight")
    info = info.filter(valid).combine_chunks()
    columns = [
        pc.utf8_slice_codeunits(batch["relation"], 3),
        *(pc.utf8_rtrim(batch[end], "/") for end in ("start", "end")),
        *(info[name].combine_chunks() for name in ("weight", "dataset", "surfaceText")),
    ]
    return pa.record_batch(columns, schema=edges_schema())
