"""Builds give the rows that they gave before: manifests are kept, and rebuilt.

``tests/data/manifests`` holds the manifest of each probe's default build. Where rows are meant to
change, ``.ci/site/figures.py`` writes the new ones; the change log says what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders.engine.pipeline import build, request_of, same_rows, write
from builders.engine.registry import PROBES
from kbprobe.errors import MissingDependencyError
from kbprobe.format.manifest import read_manifest
from tests.real_data import SAMPLE, conceptnet_file, wikidata_file

MANIFESTS = Path(__file__).resolve().parents[1] / "data" / "manifests"

NAMES = sorted(path.stem for path in MANIFESTS.glob("*.json"))

CONCEPTNET = ("always_never", "property_conjunction", "property_conjunction_but_not")
WIKIDATA = ("encyclopedic_composition",)
"""The probes whose manifests name the samples beside the repository."""


@pytest.fixture
def sample(name: str, session_cache: None) -> None:
    """Provide the knowledge base of a probe, where it does not come with kbprobe."""
    from kb_cache.fetching import fetch

    if name in CONCEPTNET:
        fetch("conceptnet", source=conceptnet_file(SAMPLE), name="english-sample")
    if name in WIKIDATA:
        pytest.importorskip("pyoxigraph", reason="pyoxigraph (extra wikidata) is not installed")
        fetch(
            "wikidata",
            source=wikidata_file(SAMPLE),
            name="sample",
            licence="CC-BY-4.0 AND MIT AND BSD-3-Clause",
            attribution="Contains the part of Wikidata that the kbprobe tests use.",
            language="en",
        )


def test_every_probe_has_a_manifest() -> None:
    assert set(NAMES) == PROBES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_manifest(
    name: str, sample: None, built: Callable[[str, str], Path], tmp_path: Path
) -> None:
    old = read_manifest(MANIFESTS / f"{name}.json")
    request, folder = request_of(old), tmp_path / name
    try:
        if request.options == request.probe.options() and not request.seed:
            folder = built(name, "default")
        else:
            write(build(request), folder)
    except MissingDependencyError as error:
        pytest.skip(f"the knowledge base is not here: {error}")
    new = read_manifest(folder)
    differences = same_rows(old, {"files": new.files, "environment": new.environment})
    assert [one for one in differences if ": the same rows, encoded otherwise" not in one] == []
