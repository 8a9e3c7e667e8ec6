"""Fixtures of the tests of ``builders``: full builds, made once, and the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.commands import run_here
from tests.real_data import MINIATURE

if TYPE_CHECKING:
    from builders.engine.pipeline import Built
    from builders.engine.request import Request

REPOSITORY = Path(__file__).resolve().parents[2]

UNLIMITED: Mapping[str, Any] = {
    "sampling": "uniform",
    "families": ("paper",),
    "train_rows": 0,
    "cap_per_gold": 0,
    "perturbations": 1,
    "stem_overlap": "keep",
    "tier": "full",
}

SMALL = {"wordnet": MINIATURE}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "published": UNLIMITED,
    "unmatched": {"match": "none"},
    "adjectives": {"pos": ("adjective",), "train_rows": 0},
    "miniature": SMALL,
    "small": {**SMALL, "pos": ("noun",), "limit": 200},
}
"""The builds that tests share, and the options that make them, of those that a probe has.

Those of the whole WordNet take long; only slow tests use them, and those on real data.
"""

AUDITED = ("default", "small")  # and the published hypernymy, whose flaw is known


@pytest.fixture(scope="session")
def built(
    open_wordnet: Callable[[], str],
    open_whole_gcide: Callable[[], None],
    shared: Callable[[str, Callable[[Path], object]], Path],
) -> Callable[..., Path]:
    """Return the folder of a build, given a probe's name, one of ``KINDS`` and a snapshot."""
    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    def folder_of(name: str, kind: str, **snapshot: str) -> Path:
        probe = find_probe(name)
        values = {k: v for k, v in KINDS[kind].items() if k not in probe.options.left_out()}
        values |= snapshot
        if "wordnet" in values:
            open_wordnet()
        if "gcide" in probe.options.model_fields:
            open_whole_gcide()
        options = probe.options.parse(values, name)
        audited = kind in AUDITED or (name, kind) == ("wordnet_hypernymy", "published")
        return shared(
            ", ".join((name, kind, *snapshot.values())),
            lambda folder: write(build(Request(probe, options, audit=audited)), folder),
        )

    return folder_of


@pytest.fixture(scope="session")
def build_soon() -> Callable[[Request], Built]:
    """Return a function that builds as `build` does, with a short search for more pairs.

    A search of full length finds some more; only their number depends on it.
    """

    def built(request: Request) -> Built:
        from builders.engine.pipeline import build
        from builders.function_words import probes
        from builders.function_words.balance import EFFORT

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(probes, "LONGER", EFFORT._replace(rounds=40))
            return build(request)

    return built


@pytest.fixture(scope="session")
def miniature(open_wordnet: Callable[[], str]) -> str:
    """Return the name of the miniature WordNet, which is in the cache of this process."""
    return open_wordnet()


@pytest.fixture(scope="session")
def manifest_of(built: Callable[[str, str], Path]) -> Callable[[str, str], dict[str, Any]]:
    """Return the manifest of a build, given a probe's name and one of ``KINDS``."""

    def manifest(name: str, kind: str) -> dict[str, Any]:
        text = (built(name, kind) / "manifest.json").read_text(encoding="utf-8")
        return dict(json.loads(text))

    return manifest


@pytest.fixture
def command_line() -> list[str]:
    """The words that start ``build-probe`` in a process of its own."""
    return [sys.executable, "-m", "builders.cli"]


@pytest.fixture
def cache(new_cache: Callable[[], Path], open_wordnet: Callable[[Path], str]) -> Path:
    """A cache of this test's own, in which is the miniature WordNet."""
    folder = new_cache()
    open_wordnet(folder)
    return folder


@pytest.fixture
def environment(cache: Path) -> dict[str, str]:
    """The environment of such a process: this repository importable, a private cache."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "KBPROBE_CACHE": str(cache)}


@pytest.fixture
def build_probe(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``build-probe`` in this test's own folder, without starting another Python for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KBPROBE_CACHE", str(cache))
    return partial(run_here, "builders.cli")


@pytest.fixture
def build_probe_process(
    tmp_path: Path, command_line: list[str], environment: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``build-probe`` in this test's own folder, as a process of its own."""

    def run(*args: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command_line, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | variables,
            timeout=120,
            check=False,
        )

    return run
