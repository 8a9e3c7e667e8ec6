"""Builds give the rows that they gave before: manifests are kept, and rebuilt.

``tests/data/manifests`` holds the manifest of each probe's default build. Where rows are meant to
change, ``.ci/site/figures.py`` writes the new ones; the change log says what changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from builders.engine.pipeline import request_of, same_rows
from builders.engine.registry import OWN_FILES, PROBES
from kbprobe.errors import MissingDependencyError
from kbprobe.format.manifest import parse_manifest, read_manifest
from tests.real_data import SAMPLE

MANIFESTS = Path(__file__).resolve().parents[1] / "data" / "manifests"

NAMES = sorted(path.stem for path in MANIFESTS.glob("*.json"))

CONCEPTNET = ("always_never", "property_conjunction", "property_conjunction_but_not")
WIKIDATA = ("encyclopedic_composition",)
SAMPLES = {"conceptnet": "english-sample", "dump": "sample"}
"""The probes whose manifests name the samples beside the repository."""


@pytest.fixture
def sample(name: str, request: pytest.FixtureRequest) -> None:
    """Provide the knowledge base of a probe, where it does not come with kbprobe."""
    if name in CONCEPTNET:
        request.getfixturevalue("open_conceptnet")(SAMPLE)
    if name in WIKIDATA:
        request.getfixturevalue("open_wikidata")(SAMPLE)


@pytest.mark.parametrize("name", NAMES)
def test_the_content_of_a_manifest_is_as_it_was_read(name: str) -> None:
    content = (MANIFESTS / f"{name}.json").read_bytes()
    assert parse_manifest(content).content == json.loads(content)


def test_every_probe_has_a_manifest() -> None:
    assert set(NAMES) == PROBES.keys() - set(OWN_FILES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_manifest_and_figures_those_of_the_pages(
    name: str, sample: None, built: Callable[..., Path], figures: ModuleType
) -> None:
    old = read_manifest(MANIFESTS / f"{name}.json")
    given = figures.gallery.sources(name, SAMPLES)
    request = request_of(old)
    assert request.options == request.probe.options(**given)
    try:
        folder = built(name, "default", **given)
    except MissingDependencyError as error:
        pytest.skip(f"the knowledge base is not here: {error}")
    new = read_manifest(folder)
    differences = same_rows(old, {"files": new.files, "environment": new.environment})
    assert [one for one in differences if ": the same rows, encoded otherwise" not in one] == []
    assert figures.of_default(new) == figures.of_default(old)
    # Of the dump, the gallery names the licence of Wikidata, and tests that of the sample's file.
    if not figures.gallery.controls(name) and name not in WIKIDATA:
        shown = figures.gallery.section(name, folder, given)
        assert shown == figures.gallery.sections()[name]
