"""Rows of a built probe, one split at a time."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import KbprobeError
from kbprobe.format.dataset import damaged_files
from kbprobe.format.manifest import SplitFiles
from kbprobe.format.parquet import ROWS_PER_GROUP

if TYPE_CHECKING:
    import pyarrow as pa


def read_rows(folder: Path, split: SplitFiles) -> pa.Table:
    """Read a split of a built probe, all columns, after verifying its files' checksums.

    Raises:
        KbprobeError: a file is missing, damaged, or not of kbprobe's schema.
    """
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    if damage := damaged_files(folder, split.files):
        raise KbprobeError(f"{folder}: {damage[0]}. Build the probe again.")
    tables = [table for file in split.files for table in row_groups(folder / file.path)]
    return pa.concat_tables([arrow_schema().empty_table(), *tables])


def row_groups(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a data file, all columns of the item schema, a row group at a time.

    Of JSON lines as many are read at a time as a row group has at most.

    Raises:
        KbprobeError: it is damaged, or not of kbprobe's schema.
    """
    import pyarrow as pa

    try:
        yield from _parquet_groups(path) if path.suffix == ".parquet" else _line_groups(path)
    except (pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise KbprobeError(f"{path} cannot be read as rows of a probe: {error}") from None


def _parquet_groups(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kbprobe.format.items import ADDED, COLUMNS, arrow_schema

    schema = arrow_schema()
    with pq.ParquetFile(path) as file:
        for at in range(file.num_row_groups):
            table = file.read_row_group(at, columns=list(COLUMNS))
            for name in ADDED.keys() - set(table.column_names):
                field = schema.field(name)
                empty: list[Any] = [[] if pa.types.is_list(field.type) else None] * len(table)
                table = table.append_column(field, pa.array(empty, field.type))
            yield table.select(list(COLUMNS)).cast(schema)


def _line_groups(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    with path.open(encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in islice(lines, ROWS_PER_GROUP)]:
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("a line is not an object")
            yield pa.Table.from_pylist(rows, arrow_schema())


def rows_with(table: pa.Table, ids: Collection[str]) -> pa.Table:
    """Return the rows with these ids, in the table's order; unknown ids are ignored."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table["id"], pa.array(list(ids), pa.string()))).combine_chunks()


def rows_by_id(table: pa.Table, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the rows with these ids as plain Python, by id."""
    return {row["id"]: row for row in rows_with(table, ids).to_pylist()}
