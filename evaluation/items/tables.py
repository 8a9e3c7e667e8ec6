"""Rows in Arrow tables: Parquet files, and datasets in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.items.own_schema import NEEDED, own_questions
from evaluation.items.recast import PAIRS
from evaluation.items.rows import Questions, Records, row_questions
from kbprobe.errors import KbprobeError

if TYPE_CHECKING:
    import pyarrow as pa

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
                tables.append(file.read(_needed(schema.names)))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # of a column's name
            raise KbprobeError(f"{path} cannot be read as Parquet: {error}") from None
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        named = " and ".join(str(path) for path in paths)
        raise KbprobeError(f"{named} do not have the same columns: {error}") from None


def table_questions(table: pa.Table, source: str) -> Questions:
    """Read a table's rows as questions.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`row_questions` says.
    """
    table = table.select(_needed(table.column_names))
    rows = (row for batch in table.to_batches(_AT_ONCE) for row in batch.to_pylist())
    try:
        return own_questions(table) or row_questions(Records("row", enumerate(rows, 1)), source)
    except UnicodeDecodeError as error:
        raise KbprobeError(f"{source} holds text that is not UTF-8: {error}") from None


def _needed(names: Sequence[str]) -> list[str]:
    """Return the columns that are looked at: those of questions, or of NLI collections."""
    wanted = NEEDED if {"question", "question_stem"} & {*names} else PAIRS
    return [name for name in names if name in wanted]
