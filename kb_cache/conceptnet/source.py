"""Reading ConceptNet's files: which format a file has, and the reader of that format.

Every reader yields the same Arrow batches (`edges_schema`), in which concepts are still
ConceptNet's URIs: ``/c/en/dog``, ``/c/en/dog/n/wn/animal``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from kb_cache.base import Progress, readable
from kb_cache.conceptnet.lines import read_dump, read_triples
from kb_cache.conceptnet.lite import read_database
from kb_cache.conceptnet.types import TOLERATED, Malformed, Selection
from kb_cache.unpack import DAMAGE, UnpackedFile
from kbprobe.errors import SourceError

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
    """The beginning of a file, unpacked."""
    with readable(path), path.open("rb") as file:
        try:
            return UnpackedFile(file).read(_HEAD_BYTES)
        except DAMAGE as error:
            raise SourceError(f"cannot read {path}: {error}") from error


def _columns(path: Path, head: bytes) -> int:
    """The number of columns that most of the first lines have: 5 for a dump, 3 for triples."""
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
