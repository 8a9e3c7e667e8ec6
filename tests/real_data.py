"""Where the real data is that tests use: in the repository, or beside a clone of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

MINIATURE, SAMPLE = "miniature", "sample"
"""Extents of real data: what is in the repository, and what may stand beside it."""

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Larger real data; it is not in the repository."""

MINIATURES = Path(__file__).resolve().parent / "data" / "miniatures"


OWN = Path(__file__).resolve().parent / "data" / "own"
OWN_DATA: dict[str, dict[str, Any]] = {
    "facts": {
        "table": str(OWN / "elements.csv"),
        "columns": ("subject=name",),
        "relations": ("symbol", "discoverers", "discovery_year"),
    },
    "ontology": {"file": str(OWN / "unit.obo"), "stem_overlap": "keep"},
}
"""The options with which probes of users' files are built: of a table and of an ontology."""

OF_SAMPLE = pytest.param(SAMPLE, marks=pytest.mark.real_data)

ON_SAMPLE = pytest.mark.parametrize("extent", [OF_SAMPLE], indirect=True)
"""Marks tests of what the miniatures do not hold."""

ON_MINIATURE = pytest.mark.parametrize("extent", [MINIATURE], indirect=True)
"""Marks tests of options, whose promise hangs on no data: the sample takes three times as long."""


def extents() -> list[Any]:
    """Return the extents that are at hand, as parameters of a test."""
    return [MINIATURE, OF_SAMPLE] if BESIDE.is_dir() else [MINIATURE]


def beside(*parts: str) -> Path:
    """Return a file or folder beside the repository; skip the test where it is not there."""
    path = BESIDE.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs real data that is not in the repository: there is no {path}")
    return path


def conceptnet_file(extent: str) -> Path:
    """Return the edges of ConceptNet: 486,744 in the sample, 21,970 of these in the miniature."""
    if extent == MINIATURE:
        return MINIATURES / "conceptnet-miniature.csv.gz"
    return beside("conceptnet", "assertions_en.csv.gz")


def wikidata_file(extent: str) -> Path:
    """Return triples of Wikidata: 368,514 in the sample, 21,807 of these in the miniature."""
    if extent == MINIATURE:
        return MINIATURES / "wikidata-miniature.nt.gz"
    return beside("wikidata", "wikidata_sample.nt.gz")


def nltk_data() -> Path:
    """Return a folder for NLTK_DATA that holds NLTK's archive of WordNet 3.0."""
    roots = [Path(root) for root in os.environ.get("NLTK_DATA", "").split(os.pathsep) if root]
    for root in (*roots, BESIDE / "nltk_data"):
        if (root / "corpora" / "wordnet.zip").is_file():
            return root
    pytest.skip("WordNet 3.0 for NLTK is not here: set NLTK_DATA to a folder that holds it")
