"""Loading dumps of Wikidata: what is accepted, what is refused, and that nothing is half done."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache import store
from kb_cache.fetching import fetch as fetch_kind
from kb_cache.snapshot import read_info
from kb_cache.wikidata import kind as wikidata_kind
from kb_cache.wikidata.kind import RdfFile
from kb_cache.wikidata.load import load_wikidata
from kbprobe.errors import CacheError, MissingDependencyError, SourceError, UsageError
from tests import real_data

REPOSITORY = Path(__file__).resolve().parents[2]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]

WD = "http://www.wikidata.org/entity/"
ALL = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"


def line(number: int, value: str = '"œ"@en') -> bytes:
    return f"<{WD}Q{number}> <http://www.w3.org/2000/01/rdf-schema#label> {value} .\n".encode()


GOOD = b"".join(map(line, range(1, 6)))
BAD = GOOD + b"<no iri> . \x1b[31m\n" + line(6) + b'<a> "\xff" .\n' + line(7)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def fetch(path: Path, name: str = "", lenient: bool = False) -> store.StoreEntry:
    return fetch_kind("wikidata", source=path, name=name, lenient=lenient)


def left_behind(cache: Path) -> list[str]:
    folder = cache / "snapshots"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("some.nt", GOOD),
        ("some.nt", GOOD[:-1]),
        ("some.nt", GOOD.replace(b"\n", b"\r\n")),
        ("some.nt", b"# a comment\n\n" + GOOD + GOOD),
        ("some.nt.gz", gzip.compress(GOOD)),
        ("some.nt.gz", gzip.compress(GOOD[:100]) + gzip.compress(GOOD[100:])),
        ("some.nt.bz2", bz2.compress(GOOD)),
        ("some.nt.gz", GOOD),  # unpacked on the way
        ("some.nt", gzip.compress(GOOD)),
        ("some.NT.GZ", gzip.compress(GOOD)),
        ("some.nq", GOOD.replace(b"@en .", b"@en <http://graph> .")),
        ("some.ttl", b"@prefix wd: <http://www.wikidata.org/entity/> .\n" + GOOD),
    ],
)
def test_formats_and_compressions(cache: Path, tmp_path: Path, name: str, content: bytes) -> None:
    entry = fetch(written(tmp_path / name, content))
    assert entry.name == "wikidata-some"
    some = load_wikidata("some")
    assert len(some) == 5
    assert {row[0].value for row in some.select(ALL).rows if row[0]} == {
        f"{WD}Q{number}" for number in range(1, 6)
    }
    assert {row[2].value for row in some.select(ALL).rows if row[2]} == {"œ"}


def test_the_digest_is_that_of_the_text(cache: Path, tmp_path: Path) -> None:
    plain = read_info(fetch(written(tmp_path / "a.nt", GOOD), "a").folder)
    packed = read_info(fetch(written(tmp_path / "b.nt.gz", gzip.compress(GOOD)), "b").folder)
    other = read_info(fetch(written(tmp_path / "c.nt", GOOD + line(9)), "c").folder)
    assert plain.digest == packed.digest != other.digest
    assert len({plain.version, packed.version, other.version}) == 3
    assert plain.version == plain.source.files["a.nt"][:12]
    assert plain.rows == {"triples": 5}


def test_blank_nodes_keep_their_identity_across_batches(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikidata_kind, "BATCH", 2)
    monkeypatch.setattr(wikidata_kind, "_PIECE", 100)
    content = GOOD + b"".join(b"_:unknown <http://p/%d> _:other .\n" % n for n in range(20))
    fetch(written(tmp_path / "b.nt", content))
    found = load_wikidata("b").select("SELECT DISTINCT ?s ?o { ?s ?p ?o FILTER(ISBLANK(?s)) }")
    assert len(found.rows) == 1
    assert len(load_wikidata("b")) == 25


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.nt", BAD, r"x\.nt, line 6: not N-Triples: Invalid IRI .*--lenient"),
        ("x.nt", GOOD + line(6)[:-20], r"x\.nt, line 6: not N-Triples"),
        ("x.nt", GOOD + b"\0\0\0", r"x\.nt, line 6: not N-Triples"),
        ("x.nt", b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", r"x\.nt, line 1: "),
        (
            "x.nt.gz",
            gzip.compress(b"%PDF-1.7 \xe2\xe3\xcf\xd3\n1 0 obj\n", mtime=0),
            r"x\.nt\.gz, line 1: ",
        ),
        ("x.nt", line(1, '"a"^^<b>'), "line 1: not N-Triples: No scheme found"),
        ("x.nt.gz", gzip.compress(GOOD)[:-12], r"x\.nt\.gz is damaged: .*Get it again"),
        ("x.nt.gz", gzip.compress(GOOD)[:-8] + bytes(8), "is damaged: CRC check failed"),
        ("x.nt.gz", gzip.compress(GOOD) + b"garbage", "is damaged: Not a gzipped file"),
        ("x.nt.bz2", bz2.compress(GOOD)[:-12], "is damaged: Compressed file ended"),
        ("x.nt.bz2", bz2.compress(GOOD)[:20] + bytes(40), "x.nt.bz2: Invalid data stream"),
        ("x.nt", b"", r"x\.nt holds no triple$"),
        ("x.nt", b"# nothing\n\n", r"x\.nt holds no triple$"),
        ("x.nt.gz", gzip.compress(b"", mtime=0), "holds no triple"),
        ("x.ttl", b"@prefix wd: <http://a/> .\nwd:Q1 wd:P1\n", "line 3: not Turtle.*that line$"),
        ("x.nq", b"<http://a> <http://b> .\n", "line 1: not N-Quads"),
    ],
)
def test_what_is_no_dump_is_refused(
    cache: Path, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(SourceError, match=message) as caught:
        fetch(path)
    assert str(caught.value).startswith((str(path), f"cannot read {path}"))
    assert str(caught.value).isprintable()
    assert left_behind(cache) == []


def test_a_byte_damaged_in_the_middle_of_an_archive(cache: Path) -> None:
    content = bytearray(gzip.compress(b"".join(map(line, range(1, 20_000)))))
    content[len(content) // 2] ^= 0xFF
    path = written(cache.parent / "sample.nt.gz", bytes(content))
    with pytest.raises(SourceError, match=r"sample\.nt\.gz(, line [\d,]+:| is damaged)"):
        fetch(path)
    assert left_behind(cache) == []


@pytest.mark.parametrize("name", ["x.csv", "x", "x.nt.zip", "x.json.gz"])
def test_a_name_that_tells_no_format(cache: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"should end in \.nt, \.nq, \.ttl, with or without"):
        fetch(written(tmp_path / name, GOOD))


def test_missing_files_and_folders(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        fetch(tmp_path / "none.nt")
    (tmp_path / "folder.nt").mkdir()
    with pytest.raises(SourceError, match="cannot read"):
        fetch(tmp_path / "folder.nt")


def test_lenient_leaves_out_just_the_malformed_lines(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikidata_kind, "_PIECE", 150)
    path = written(tmp_path / "x.nt", BAD + line(8, '"no end') + line(9) + line(10)[:-9])
    entry = fetch(path, lenient=True)
    found = load_wikidata("x").select(ALL)
    assert sorted(int(row[0].value.rpartition("Q")[2]) for row in found.rows if row[0]) == [
        *range(1, 8),
        9,
    ]
    (note,) = read_info(entry.folder).source.notes
    assert note.startswith("4 malformed lines were left out: line 6: Invalid IRI")
    assert "line 8: " in note
    assert "line 10: " in note
    assert "line 12: " in note
    assert note.isprintable()


def test_lenient_has_limits(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"holds no triple \(1 malformed line was left out: "):
        fetch(written(tmp_path / "x.nt", b"<html>"), lenient=True)
    with pytest.raises(UsageError, match="Turtle, in which no line can be left out"):
        fetch(written(tmp_path / "x.ttl", GOOD), lenient=True)
    damaged = gzip.compress(GOOD)[:-8] + bytes(8)
    with pytest.raises(SourceError, match="CRC check failed"):
        fetch(written(tmp_path / "x.nt.gz", damaged), lenient=True)
    assert left_behind(cache) == []


def test_a_file_without_line_ends_does_not_fill_the_memory(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikidata_kind, "_LONGEST_LINE", 1 << 21)
    with pytest.raises(SourceError, match="a line of more than 2,097,152 bytes"):
        fetch(written(tmp_path / "x.nt.gz", gzip.compress(bytes(10 << 20))))


@given(st.lists(st.binary(max_size=60).filter(lambda b: b"\n" not in b), max_size=10), st.data())
def test_sound_lines_survive_any_neighbours(
    tmp_path_factory: pytest.TempPathFactory, noise: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.nt"
    numbers = data.draw(st.lists(st.integers(1, 10**9), max_size=30, unique=True))
    lines = data.draw(st.permutations([n + b"\n" for n in noise] + [line(n) for n in numbers]))
    content = b"".join(lines)
    if content[:2] == b"\x1f\x8b" or content[:3] == b"BZh":
        return
    source = RdfFile(written(path, content), lenient=True)
    assert {q.subject.value for q in source.triples()} >= {f"{WD}Q{n}" for n in numbers}
    assert source.malformed.count <= len(noise)


def test_names_of_entries(cache: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "wikidata_my part (1).nt", GOOD)
    assert fetch(path).name == "wikidata-my-part-1-"
    assert fetch(path, "wikidata-x").name == "wikidata-x"
    with pytest.raises(UsageError, match="cannot name a cache entry"):
        fetch(path, "../x")


def test_without_pyoxigraph(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "x.nt", GOOD)
    fetch(path)
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda name: None)
    for attempt in (lambda: fetch(path), lambda: load_wikidata("x")):
        with pytest.raises(MissingDependencyError, match=r"'\.\[wikidata\]'"):
            attempt()


@pytest.mark.parametrize("licence", [" ", "my own", "CC0-1.0\n", "CC0-1.0 AND"])
def test_a_licence_is_an_spdx_expression(cache: Path, tmp_path: Path, licence: str) -> None:
    path = written(tmp_path / "x.nt", GOOD)
    with pytest.raises(UsageError, match="SPDX"):
        fetch_kind("wikidata", source=path, licence=licence, attribution="me")


def test_the_day_of_a_dump_is_noted(cache: Path, tmp_path: Path) -> None:
    dumped = (
        b"<http://wikiba.se/ontology#Dump> <http://schema.org/dateModified> "
        b'"2026-11-04T23:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
    )
    entry = fetch(written(tmp_path / "latest-truthy.nt", dumped + GOOD))
    info = read_info(entry.folder)
    assert info.name == "wikidata-latest-truthy"
    assert info.source.description == "Wikidata from latest-truthy.nt, a dump of 2026-11-04"


def test_the_life_of_an_entry(run_cli: RunCli, tmp_path: Path, cache: Path) -> None:
    path = written(tmp_path / "x.nt", BAD)
    refused = run_cli("fetch", "wikidata", "--from", str(path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"kb-cache: error: {path}, line 6: not N-Triples")
    options = ["--name", "mini", "--licence", "MIT", "--lenient"]
    unknown = run_cli("fetch", "wikidata", "--from", str(path), *options)
    assert unknown.returncode == 2
    assert "state it with --attribution TEXT" in unknown.stderr
    options += ["--attribution", "By the authors of x."]
    done = run_cli("fetch", "wikidata", "--from", str(path), *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wikidata-mini: 7 triples, ")
    assert "kb-cache: note: 2 malformed lines were left out: line 6: " in done.stderr
    (listed,) = (e for e in json.loads(run_cli("list", "--json").stdout) if e["where"] == "cache")
    assert (listed["name"], listed["rows"], listed["sound"], listed["licence"]) == (
        "wikidata-mini", {"triples": 7}, True, "MIT",
    )  # fmt: skip
    assert listed["bytes"] > 1000
    assert "  7 triples  " in run_cli("list").stdout
    assert run_cli("verify", "wikidata-mini").stdout == "wikidata-mini: sound\n"
    folder = cache / "snapshots" / "wikidata-mini"
    table = next((folder / "store").glob("*.sst"))
    content = bytearray(table.read_bytes())
    content[10] ^= 1
    table.write_bytes(content)
    found = run_cli("verify")
    assert found.returncode == 1
    assert f"{table.name} is corrupt" in found.stderr
    assert run_cli("verify", "--repair").stdout.endswith("wikidata-mini: rebuilt\n")
    info = read_info(folder)
    assert (info.licence, info.rows, len(info.source.notes)) == ("MIT", {"triples": 7}, 1)
    assert (info.attribution, info.citation) == ("By the authors of x.", "")
    assert run_cli("verify").returncode == 0
    assert run_cli("clear", "wikidata-mini", "--yes").stdout == "wikidata-mini: removed\n"
    assert left_behind(cache) == []


@pytest.mark.posix
@pytest.mark.parametrize("how", ["SIGINT", pytest.param("SIGKILL", marks=pytest.mark.slow)])
def test_a_killed_fetch_leaves_what_was_there(how: str, cache: Path, tmp_path: Path) -> None:
    # Large enough for the signal to come while it is being loaded.
    triples = gzip.decompress(real_data.wikidata_file(real_data.MINIATURE).read_bytes())
    large = tmp_path / "large.nt"
    large.write_bytes(b"".join(triples.replace(b"/Q", b"/Q%d" % copy) for copy in range(1, 31)))
    fetch(written(tmp_path / "old.nt", GOOD), "sample")
    command = [sys.executable, "-m", "kb_cache.cli", "fetch", "wikidata"]
    process = subprocess.Popen(
        [*command, "--from", str(large), "--name", "sample"],
        cwd=REPOSITORY,
        env=os.environ | {"KBPROBE_CACHE": str(cache)},
        stderr=subprocess.PIPE,
        # Where this test itself runs with Ctrl-C ignored, its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(cache.glob("snapshots/.wikidata-sample.new-*/store/*")):
        assert process.poll() is None, "it was done before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.Signals[how])
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if how == "SIGINT" else -signal.SIGKILL)
    assert b"Traceback" not in said
    assert store.entry_names() == ["wikidata-sample"]
    assert len(load_wikidata("sample")) == 5
    assert store.verify(store.find("wikidata-sample")) == []
    if how == "SIGINT":
        assert left_behind(cache) == ["wikidata-sample"]
    fetch(tmp_path / "old.nt", "sample")  # the next writer removes what the killed one left
    assert left_behind(cache) == ["wikidata-sample"]


def test_a_store_that_cannot_be_written(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikidata_kind, "STORE", "missing/folder")
    with pytest.raises(CacheError, match="cannot be written"):
        fetch(written(tmp_path / "x.nt", GOOD))
    assert left_behind(cache) == []
