"""Reading the SQLite database of the package conceptnet-lite.

The package itself is not used: its ``connect`` downloads nine gigabytes where it finds no
database. SQLite opens the file read-only, so nothing can be created either.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.base import Progress
from kb_cache.conceptnet.lines import parse_info
from kb_cache.conceptnet.types import Malformed, Selection, edges_schema
from kbprobe.errors import SourceError

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
    if names := [_stored_name(name) for name in selection.relation_names]:
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


def _stored_name(relation: str) -> str:
    """The inverse of `relation_name`."""
    return _WORD_START.sub(r"_\1", relation).lower()
