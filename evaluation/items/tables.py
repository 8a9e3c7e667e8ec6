"""Rows in Arrow tables: Parquet files, and datasets in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluation.items.published import row_columns
from evaluation.items.questions import ABOUT, Questions, RowColumns, coded, questions
from evaluation.items.rows import Records
from kbprobe.columns import single_chunk
from kbprobe.errors import KbprobeError

if TYPE_CHECKING:
    import pyarrow as pa

_ASKED = ("id", "question", "choices", "answer", "answerKey", "setup")
_NEEDED = (*_ASKED, "question_stem", "notes", *ABOUT, "fact_ids", "relation", "arguments")
"""All columns that are ever looked at."""

_AT_ONCE = 1024
"""Rows held as Python objects at a time."""

_REPEATING = ("question", "setup")
"""Read as dictionaries. Arrow cannot do so within lists where a file has several chunks."""


def read_parquet(paths: Sequence[Path]) -> pa.Table:
    """Read the columns that evaluation needs from the files of one split, in order.

    Raises:
        KbprobeError: a file is no Parquet file, is damaged, or the files' columns differ.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for path in paths:
        try:
            schema = pq.read_schema(path)
            coded = [name for name in _REPEATING if name in schema.names]
            coded = [name for name in coded if pa.types.is_string(schema.field(name).type)]
            with pq.ParquetFile(path, read_dictionary=coded) as file:
                tables.append(file.read([name for name in schema.names if name in _NEEDED]))
        except (pa.ArrowException, OSError) as error:
            raise KbprobeError(f"{path} cannot be read as Parquet: {error}") from None
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        named = " and ".join(str(path) for path in paths)
        raise KbprobeError(f"{named} do not have the same columns: {error}") from None


def table_questions(table: pa.Table, source: str) -> Questions:
    """Read a table's rows as questions.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`questions` says.
    """
    table = table.select([name for name in table.column_names if name in _NEEDED])
    try:
        return questions(own_columns(table) or _converted(table), source)
    except UnicodeDecodeError as error:
        raise KbprobeError(f"{source} holds text that is not UTF-8: {error}") from None


def _converted(table: pa.Table) -> RowColumns:
    """Bring rows of other types into form one by one."""
    rows = (row for batch in table.to_batches(_AT_ONCE) for row in batch.to_pylist())
    return row_columns(Records("row", enumerate(rows, 1)))


def own_columns(table: pa.Table) -> RowColumns | None:
    """Take the columns of kbprobe's own schema as they are.

    Returns:
        None where a column has another type, or holds a null or a blank text where there must be
        a value: rows are then read one by one, which words what is wrong with them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from kbprobe.format.items import arrow_schema

    own = arrow_schema()
    if not set(_ASKED) <= set(table.column_names) or not set(table.column_names) <= set(own.names):
        return None
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if kind != own.field(field.name).type:
            return None
    texts, labels = single_chunk(table["choices"]).flatten()
    rows = len(table)
    columns = {name: table[name] for name in ("id", "question", "setup", "answer")}
    columns |= {"key": table["answerKey"], "texts": texts, "labels": labels}
    if any(len(column) != rows or column.null_count for column in columns.values()):
        return None
    if not texts.value_lengths().equals(labels.value_lengths()):
        return None
    for name in (*ABOUT, "fact_ids", "relation", "arguments"):
        held = name in table.column_names
        columns[name] = single_chunk(table[name]) if held else pa.nulls(rows, own.field(name).type)
    if 0 < columns["arguments"].null_count < rows:
        return None
    entries = columns["arguments"].flatten()
    inner = [texts.flatten(), labels.flatten(), columns["fact_ids"].flatten(), entries]
    if any(values.null_count for values in (*inner, *entries.flatten())):
        return None
    if any(_blank(values) for values in (columns["id"], columns["question"], *inner[:2])):
        return None
    for name, kind in ABOUT.items():
        if kind != "string" and (pc.min(columns[name]).as_py() or 0) < 0:
            return None
        if kind == "string":
            # Empty text says as little as null.
            empty = pc.equal(columns[name], "")
            columns[name] = pc.if_else(empty, pa.scalar(None, pa.string()), columns[name])
            if _blank(columns[name]):
                return None
    columns["key_number"] = pa.nulls(rows, pa.int64())
    return RowColumns(
        "row", np.arange(1, rows + 1), np.zeros(rows, dtype=np.bool_), pa.table(columns)
    )


def _blank(column: pa.Array) -> bool:
    """Whether a text is empty or only white space."""
    return not all(word is None or word.strip() for word in coded(column)[0])
