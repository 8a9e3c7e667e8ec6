"""Tables given as Python values, which are kept as files, so that their builds can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kb_cache.array_files import derived_dir
from kb_cache.tables.facts import PYTHON_TABLES
from kb_cache.tables.read import digest_of, table_of
from kbprobe.files import plain_path, replacing_file


def stored_table(value: Any) -> str:
    """Return the path of a file with a table's rows; a path is returned as it is.

    The file is in the cache, under the hash of its rows: the same rows are the same file.

    Raises:
        UsageError: the value is no table.
    """
    if isinstance(value, str | Path):
        return str(value)
    table = table_of(value)
    path = derived_dir() / PYTHON_TABLES / f"{digest_of(table)[:16]}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(path) as unfinished:
            pq.write_table(table, plain_path(unfinished))
    return str(path)
