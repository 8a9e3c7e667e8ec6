"""Reading ConceptNet's files: which format a file has, and the reader of that format.

Every reader yields the same Arrow batches (`edges_schema`), in which concepts are still
ConceptNet's URIs: ``/c/en/dog``, ``/c/en/dog/n/wn/animal``.

The assertions dump and CN-100K triples have no quoting, so that lines are split by looking for tabs
and newlines in blocks of bytes. Arrow's and DuckDB's readers of CSV are about as fast (see
benchmarks/conceptnet.py); but at a line that is not UTF-8 they reject the whole file, or cannot
name the line. For lines that the selection leaves out, only the number and prefixes of their
columns are checked.

Databases of conceptnet-lite are read with sqlite3, not through the package: its ``connect`` may
write to the file or download another, and reading edges as its objects takes 230 times as long.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from kb_cache.base import Progress, readable
from kb_cache.conceptnet.types import TOLERATED, Malformed, Selection, edges_schema
from kb_cache.unpack import DAMAGE, LineTooLong, UnpackedFile
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import SourceError
from kbprobe.reading import open_file

#: Bytes that are parsed at a time.
_BLOCK = 4 << 20
#: No line of a dump is nearly as long; a file without newlines must not fill the memory.
_LONGEST_LINE = 16 << 20
_NEWLINE = 10
#: The dataset recorded for edges of CN-100K.
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
        """Yield the fields of each block; lines with a different number of columns are left out."""
        try:
            with open_file(self.path) as file:
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
        """Leave out invalid rows, and record their lines."""
        if pc.all(valid, min_count=0).as_py():
            return batch
        for line in batch["line"].filter(pc.invert(valid)).to_pylist():
            self.malformed.add(line, why)
        return batch.filter(valid)

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert the binary columns to strings; lines that are not UTF-8 are left out."""
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
        """Return some of the lines."""
        return replace(self, first=self.first[mask], line=self.line[mask])

    def batch(self, columns: dict[str, int]) -> pa.RecordBatch:
        """Return some columns by name, as binary arrays, and ``line``."""
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
        boolean array that marks valid rows: JSON objects with a finite weight.
    """
    table = _parse_at_once(infos)
    if table is None:
        table = pa.Table.from_pylist([_parse_one(text) for text in infos.to_pylist()], _INFO)
    return table, pc.fill_null(pc.is_finite(table["weight"]), False).combine_chunks()


def _parse_at_once(infos: pa.Array) -> pa.Table | None:
    """Read all with Arrow's parser; None if any is malformed, or the parser cannot decide."""
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


_SQLITE_MAGIC = b"SQLite format 3\x00"
_HEAD_BYTES = 1 << 16
#: A line of CN-100K: the name of a relation, two terms.
_TRIPLE = re.compile(rb"[A-Za-z]\w*\t[^\t]*\t[^\t]*")


