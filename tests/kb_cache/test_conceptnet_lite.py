"""Databases of the package conceptnet-lite, without the package."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from kb_cache.conceptnet.source import read_edges, relation_name
from kb_cache.conceptnet.types import Malformed, Selection
from kbprobe.errors import SourceError

MINI = Path(__file__).parent / "data" / "conceptnet-mini.csv"
#: The tables as the package's models make them.
TABLES = """
    CREATE TABLE "relation" ("id" INTEGER NOT NULL PRIMARY KEY, "name" TEXT NOT NULL);
    CREATE TABLE "language" ("id" INTEGER NOT NULL PRIMARY KEY, "name" TEXT NOT NULL);
    CREATE TABLE "label" ("id" INTEGER NOT NULL PRIMARY KEY, "text" TEXT NOT NULL,
        "language_id" INTEGER, FOREIGN KEY ("language_id") REFERENCES "language" ("id"));
    CREATE TABLE "concept" ("id" INTEGER NOT NULL PRIMARY KEY, "label_id" INTEGER NOT NULL,
        "sense_label" TEXT NOT NULL, FOREIGN KEY ("label_id") REFERENCES "label" ("id"));
    CREATE TABLE "edge" ("id" INTEGER NOT NULL PRIMARY KEY, "relation_id" INTEGER NOT NULL,
        "start_id" INTEGER NOT NULL, "end_id" INTEGER NOT NULL, "etc" JSON NOT NULL);
"""


class Ids:
    """Hands out a row of a table for each distinct content."""

    def __init__(self, connection: sqlite3.Connection, table: str, columns: str) -> None:
        self.connection, self.table, self.columns = connection, table, columns
        self.ids: dict[tuple[object, ...], int] = {}

    def __call__(self, *values: object) -> int:
        if values not in self.ids:
            self.ids[values] = len(self.ids) + 1
            marks = ", ".join("?" * (len(values) + 1))
            self.connection.execute(
                f"INSERT INTO {self.table} (id, {self.columns}) VALUES ({marks})",
                (self.ids[values], *values),
            )
        return self.ids[values]


def make_database(path: Path, lines: list[str]) -> Path:
    """Make a database of a dump as the package does."""
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    relation = Ids(connection, "relation", "name")
    language = Ids(connection, "language", "name")
    label = Ids(connection, "label", "text, language_id")
    concept = Ids(connection, "concept", "label_id, sense_label")
    for line in lines:
        _, name, *ends, etc = line.split("\t")
        snake = re.sub("((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))", r"_\1", name[3:]).lower()
        ids = []
        for uri in ends:
            if uri.startswith("/c/"):
                _, _, code, text, *sense = uri.split("/", maxsplit=4)
                ids.append(concept(label(text, language(code)), "".join(sense)))
            else:
                ids.append(concept(label(uri, None), "url"))
        connection.execute(
            "INSERT INTO edge (relation_id, start_id, end_id, etc) VALUES (?, ?, ?, ?)",
            (relation(snake), *ids, etc),
        )
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_database(tmp_path / "conceptnet.db", MINI.read_text("utf-8").splitlines())


def edges(path: Path, selection: Selection) -> list[str]:
    found = []
    for batch in read_edges(path, selection, Malformed(path)):
        found += [json.dumps(row, sort_keys=True) for row in batch.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(("en", "ja", "de")),
        Selection((), ("Synonym",)),
        Selection(("en",), ("Desires", "HasProperty")),
    ],
)
def test_the_same_edges_as_the_dump(database: Path, selection: Selection) -> None:
    found = edges(database, selection)
    assert found == edges(MINI, selection)
    assert found


def test_a_database_made_by_the_package(tmp_path: Path) -> None:
    package = pytest.importorskip(
        "conceptnet_lite.db", reason="the package conceptnet-lite is not installed"
    )
    dump = Path(shutil.copy(MINI, tmp_path / "dump.csv"))
    package.load_dump_to_db(dump, tmp_path / "made.db", edge_count=1000)
    package.db.close()
    assert edges(tmp_path / "made.db", Selection()) == edges(MINI, Selection())


def test_the_database_stays_as_it_is(database: Path) -> None:
    database.chmod(0o444)
    before = database.read_bytes()
    edges(database, Selection())
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == ["conceptnet.db"]


def test_malformed_edges_are_counted(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("UPDATE edge SET etc = '{' WHERE id = 3")
    connection.commit()
    connection.close()
    malformed = Malformed(database)
    rows = sum(batch.num_rows for batch in read_edges(database, Selection(), malformed))
    assert (rows, malformed.count) == (len(edges(MINI, Selection())) - 1, 1)
    assert malformed.first == ["line 3: its etc is not a JSON object with a weight"]


def test_what_is_no_such_database_is_refused(tmp_path: Path, database: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE edge (id INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(SourceError, match="has no table concept, label, language, relation"):
        edges(other, Selection())
    other.write_bytes(database.read_bytes()[:5000])
    with pytest.raises(SourceError, match="cannot read"):
        edges(other, Selection())


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("is_a", "IsA"),
        ("not_has_property", "NotHasProperty"),
        ("external_url", "ExternalURL"),
        ("dbpedia/influenced_by", "dbpedia/influencedBy"),
    ],
)
def test_names_of_relations(stored: str, name: str) -> None:
    assert relation_name(stored) == name
