"""Tables given as Python values, which are kept as files, so that their builds can be repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kb_cache.store import derived_dir
from kb_cache.tables.read import as_texts
from kbprobe.errors import wrong_argument
from kbprobe.files import write_file

TRIPLE = ("subject", "relation", "object")

ACCEPTED = (
    "the path of a file, a pandas DataFrame, a datasets.Dataset, an Arrow table, or a list of "
    "triples (subject, relation, object) or of dicts"
)


def stored_table(value: Any) -> str:
    """Return the path of a file with a table's rows; a path is returned as it is.

    The file is in the cache, under the hash of its rows: the same rows are the same file.

    Raises:
        UsageError: the value is no table.
    """
    if isinstance(value, str | Path):
        return str(value)
    table = as_texts(_as_arrow(value))
    hashed = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        hashed.update(batch.serialize())
    hashed.update(table.schema.serialize())
    path = derived_dir() / "tables" / f"{hashed.hexdigest()[:16]}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        write_file(path, sink.getvalue().to_pybytes())
    return str(path)


def _as_arrow(value: Any) -> pa.Table:
    if isinstance(value, pa.Table):
        return value
    kind = type(value).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(value, "columns"):
        return pa.Table.from_pandas(value, preserve_index=False)
    if kind == "datasets" and hasattr(value, "flatten_indices"):
        return value.flatten_indices().data.table
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
