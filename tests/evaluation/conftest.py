"""Fixtures of the tests of ``evaluation``: a cache of the test's own, and a folder to work in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluation import golden_cases
from tests.evaluation.own_scorers import own_scorers as own_scorers


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with probes and tiny models; many modules have one of their own."""
    folder = tmp_path_factory.mktemp("world")
    golden_cases.write_world(folder)
    return folder


@pytest.fixture
def in_world(world: Path, own_cache: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, as the working directory, with a cache of the test's own."""
    monkeypatch.chdir(world)
    torch.set_num_threads(1)
    return world
