"""Fixtures of the tests of ``kb_cache``: the miniature WordNet, the real one, a private cache."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb_cache.cli import main
from kb_cache.wikidata.sparql import endpoint
from tests.kb_cache.sparql_server import FakeTime, ServerScript, serving
from tests.real_data import nltk_data

REPOSITORY = Path(__file__).resolve().parents[2]
MINI = Path(__file__).parent / "data" / "mini-wordnet"

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KBPROBE_CACHE", str(folder))
    return folder


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    """A copy of the miniature WordNet, which a test may damage."""
    return Path(shutil.copytree(MINI, tmp_path / "mini-wordnet"))


@pytest.fixture
def run_cli(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunCli:
    """Run ``kb-cache`` in this process, with this test's cache."""

    def run(*args: str, input: str = "") -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.StringIO(input))
        try:
            code = main(list(args))
        except Exception:  # shown with --debug
            traceback.print_exc()
            code = 1
        return subprocess.CompletedProcess(args, code, *capsys.readouterr())

    return run


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerScript]:
    """A SPARQL endpoint with scripted responses, and this test's own cache."""
    monkeypatch.delenv("KBPROBE_CONTACT", raising=False)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # slow, and seen by no test
    with serving() as script:
        yield script


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The time as clients of endpoints see it: waiting takes none."""
    fake = FakeTime()
    monkeypatch.setattr(endpoint, "time", fake)
    monkeypatch.setattr("kbprobe.http.random.random", lambda: 0.5)
    return fake


@pytest.fixture(scope="session")
def wordnet_zip() -> Path:
    """NLTK's archive of WordNet 3.0, from which the embedded snapshot was compiled."""
    return nltk_data() / "corpora" / "wordnet.zip"
