"""Builds give the rows that they gave before: manifests are kept, and rebuilt.

``tests/data/manifests`` holds manifests of builds made before the redesign. Probes whose rows have
changed since, for a reason given in ``CHANGED``, have a later one in the folder ``current`` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.engine.pipeline import build, request_of, same_rows, write
from kbprobe.errors import MissingDependencyError
from kbprobe.format.manifest import read_manifest
from tests.real_data import SAMPLE, conceptnet_file, wikidata_file

MANIFESTS = Path(__file__).resolve().parents[1] / "data" / "manifests"

CHANGED: Mapping[str, str] = {
    "antonym_negation": "main senses, similar adjectives, synonyms of words with antonyms",
    "dictionary_wordsense": "choice groups, and no definition that gives its word away",
    "property_conjunction": "balanced candidates; a denial by one volunteer does not count",
    "property_conjunction_but_not": "balanced candidates; a denial by one volunteer does not count",
    "taxonomy_conjunction": "distractors at the gold's level, true of neither word",
}

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


def test_every_change_has_a_later_manifest() -> None:
    assert NAMES
    assert {path.stem for path in (MANIFESTS / "current").glob("*.json")} == CHANGED.keys()
    assert CHANGED.keys() <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_manifest(name: str, sample: None, tmp_path: Path) -> None:
    folder = MANIFESTS / "current" if name in CHANGED else MANIFESTS
    old = read_manifest(folder / f"{name}.json")
    try:
        request = request_of(old)
        _ = request.knowledge
    except MissingDependencyError as error:
        pytest.skip(f"the knowledge base is not here: {error}")
    new = write(build(request), tmp_path / name)
    differences = same_rows(old, new)
    assert [one for one in differences if not one.endswith("now)")] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CHANGED))
def test_a_change_keeps_most_rows(name: str) -> None:
    """At least 95% of the rows are there still."""
    before, now = (
        read_manifest(folder / f"{name}.json")["counts"]["rows"]
        for folder in (MANIFESTS, MANIFESTS / "current")
    )
    assert now >= 0.95 * before
