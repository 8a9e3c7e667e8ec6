"""Reading tables: CSV, TSV, JSON lines, Parquet, and what Python holds.

All columns are read as texts, or as lists of texts: numbers as they are written, dates without a
time of day that is midnight throughout.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from kb_cache.tables import SUFFIXES, is_table
from kb_cache.unpack import read_named
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError, naming_extras, wrong_argument
from kbprobe.files import regular_path

if TYPE_CHECKING:
    import datasets

TRIPLE = ("subject", "relation", "object")

DELIMITERS = ",;\t"
"""The characters that separate columns; the one that gives a header most columns is taken."""

LARGEST = 2.0**53
"""Whole numbers below are written without a point."""

FIRST_LINE = 1 << 20
"""Maximum length of a header in bytes."""

ACCEPTED = (
    "the path of a file, a pandas DataFrame, a datasets.Dataset, an Arrow table, or a list of "
    "triples (subject, relation, object) or of dicts"
)


def read_table(path: Path) -> pa.Table:
    """Read a file, whose ending says its format.

    Raises:
        UsageError: it has another ending, is damaged, is not UTF-8, or holds other values.
    """
    if not is_table(path.name):
        raise UsageError(
            f"{path} is no table that can be read: its name must end with {', '.join(SUFFIXES)} "
            f"(or with these and .gz). Save it as CSV (UTF-8)."
        )
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    try:
        if ending == "parquet":
            return as_texts(pq.read_table(regular_path(path)), str(path))
        content = read_named(path)
        table = _read_json(content) if ending == "jsonl" else _read_csv(path, content)
        return as_texts(table, str(path))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _read_json(content: bytes) -> pa.Table:
    """Read JSON lines; what looks like a time is kept as it is written."""
    table = pyarrow.json.read_json(io.BytesIO(content))
    declared = [
        pa.field(field.name, pa.string()) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
        # PyArrow loses nulls at the beginning of a list whose type it infers.
        if pa.types.is_timestamp(field.type) or pa.types.is_list(field.type)
    ]
    if not declared:
        return table
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(declared))
    return pyarrow.json.read_json(io.BytesIO(content), parse_options=options)


def _read_csv(path: Path, content: bytes) -> pa.Table:
    first = _first_lines(path, content)
    lines = io.StringIO(first, newline=None).readlines()
    try:
        headers = {one: next(csv.reader(lines, delimiter=one), []) for one in DELIMITERS}
    except csv.Error as error:
        raise UsageError(f"{path} has no header that can be read: {error}") from error
    delimiter = max(headers, key=lambda one: len(headers[one]))
    header = headers[delimiter]
    wrong: list[str] = []

    def skipped(row: pyarrow.csv.InvalidRow) -> str:
        wrong.append(
            f"row {row.number or '?'} has {row.actual_columns} columns instead of "
            f"{row.expected_columns}"
        )
        return "skip"

    table = pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skipped
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
        ),
    )
    if wrong:
        names = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
        raise UsageError(
            f"{path}: {wrong[0]}, and so {len(wrong):,} rows in all. Correct them, or quote "
            f"values that contain {names[delimiter]}."
        )
    return table


def _as_whole(column: pa.Array) -> pa.Array:
    """Return texts, of which those of a column of whole numbers (``1969.0``) have no point."""
    whole = pc.match_substring_regex(column, r"^-?\d+\.0$")
    if pc.any(whole).as_py() and pc.all(pc.or_(whole, pc.equal(column, ""))).as_py():
        return pc.replace_substring_regex(column, r"\.0$", "")
    return column


def _first_lines(path: Path, content: bytes) -> str:
    try:
        return content[:FIRST_LINE].decode("utf-8-sig", errors="strict")
    except UnicodeDecodeError as error:
        if error.start > FIRST_LINE - 8:
            return content[: error.start].decode("utf-8-sig")
        raise UsageError(
            f"{path} is not UTF-8 (byte {error.start:,}). Save it in that encoding."
        ) from error


def as_texts(table: pa.Table, place: str) -> pa.Table:
    """Return a table whose columns are texts or lists of texts.

    Raises:
        UsageError: a column holds something else.
    """
    if twice := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise UsageError(f"{place} has two columns {twice[0]!r}; rename one of them")
    columns = {}
    for name in table.column_names:
        column = single_chunk(table[name])
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            length = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            offsets = np.append(0, np.cumsum(length)).astype(np.int32)
            values = _as_texts(pc.list_flatten(column), name, place)
            columns[name] = pa.ListArray.from_arrays(offsets, values)
        else:
            columns[name] = _as_texts(column, name, place)
    return pa.table(columns)


def _as_texts(column: pa.Array, name: str, place: str) -> pa.Array:
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_timestamp(kind) and pc.all(pc.equal(pc.floor_temporal(column), column)).as_py():
        column = pc.cast(column, pa.date32())
    elif types.is_floating(kind):
        # Whole numbers become floats where a cell is empty.
        column = pc.cast(column, pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
        whole = pc.and_(pc.less(pc.abs(column), LARGEST), pc.equal(pc.round(column), column))
        if pc.all(whole).as_py():
            column = pc.cast(column, pa.int64())
    elif not (
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
        or types.is_date(kind) or types.is_timestamp(kind) or types.is_null(kind)
    ):  # fmt: skip
        raise UsageError(
            f"{place}: the column {name!r} holds {kind}, not texts, numbers, dates or lists of "
            f"these. Leave it out, or write it as texts."
        )
    return _as_whole(pc.fill_null(pc.cast(column, pa.string()), ""))


def table_of(value: Any) -> pa.Table:
    """Return what Python holds as a table of texts.

    Raises:
        UsageError: it is no table, or holds values that are neither texts, numbers nor dates.
    """
    try:
        return as_texts(_as_arrow(value), f"build(table={type(value).__name__})")
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"build(table=...): the {type(value).__name__} cannot be read: "
            f"{str(error).splitlines()[0]}. Let each column hold values of one type, for example "
            f"frame[column].astype(str)."
        ) from error


def _as_arrow(value: Any) -> pa.Table:
    if isinstance(value, pa.Table):
        return value
    kind = type(value).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(value, "columns"):
        return pa.Table.from_pandas(value, preserve_index=any(value.index.names))
    if kind == "datasets" and hasattr(value, "flatten_indices"):
        if isinstance(value, Mapping):
            raise UsageError(
                f"build(table=...): name one split of the DatasetDict: {', '.join(value)}"
            )
        return rows_of(value)
    if isinstance(value, Sequence) and value and not isinstance(value, str | bytes):
        if all(isinstance(row, Mapping) for row in value):
            names = dict.fromkeys(name for row in value for name in row)
            return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in value])
        if all(isinstance(row, Sequence) and len(row) == len(TRIPLE) for row in value):
            columns = zip(*value, strict=True)
            return pa.table(
                {name: [*map(str, column)] for name, column in zip(TRIPLE, columns, strict=True)}
            )
    raise wrong_argument("build(table=...)", value, ACCEPTED)


def digest_of(table: pa.Table) -> str:
    """Return a hash (sha256, hex) of a table's columns and rows."""
    hashed = hashlib.sha256(table.schema.serialize())
    for batch in table.combine_chunks().to_batches():
        hashed.update(batch.serialize())
    return hashed.hexdigest()


def rows_of(dataset: datasets.Dataset) -> pa.Table:
    """Return the rows of a dataset, with the names of classes instead of their numbers."""
    table = dataset.flatten_indices().data.table
    for at, (name, feature) in enumerate(dataset.features.items()):
        if names := getattr(feature, "names", None):
            codes = single_chunk(table[name])
            table = table.set_column(at, name, pa.array(names).take(codes))
    return table


@naming_extras()
def load_rows(address: str) -> pa.Table:
    """Load a dataset of the Hub, or of a local folder: ``hub:ID[:CONFIG[:SPLIT]]``.

    Raises:
        SourceError: it cannot be loaded.
        MissingDependencyError: datasets is not installed.
    """
    from kb_cache.hub import read_hub

    return pa.concat_tables([as_texts(rows_of(part.rows), part.name) for part in read_hub(address)])
