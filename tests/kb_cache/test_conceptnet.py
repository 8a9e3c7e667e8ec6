"""ConceptNet from file to snapshot to graphs."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from kb_cache import store
from kb_cache.base import Download
from kb_cache.conceptnet.kind import CONCEPTNET
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.conceptnet.types import ConceptNet, Selection
from kb_cache.fetching import download_source, rebuild
from kb_cache.fetching import fetch as fetch_kind
from kb_cache.snapshot import read_info, write_info
from kbprobe.errors import SnapshotError, SourceError, UsageError
from kbprobe.files import file_sha256
from tests.real_data import MINIATURE, SAMPLE, beside, conceptnet_file

REPOSITORY = Path(__file__).resolve().parents[2]
MINI = Path(__file__).parent / "data" / "conceptnet-mini.csv"
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]

ENGLISH = Selection()


def fetch(path: Path, name: str = "", selection: Selection = ENGLISH) -> store.StoreEntry:
    languages, relations = selection.languages, selection.relations
    return fetch_kind("conceptnet", source=path, name=name, language=languages, relation=relations)


@pytest.fixture
def mini_net(cache: Path) -> ConceptNet:
    fetch(MINI, "mini")
    return load_conceptnet("mini")


def texts(cn: ConceptNet, ids: object) -> list[str]:
    return [cn.concepts["text"][int(i)].as_py() for i in np.asarray(ids).ravel()]


def test_concepts_and_their_senses(mini_net: ConceptNet) -> None:
    rows = mini_net.concepts.to_pylist()
    dogs = [row for row in rows if row["text"] == "dog"]
    assert dogs == [
        {"text": "dog", "language": "en", "pos": "", "sense": ""},
        {"text": "dog", "language": "en", "pos": "n", "sense": "wn/animal"},
    ]
    assert [rows[i] for i in mini_net.find("dog")] == dogs
    assert mini_net.find("hund").size == 0  # another language
    assert texts(mini_net, mini_net.find("man_best_friend")) == ["man best friend"]
    found = mini_net.lookup(["dog", "unheard of", "snow"])
    assert found[1] == -1
    assert rows[found[0]] == dogs[0]
    sense = mini_net.find("dog")[1]
    assert mini_net.terms[sense] == found[0]
    assert mini_net.terms[found[2]] == found[2]


def test_edges_of_a_relation(mini_net: ConceptNet) -> None:
    start, end, weight = mini_net.edges("HasProperty")
    stated = list(zip(texts(mini_net, start), texts(mini_net, end), weight.tolist(), strict=True))
    assert ("snow", "white", 5.0) in stated
    assert len(stated) == 5
    assert start.tolist() == sorted(start.tolist())
    negated = mini_net.edges("HasProperty", negated=True)
    assert [*texts(mini_net, negated.start), *texts(mini_net, negated.end)] == ["snow", "cold"]
    assert mini_net.edges("UsedFor", negated=True).start.size == 0
    assert "NotDesires" not in mini_net.relation_names
    with pytest.raises(UsageError, match=r"no relation 'HasPropery'. Did you mean 'HasProperty'"):
        mini_net.edges("HasPropery")
    row = mini_net.assertions.slice(mini_net.rows("Desires").start, 1).to_pylist()[0]
    assert row["surface"] == "[[a cat]] wants [[milk]]"
    assert row["dataset"] == "/d/conceptnet/4/en"


def test_graphs_both_ways(mini_net: ConceptNet) -> None:
    cn = mini_net
    dog, animal, organism, entity, cat = cn.lookup(["dog", "animal", "organism", "entity", "cat"])
    assert cn.graph("IsA").neighbours(dog).tolist() == [animal]
    assert cn.reverse("IsA").neighbours(animal).tolist() == sorted([dog, cat])
    assert cn.graph("IsA") is cn.graph("IsA")
    assert cn.ancestors([dog], max_hops=2).node.tolist() == [animal, organism]
    assert cn.ancestors([dog], max_hops=3).node.tolist() == [animal, organism, entity]
    walk = cn.reverse("IsA").walk([entity], max_hops=2)
    assert sorted(zip(walk.node.tolist(), walk.hops.tolist(), strict=True)) == sorted(
        [(organism, 1), (animal, 2)]
    )
    assert cn.holds("IsA", [dog, cat, dog], [animal, animal, entity]).tolist() == [
        True, True, False,
    ]  # fmt: skip
    assert cn.holds("IsA", [cat], [dog], negated=True).tolist() == [True]
    hot, cold = cn.find("hot")[0], cn.find("cold")[-1]
    assert cn.holds("Antonym", [hot, cold], [cold, hot]).tolist() == [True, True]


def test_selecting_edges_keeps_ids(mini_net: ConceptNet) -> None:
    heavy = mini_net.select(mini_net.weight >= 5)
    assert heavy.concepts is mini_net.concepts
    assert heavy.assertions.num_rows == int((mini_net.weight >= 5).sum())
    assert texts(heavy, heavy.edges("UsedFor").start) == ["knife"]
    assert heavy.edges("Desires").start.size == 0
    assert heavy.edges("IsA").weight.tolist() == [9.0]
    with pytest.raises(ValueError, match="a mask of"):
        mini_net.select(np.ones(3, dtype=np.bool_))


def test_the_order_of_the_source_does_not_matter(cache: Path, tmp_path: Path) -> None:
    lines = MINI.read_text("utf-8").splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    shuffled = tmp_path / "shuffled.csv.gz"
    shuffled.write_bytes(gzip.compress("".join(lines).encode()))
    first, second = fetch(MINI, "a"), fetch(shuffled, "b")
    for name, file in read_info(first.folder).files.items():
        assert read_info(second.folder).files[name].sha256 == file.sha256
    assert read_info(first.folder).digest == read_info(second.folder).digest


def test_equal_edges_are_merged(cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "twice.csv"
    source.write_text(MINI.read_text("utf-8") * 2, "utf-8")
    fetch(MINI, "once")
    info = read_info(fetch(source).folder)
    once, twice = load_conceptnet("once"), load_conceptnet("twice")
    assert (2 * once.weight).tolist() == twice.weight.tolist()
    assert list(info.source.notes) == ["20 edges that repeat others were merged with them."]


def test_what_a_snapshot_says_of_itself(cache: Path) -> None:
    entry = fetch(MINI, selection=Selection(("en",), ("IsA",)))
    info = read_info(entry.folder)
    assert (info.name, info.kind, info.licence) == (
        "conceptnet-mini", "conceptnet", "CC-BY-SA-4.0",
    )  # fmt: skip
    assert info.source.files == {MINI.name: file_sha256(MINI)}
    assert "Attribution-ShareAlike" in (entry.folder / "NOTICE.txt").read_text()
    assert info.source.options == {"language": ["en"], "relation": ["IsA"]}
    assert info.attribution in (entry.folder / "NOTICE.txt").read_text()
    assert info.language == "en"
    assert load_conceptnet(info.name).relation_names == ["IsA"]


def test_nothing_fetched_yet(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"There are: none. Add one with: kb-cache fetch concept"):
        load_conceptnet()


def test_malformed_lines_are_counted_where_no_edge_is_left(cache: Path, tmp_path: Path) -> None:
    """A dump saved again as CSV has quotes around its columns of JSON."""
    info = '"{""dataset"": ""/d/conceptnet/4/en"", ""weight"": 2.0}"'
    line = f'"/a/[/r/IsA/,/c/en/dog/,/c/en/animal/]"\t/r/IsA\t/c/en/dog\t/c/en/animal\t{info}\n'
    path = tmp_path / "quotes.csv"
    path.write_text(2 * line)
    expected = r"quotes.csv: .* no edge .* 2 malformed lines were left out: line 1: its last column"
    with pytest.raises(SourceError, match=expected):
        fetch(path)


def test_no_edge_is_wanted(cache: Path) -> None:
    with pytest.raises(SourceError, match="no edge of the wanted languages and relations"):
        fetch(MINI, selection=Selection(("fr",)))
    assert store.entry_names() == []


def test_damage_is_repaired_with_the_same_selection(cache: Path) -> None:
    entry = fetch(MINI, "mini", Selection(("en", "de"), ("IsA", "Synonym")))
    digest = read_info(entry.folder).digest
    (entry.folder / "concepts.parquet").write_bytes(b"")
    assert load_conceptnet("mini").digest == digest
    assert store.verify(entry) == []
    recorded = read_info(entry.folder)
    for options, reason in ((None, "source is unknown"), ({"x": 1}, "no option --x")):
        lost = replace(recorded, source=replace(recorded.source, options=options))
        write_info(entry.folder, lost)
        (entry.folder / "concepts.parquet").write_bytes(b"")
        with pytest.raises(SnapshotError, match=rf"{reason}.*again with: kb-cache fetch concept"):
            rebuild(entry)


class Handler(BaseHTTPRequestHandler):
    """Serves ``server.content``, breaking off in the middle of the first answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # It holds a body back until its head is acknowledged: 40 ms.

    def do_GET(self) -> None:
        server: Server = self.server  # type: ignore[assignment]
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        if start:
            end = len(server.content)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
        self.end_headers()
        server.asked.append(start)
        self.wfile.write(body if server.asked[1:] else body[: len(body) // 2])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    content = gzip.compress(MINI.read_bytes())

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[int] = []


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_download_to_snapshot(
    cache: Path,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from kb_cache import cli

    (tmp_path / "original").write_bytes(server.content)
    dump = Download(
        f"http://127.0.0.1:{server.server_port}/dump.csv.gz",
        file_sha256(tmp_path / "original"),
        len(server.content),
    )
    monkeypatch.setattr("kb_cache.download.PAUSE", 0.01)
    monkeypatch.setattr(CONCEPTNET, "download", dump)
    assert cli.main(["fetch", "conceptnet"]) == 0
    assert "conceptnet-5.7: 20 edges between" in capsys.readouterr().out
    assert server.asked == [0, len(server.content) // 2]
    assert len(load_conceptnet().find("dog")) == 2
    assert download_source(dump).parent == cache / "downloads"
    assert len(server.asked) == 2  # it was there
    assert cli.main(["clear", "--all", "--yes"]) == 0
    assert "downloaded files: removed" in capsys.readouterr().out
    assert not (cache / "downloads").exists()
    with pytest.raises(SourceError, match="is not the expected file"):
        download_source(Download(dump.url, "0" * 64, dump.bytes))


def test_the_command(run_cli: RunCli, tmp_path: Path, cache: Path) -> None:
    done = run_cli(
        "fetch", "conceptnet", "--from", str(MINI), "--language", "en,de", "--relation",
        "IsA, Synonym",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("conceptnet-mini: 8 edges between")
    listed = {one["name"]: one for one in json.loads(run_cli("list", "--json").stdout)}
    found = listed["conceptnet-mini"]
    assert (found["kind"], found["licence"], found["sound"]) == ("conceptnet", "CC-BY-SA-4.0", True)
    assert run_cli("verify", "conceptnet-mini").returncode == 0
    assert run_cli("clear", "conceptnet-mini", "--yes").returncode == 0
    (tmp_path / "bad.csv").write_text(MINI.read_text("utf-8") + "x\n", "utf-8")
    noted = run_cli("fetch", "conceptnet", "--from", str(tmp_path / "bad.csv"))
    assert "note: 1 malformed line was left out: line 25: 1 columns" in noted.stderr
    for arguments, code, message in [
        (["--from", "/nowhere"], 1, "no such file: /nowhere"),
        (["--from", str(MINI), "--language", "/c/en"], 2, "is not a language code"),
        (["--from", str(MINI), "--name", "../x"], 2, "cannot name a cache entry"),
        (["--from", __file__], 1, "is not ConceptNet"),
    ]:
        failed = run_cli("fetch", "conceptnet", *arguments)
        assert failed.returncode == code
        assert message in failed.stderr
        assert "Traceback" not in failed.stderr


@pytest.fixture(scope="module")
def real(extent: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConceptNet]:
    """Real edges between English concepts."""
    source = conceptnet_file(extent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        fetch(source, "en")
        yield load_conceptnet("en")


def test_real_edges(real: ConceptNet, extent: str) -> None:
    lines = 0
    expected: dict[tuple[str, str, str], float] = {}
    with gzip.open(conceptnet_file(extent), "rt", encoding="utf-8") as file:
        for line in file:
            lines += 1
            _, relation, start, end, info = line.rstrip("\n").split("\t")
            if relation in ("/r/PartOf", "/r/NotIsA"):
                ends = [uri[6:].replace("_", " ") for uri in (start, end)]
                expected[(relation[3:], *ends)] = json.loads(info)["weight"]
    assert real.assertions.num_rows == lines == {MINIATURE: 21_970, SAMPLE: 486_744}[extent]
    names = real.concepts["text"].to_pylist()
    found = {}
    for relation, negated, key in (("PartOf", False, "PartOf"), ("IsA", True, "NotIsA")):
        edges = real.edges(relation, negated)
        for start, end, weight in zip(*(part.tolist() for part in edges), strict=True):
            found[(key, names[start], names[end])] = weight
    assert found == expected


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "edges", "relations"),
    [("assertions-5.7-format-sample.csv", 764 - 82, 15), ("cn100k.tsv.gz", 99_997, 28)],
)
def test_the_other_samples(cache: Path, name: str, edges: int, relations: int) -> None:
    entry = fetch(beside("conceptnet", name), "sample", Selection(languages=()))
    cn = load_conceptnet("sample")
    assert cn.assertions.num_rows == edges
    assert len(cn.relation_names) == relations
    assert not any("malformed" in note for note in read_info(entry.folder).source.notes)