def read_edges(
    path: Path, selection: Selection, malformed: Malformed, progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the wanted edges of a file, in batches of `edges_schema`.

    The file is a 5.7 dump or CN-100K triples, plain or gzip, or a conceptnet-lite database.
    ``malformed`` takes the lines that could not be read; ``progress`` is called with how much of
    the file has been read, in bytes (edges of a database).

    Raises:
        SourceError: the file cannot be read, is none of these, or too many of its lines are
            malformed.
    """
    head = _head(path)
    if head.startswith(_SQLITE_MAGIC):
        yield from read_database(path, selection, malformed, progress)
        return
    reader = {5: read_dump, 3: read_triples}[_columns(path, head)]
    yield from reader(path, selection, malformed, progress)


def _head(path: Path) -> bytes:
    """Return the beginning of a file, unpacked."""
    with readable(path), open_file(path) as file:
        try:
            return UnpackedFile(file).read(_HEAD_BYTES)
        except DAMAGE as error:
            raise SourceError(f"cannot read {path}: {error}") from error


def _columns(path: Path, head: bytes) -> int:
    """Return the number of columns in most of the first lines: 5 for a dump, 3 for triples."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()  # empty, or cut off by the end of the head
    lines = lines[: 2 * TOLERATED + 1]
    fields = [line.split(b"\t") for line in lines]
    dump = sum(len(f) == 5 and f[1].startswith(b"/r/") for f in fields)
    triples = sum(_TRIPLE.fullmatch(line) is not None for line in lines)
    if max(dump, triples) * 2 > len(fields):
        return 5 if dump > triples else 3
    shown = lines[0][:80].decode(errors="replace")
    raise SourceError(
        f"{path} is not ConceptNet: expected five columns separated by tabs (the 5.7 assertions "
        "dump), three (CN-100K: relation, head, tail), or a conceptnet-lite database; its first "
        f"line is {shown!r}"
    )


_ROWS = 50_000
_TABLES = {"relation", "language", "label", "concept", "edge"}
# An inner join with the languages leaves out web addresses, which have none.
_EDGES = """
    SELECT e.id, r.name, sl.name, s.text, sc.sense_label, el.name, t.text, ec.sense_label, e.etc
    FROM edge e
    JOIN relation r ON r.id = e.relation_id
    JOIN concept sc ON sc.id = e.start_id JOIN label s ON s.id = sc.label_id
    JOIN language sl ON sl.id = s.language_id
    JOIN concept ec ON ec.id = e.end_id JOIN label t ON t.id = ec.label_id
    JOIN language el ON el.id = t.language_id
"""
_WORD_START = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")


def read_database(
    path: Path, selection: Selection, malformed: Malformed, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    """Stream the edges of a conceptnet-lite database; "lines" are ids of edges."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise SourceError(f"cannot open {path}: {error}") from error
    try:
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if missing := sorted(_TABLES - found):
            raise SourceError(
                f"{path} is not a database of conceptnet-lite: it has no table {', '.join(missing)}"
            )
        last = connection.execute("SELECT max(id) FROM edge").fetchone()[0] or 0
        query, values = _query(selection)
        cursor = connection.execute(query, values)
        while rows := cursor.fetchmany(_ROWS):
            malformed.lines += len(rows)
            yield _batch(rows, malformed)
            malformed.check()
            if progress:
                progress(rows[-1][0], last)
    except sqlite3.Error as error:
        raise SourceError(f"cannot read {path}: {error}") from error
    finally:
        connection.close()


def _query(selection: Selection) -> tuple[str, list[str]]:
    """Return the SQL query for the wanted edges, and the values of its parameters."""
    conditions, values = [], []
    if selection.languages:
        marks = ", ".join("?" * len(selection.languages))
        conditions.append(f"sl.name IN ({marks}) AND el.name IN ({marks})")
        values += [*selection.languages, *selection.languages]
    # The inverse of `relation_name`.
    if names := [_WORD_START.sub(r"_\1", name).lower() for name in selection.relation_names]:
        conditions.append(f"r.name IN ({', '.join('?' * len(names))})")
        values += names
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"{_EDGES} {where} ORDER BY e.id", values


def _batch(rows: list[tuple[object, ...]], malformed: Malformed) -> pa.RecordBatch:
    ids, relations, *ends, infos = zip(*rows, strict=True)
    info, valid = parse_info(pa.array([str(text) for text in infos], pa.string()))
    for at, good in enumerate(valid.to_pylist()):
        if not good:
            malformed.add(int(str(ids[at])), "its etc is not a JSON object with a weight")
    names = {str(name): relation_name(str(name)) for name in set(relations)}
    columns = [
        pa.array([names[str(name)] for name in relations], pa.string()),
        *(_uris(*ends[at : at + 3]) for at in (0, 3)),
        *(info[name].combine_chunks() for name in ("weight", "dataset", "surfaceText")),
    ]
    return pa.record_batch(columns, schema=edges_schema()).filter(valid)


def _uris(
    language: tuple[object, ...], text: tuple[object, ...], sense: tuple[object, ...]
) -> pa.Array:
    parts = ["/c", *(pa.array(map(str, part), pa.string()) for part in (language, text, sense))]
    return pc.utf8_rtrim(pc.binary_join_element_wise(*parts, "/"), "/")


def relation_name(stored: str) -> str:
    """Return ConceptNet's name of a relation that the database stores in snake case.

    >>> [relation_name(n) for n in ("is_a", "not_desires", "external_url", "dbpedia/known_for")]
    ['IsA', 'NotDesires', 'ExternalURL', 'dbpedia/knownFor']
    """
    if stored == "external_url":
        return "ExternalURL"
    prefix, slash, name = stored.rpartition("/")
    first, *rest = name.split("_")
    head = first if slash else first.capitalize()
    return prefix + slash + head + "".join(map(str.capitalize, rest))
