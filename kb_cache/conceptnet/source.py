"""Reading ConceptNet's files: which format a file has, and the reader of that format.

Every reader yields the same Arrow batches (`edges_schema`), in which concepts are still
ConceptNet's URIs: ``/c/en/dog``, ``/c/en/dog/n/wn/animal``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.base import Progress, readable
from kb_cache.conceptnet.lines import parse_info, read_dump, read_triples
from kb_cache.conceptnet.types import TOLERATED, Malformed, Selection, edges_schema
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
        query, values = _query(connection, selection)
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


def _query(connection: sqlite3.Connection, selection: Selection) -> tuple[str, list[str]]:
    """The SQL of the wanted edges, and the values of its parameters."""
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
    """ConceptNet's name of a relation that the database holds in snake case.

    >>> [relation_name(n) for n in ("is_a", "not_desires", "external_url", "dbpedia/known_for")]
    ['IsA', 'NotDesires', 'ExternalURL', 'dbpedia/knownFor']
    """
    if stored == "external_url":
        return "ExternalURL"
    prefix, slash, name = stored.rpartition("/")
    first, *rest = name.split("_")
    head = first if slash else first.capitalize()
    return prefix + slash + head + "".join(map(str.capitalize, rest))
