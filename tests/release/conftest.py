"""Fixtures of the tests of ``release``: small real builds, made once, and copies to damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real_data import MINIATURE
from tests.release.hub_server import TOKEN, HubServer, let_through

BUILDS: dict[str, dict[str, Any]] = {
    "wordnet_hypernymy": {"limit": 300, "wordnet": MINIATURE, "match": "none"},
    "antonym_negation": {
        **{"limit": 200, "wordnet": MINIATURE, "wording": "plain", "judged": False},
        **{"both_orders": False, "min_zipf": 1.5},
    },
}
"""Probes that tests share, and their options. The second has controls.

The miniature has hardly any matched groups for validation.
"""


@pytest.fixture(scope="session")
def built_probe(
    open_wordnet: Callable[[], str], shared: Callable[[str, Callable[[Path], object]], Path]
) -> Callable[[str], Path]:
    """Return the folder of a build, given a name of ``BUILDS``; it must not be changed."""
    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    def folder_of(name: str) -> Path:
        open_wordnet()
        probe = find_probe(name)
        options = probe.options.parse(BUILDS[name], name)
        return shared(
            f"{name}, released", lambda folder: write(build(Request(probe, options)), folder)
        )

    return folder_of


@pytest.fixture
def probe_copy(built_probe: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a copy of a build, which a test may damage."""

    def copy_of(name: str) -> Path:
        return Path(shutil.copytree(built_probe(name), tmp_path / name))

    return copy_of


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return let_through(monkeypatch)


@pytest.fixture
def hub(online: list[float]) -> Iterator[HubServer]:
    """A loopback Hub with one account."""
    with HubServer() as server:
        server.account(TOKEN, "me")
        yield server
