"""Arrays in files of the cache, or of a package: written whole, checksummed, and memory-mapped.

A file counts only for what its arrays depend on: that is in its checksum. What is damaged or
outdated is thus computed again, and a cache that cannot be written costs time alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.columns import to_numpy
from kbprobe.files import regular_path, replacing_file
from kbprobe.files.cache import cache_dir

if TYPE_CHECKING:
    import pyarrow as pa

CHECKSUM = 64
"""Bytes at the beginning of a file: the sha256, in hex."""


def derived_dir() -> Path:
    """Return the folder of tables derived from snapshots, with a folder each (need not exist)."""
    return cache_dir() / "derived"


def kept_arrays(path: Path, depends: str, compute: Callable[[], Iterable[Any]]) -> list[Any]:
    """Return arrays from a file of the cache; if there are none that count, compute and keep them.

    Args:
        path: the file.
        depends: what the arrays depend on, versions included; those of anything else do not count.
        compute: makes the arrays, of NumPy or Arrow.
    """
    kept = read_arrays(path, depends)
    if kept is None:
        kept = list(compute())
        for array in filter(lambda leaf: isinstance(leaf, np.ndarray), kept):
            array.flags.writeable = False
        with suppress(OSError):  # a full disk, a cache of another user
            write_arrays(path, depends, kept)
    return kept


def read_arrays(path: Path, depends: str) -> list[Any] | None:
    """Map the arrays of a file; None if it is missing, damaged or depends on something else."""
    import pyarrow as pa

    try:
        content = pa.memory_map(regular_path(path)).read_buffer()
    except (OSError, pa.ArrowException):
        return None
    body = content[CHECKSUM:]
    if content[:CHECKSUM].to_pybytes() != _checksum(depends, body):
        return None
    table = pa.ipc.open_file(body).read_all()
    leaves = json.loads(table.schema.metadata[b"leaves"])
    columns = (table.column(at).chunk(0).values for at in range(table.num_columns))
    return [
        column if dtype is None else to_numpy(column).view(dtype).reshape(shape)
        for column, (dtype, shape) in zip(columns, leaves, strict=True)
    ]


def write_arrays(
    path: Path, depends: str, leaves: list[Any], codec: pa.Codec | None = None
) -> None:
    """Write arrays of any lengths as the only row of a table of lists."""
    import pyarrow as pa

    columns, described = [], []
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            described.append((leaf.dtype.str, leaf.shape))
            flat = np.ascontiguousarray(leaf).ravel()
            values = pa.array(flat.view(np.uint8) if flat.dtype == np.bool_ else flat)
        else:
            described.append((None, ()))
            values = leaf
        columns.append(
            pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
        )
    table = pa.table(columns, [str(at) for at in range(len(columns))])
    table = table.replace_schema_metadata({"leaves": json.dumps(described)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        file.write_table(table)
    body = sink.getvalue()
    with replacing_file(path, durable=False) as aside, aside.open("wb") as out:
        out.write(_checksum(depends, body))
        out.write(body)


def _checksum(depends: str, body: pa.Buffer) -> bytes:
    found = hashlib.sha256(depends.encode())
    found.update(memoryview(body))
    return found.hexdigest().encode()
