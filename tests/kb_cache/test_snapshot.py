"""Snapshots: digests that depend on content alone, and damage that does not go unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache import store
from kb_cache.base import Compiled, Engine
from kb_cache.fetching import fetch
from kb_cache.snapshot import (
    INFO_FILE,
    SnapshotInfo,
    SourceInfo,
    content_digest,
    find_damage,
    read_info,
    read_tables,
    write_info,
    write_snapshot,
)
from kb_cache.wordnet.load import load_wordnet
from kbprobe.columns import codes, to_numpy
from kbprobe.errors import SnapshotError, UsageError

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "text": ["one", "", "drei ß"],
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "weight": [0.5, 1.0, None],
        "many": pa.array([["x"], [], ["y", "z"]]),
        "flag": [True, False, True],
    }
)


def test_the_digest_ignores_how_the_table_is_stored() -> None:
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 2)])
    large = TABLE.set_column(1, "text", TABLE["text"].cast(pa.large_string()))
    plain = TABLE.set_column(2, "kind", TABLE["kind"].cast(pa.string()))
    padded = pa.concat_tables([TABLE.slice(2), TABLE]).slice(1)
    digest = content_digest({"t": TABLE})
    for same in (chunked, large, plain, padded):
        assert content_digest({"t": same}) == digest


def test_the_digest_sees_every_change() -> None:
    others = [
        {"u": TABLE},
        {"t": TABLE.slice(0, 2)},
        {"t": TABLE.rename_columns(["ID", *TABLE.column_names[1:]])},
        {"t": TABLE.set_column(0, "id", pa.array([1, 2, 4], pa.int32()))},
        {"t": TABLE.set_column(0, "id", pa.array([1, 2, 3], pa.int64()))},
        {"t": TABLE.set_column(1, "text", pa.array(["on", "e", "drei ß"]))},
        {"t": TABLE.set_column(3, "weight", pa.array([0.5, None, 1.0]))},
        {"t": TABLE.set_column(4, "many", pa.array([["x"], ["y"], ["z"]]))},
    ]
    digests = {content_digest(tables) for tables in others} | {content_digest({"t": TABLE})}
    assert len(digests) == len(others) + 1


@given(st.lists(st.text(max_size=5)), st.lists(st.text(max_size=5)))
def test_strings_with_other_borders_have_another_digest(one: list[str], two: list[str]) -> None:
    digests = [content_digest({"t": pa.table({"c": pa.array(x, pa.string())})}) for x in (one, two)]
    assert (digests[0] == digests[1]) == (one == two)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    info = write_snapshot(
        tmp_path,
        Compiled("by hand", {"t": TABLE}, {"LICENSE.txt": b"free"}, created_by={"x": "1"}),
        kind="k", name="k-1", version="1", licence="CC0-1.0",
        source=SourceInfo("by hand", notes=("a note",)), attribution="By hand.",
    )  # fmt: skip
    again = read_info(tmp_path)
    assert again.digest == info.digest == content_digest({"t": TABLE})
    assert (again.rows, again.attribution, again.created_by) == ({"t": 3}, "By hand.", {"x": "1"})
    assert again.bytes == sum(f.stat().st_size for f in tmp_path.iterdir() if f.name != INFO_FILE)
    assert find_damage(tmp_path, again, full=True) == []
    tables = read_tables(tmp_path, again)
    assert tables["t"].equals(TABLE)
    assert content_digest(tables) == info.digest


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES: list[Callable[[Path], None]] = [flip, truncate, Path.unlink]


@pytest.fixture
def entry(cache: Path, mini: Path) -> store.StoreEntry:
    return fetch("wordnet", source=mini, name="mini")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["synsets.parquet", "mentions.parquet", "LICENSE.txt"])
def test_damage_is_found_and_named(
    entry: store.StoreEntry, damage: Callable[[Path], None], file: str
) -> None:
    assert store.verify(entry) == []
    damage(entry.folder / file)
    [sentence] = store.verify(entry)
    assert str(entry.folder / file) in sentence


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["synsets.parquet", "mentions.parquet"])
def test_a_damaged_snapshot_is_rebuilt_when_loaded(
    entry: store.StoreEntry, damage: Callable[[Path], None], file: str
) -> None:
    digest = read_info(entry.folder).digest
    damage(entry.folder / file)
    assert load_wordnet("mini").digest == digest
    assert store.verify(entry) == []


def test_without_its_source_the_error_gives_the_command(
    entry: store.StoreEntry, mini: Path
) -> None:
    truncate(entry.folder / "senses.parquet")
    mini.rename(mini.with_name("moved"))
    with pytest.raises(SnapshotError) as caught:
        load_wordnet("mini")
    assert "senses.parquet" in str(caught.value)
    assert "kb-cache fetch wordnet --from PATH --name mini" in str(caught.value)


def test_a_changed_source_is_not_taken_silently(entry: store.StoreEntry, mini: Path) -> None:
    truncate(entry.folder / "senses.parquet")
    with (mini / "cntlist.rev").open("a") as file:
        file.write("dog%1:05:00:: 1 1000000\n")
    with pytest.raises(SnapshotError, match=rf"has changed since.*--from {mini} --name mini"):
        load_wordnet("mini")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"),
        ("[]", "not a snapshot's description"),
        ('{"format": 99}', "has format 99; this kbprobe reads format 2"),
        ('{"format": 2}', "was changed after kbprobe wrote it"),
    ],
)
def test_a_broken_description_is_named(entry: store.StoreEntry, content: str, message: str) -> None:
    (entry.folder / INFO_FILE).write_text(content)
    with pytest.raises(SnapshotError, match=message) as caught:
        load_wordnet("mini")
    assert "kb-cache fetch wordnet" in str(caught.value)


def test_another_kind_is_refused(entry: store.StoreEntry) -> None:
    write_info(entry.folder, replace(read_info(entry.folder), kind="conceptnet"))
    with pytest.raises(UsageError, match="of kind 'conceptnet'"):
        load_wordnet("mini")


def test_a_damaged_embedded_snapshot_asks_to_reinstall(
    entry: store.StoreEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "EMBEDDED_DIR", entry.folder.parent)
    truncate(entry.folder / "senses.parquet")
    with pytest.raises(SnapshotError, match=r"senses\.parquet.*pip install --force-reinstall"):
        load_wordnet("mini")


def test_the_embedded_snapshot_is_sound() -> None:
    assert store.verify(store.find("wordnet-3.0")) == []


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint16", "float32", "float64"])
def test_columns_become_arrays_of_the_same_type(kind: str) -> None:
    column = pa.chunked_array([pa.array([1, 2], kind), pa.array([3], kind)])
    for case, expected in ((column, [1, 2, 3]), (column.slice(1), [2, 3]), (column[:0], [])):
        assert to_numpy(case).tolist() == expected
        assert to_numpy(case).dtype == kind
    assert to_numpy(pa.chunked_array([], pa.type_for_alias(kind))).dtype == kind


@pytest.mark.parametrize("column", [pa.array(["a"]), pa.array([1, None]), pa.array([True])])
def test_columns_that_are_no_plain_numbers_are_refused(column: pa.Array) -> None:
    with pytest.raises(TypeError, match="no NumPy array"):
        to_numpy(column)


def test_dictionaries_of_several_chunks_are_unified() -> None:
    words = ["a", "b", "c", "a"]
    column = pa.chunked_array([pa.array(w).dictionary_encode() for w in (words[:2], words[2:])])
    numbers, names = codes(column)
    assert [names[i] for i in numbers] == words


def test_an_engines_files_are_part_of_the_snapshot(tmp_path: Path) -> None:
    def write(folder: Path, digest: str, content: bytes) -> SnapshotInfo:
        (folder / "store" / "deep").mkdir(parents=True)
        (folder / "store" / "deep" / "a.sst").write_bytes(content)
        return write_snapshot(
            folder,
            Compiled("a test", {"t": TABLE}, engine=Engine("store", digest, {"triples": 7})),
            kind="k",
            name="k-1",
            version="1",
            licence="MIT",
            source=SourceInfo("a test"),
        )

    info = write(tmp_path / "one", "d1", b"some")
    kept = read_info(tmp_path / "one")
    assert (kept.digest, kept.files, kept.rows) == (info.digest, info.files, info.rows)
    assert info.rows == {"t": 3, "triples": 7}
    assert info.files["store/deep/a.sst"].bytes == 4
    assert list(read_tables(tmp_path / "one", info)) == ["t"]
    # The engine may write the same content in other bytes.
    assert write(tmp_path / "two", "d1", b"other").digest == info.digest
    assert write(tmp_path / "three", "d2", b"some").digest != info.digest
    (tmp_path / "one" / "store" / "deep" / "a.sst").write_bytes(b"SOME")
    assert find_damage(tmp_path / "one", info, full=False) == []
    (damage,) = find_damage(tmp_path / "one", info, full=True)
    assert "a.sst is corrupt" in damage


def test_a_snapshot_of_tables_alone_says_nothing_of_engines(tmp_path: Path) -> None:
    raw = (store.EMBEDDED_DIR / "wordnet-3.0" / INFO_FILE).read_text()
    assert "counts" not in raw
    assert read_info(store.EMBEDDED_DIR / "wordnet-3.0").counts == {}
