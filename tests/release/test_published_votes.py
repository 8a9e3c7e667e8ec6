"""The published votes of Kim et al. (2019) make the labels that they published.

Of the two sets at hand, the comparatives give the votes of each annotator. The wh-words give final
labels alone: there is nothing to decide on.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from kbprobe.format.items import LABELS
from kbprobe.format.labels import SCALE_LABELS
from kbprobe.format.manifest import write_manifest
from kbprobe.format.setups import NLI, SETUPS
from release.annotation.round_trip import import_votes
from tests.manifests import toy_manifest, write_parquet
from tests.real_data import beside
from tests.release.annotation_toy import make_row, rows_items

POINTS = {label: point for point, label in SCALE_LABELS.items()}
"""A point of the scale for each label; the published votes no longer tell 5 from 4, or 2 from 1."""


@pytest.mark.real_data
def test_votes_on_comparatives_make_the_published_labels(tmp_path: Path) -> None:
    data, votes = (_published("nli-comparatives", part) for part in ("data", "metadata"))
    probe = _probe(tmp_path / "comparatives", data)
    path = tmp_path / "votes.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("item_id", "annotator", "answer"))
        for row in votes:
            for annotator, label in enumerate(row["misc"]["assigned_labels"].split(","), 1):
                writer.writerow((row["pair-id"], f"annotator-{annotator}", POINTS[label]))
    done = import_votes(probe, [path])
    made = {label["id"]: label["label"] for label in done.labels if label["kept"]}
    assert made == {str(row["pair-id"]): row["label"] for row in data}
    assert len(made) == 89
    assert done.report.votes == 267


def _published(name: str, part: str) -> list[dict[str, Any]]:
    path = beside("function_words", f"{name}_{part}.json")
    return list(json.loads(path.read_text(encoding="utf-8")))


def _probe(folder: Path, published: list[dict[str, Any]]) -> Path:
    """Write published pairs as a probe without labels."""
    labels = SETUPS[NLI].labels
    blank = make_row("test", 0, NLI, labelled=False)
    rows = [
        blank
        | {
            "id": str(row["pair-id"]),
            "premise": row["context"],
            "hypothesis": row["hypothesis"],
            "choices": {"text": list(labels), "label": list(LABELS[: len(labels)])},
        }
        for row in published
    ]
    folder.mkdir()
    files = write_parquet(folder, {"default": {"test": rows_items(rows)}})
    write_manifest(folder, toy_manifest("comparatives", files))
    return folder
