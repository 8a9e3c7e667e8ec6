"""Parquet files as kbprobe writes them: readable in part, and stored once where they repeat.

Equal tables give equal bytes, in the order of the rows. Pages are cut depending on their content
(content-defined chunking), so that stores that deduplicate chunks, such as the Hub, transfer only
what changed from one build to the next. A page index lets readers fetch some rows of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.files import plain_path

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 1 << 16
"""Maximum number of rows in a row group, which bounds the memory of writers and readers."""

GROUP_BYTES = 100_000_000
"""Approximate maximum size of a row group before compression, in bytes; as in ``datasets``."""

VIEWER_BYTES = 300_000_000
"""Bytes of a row group above which the Hub's dataset viewer may refuse to show its rows."""

UNIQUE = ("id",)
"""Columns whose values do not repeat, and gain nothing from a dictionary."""


@contextmanager
def parquet_file(
    target: Path | pa.NativeFile,
    schema: pa.Schema,
    *,
    unique: Collection[str] = UNIQUE,
    metadata: Mapping[bytes, bytes] | None = None,
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a Parquet file; yields the function that appends a table to it.

    Row groups end with each table, and after ``ROWS_PER_GROUP`` rows or ``GROUP_BYTES`` bytes.

    Args:
        target: the file, or a stream.
        schema: the schema of all tables.
        unique: columns that are written without a dictionary.
        metadata: the metadata of the file, such as the Features of ``datasets``.

    Raises:
        OSError: the disk is full, or the file cannot be written.
    """
    import pyarrow.parquet as pq

    # A stream is written too, to measure what rows take.
    write = partial(pq.ParquetWriter, schema=schema, **_settings(schema, unique))
    with write(plain_path(target) if isinstance(target, Path) else target) as writer:
        yield lambda table: writer.write_table(table, row_group_size=rows_per_group(table))
        if metadata:
            writer.add_key_value_metadata(dict(metadata))


def write_parquet(
    table: pa.Table, target: Path | pa.NativeFile, *, unique: Collection[str] = UNIQUE
) -> None:
    """Write a table as a file; see :func:`parquet_file`."""
    with parquet_file(target, table.schema, unique=unique) as append:
        append(table)


def rows_per_group(table: pa.Table) -> int:
    """Return how many rows of a table fit into a row group.

    Dictionaries are not counted: every group holds all of them, however few rows it has.
    """
    size = sum(_divisible_bytes(column) for column in table.columns)
    fitting = ROWS_PER_GROUP if not size else GROUP_BYTES * len(table) // size
    return max(1, min(ROWS_PER_GROUP, fitting))


def _divisible_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of a column that depend on the number of rows: all but its dictionaries."""
    return int(column.nbytes) - sum(map(_dictionary_bytes, column.chunks))


def _dictionary_bytes(array: pa.Array) -> int:
    """Return the bytes of the dictionaries in an array, which are included in its ``nbytes``."""
    if hasattr(array, "dictionary"):
        return int(array.dictionary.nbytes)
    if hasattr(array, "values"):
        return _dictionary_bytes(array.values)
    return sum(_dictionary_bytes(array.field(at)) for at in range(array.type.num_fields))


def _settings(schema: pa.Schema, unique: Collection[str]) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": 1,
        # The stored Arrow schema would say "dictionary", but readers should see strings.
        "store_schema": False,
        "use_dictionary": _repeating(schema, unique),
        "dictionary_pagesize_limit": 1 << 30,
        "write_statistics": False,
        "write_page_index": True,
        "use_content_defined_chunking": True,
    }


def _repeating(schema: pa.Schema, unique: Collection[str]) -> list[str]:
    """Return the Parquet paths of all columns whose values repeat."""

    def leaves(field: pa.Field, path: str) -> list[str]:
        kind = field.type
        if hasattr(kind, "value_field"):
            return leaves(kind.value_field, f"{path}.list.element")
        if kind.num_fields and not hasattr(kind, "index_type"):
            inner = (kind.field(at) for at in range(kind.num_fields))
            return [leaf for part in inner for leaf in leaves(part, f"{path}.{part.name}")]
        return [path]

    named = (field for field in schema if field.name not in unique)
    return [leaf for field in named for leaf in leaves(field, field.name)]
