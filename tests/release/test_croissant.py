"""Croissant: valid, true to the manifest, and read by mlcroissant row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbprobe.format.items import COLUMNS
from kbprobe.format.manifest import read_manifest
from release.checks.checking import check
from release.croissant import croissant, croissant_text, responsible_ai

Probe = Callable[[str], Path]
HYPERNYMY, ANTONYM = "wordnet_hypernymy", "antonym_negation"
CROISSANT = "croissant.json"
MANIFESTS = Path(__file__).resolve().parents[1] / "data" / "manifests"


def plain(value: Any, prefix: str) -> Any:
    """Turn what mlcroissant reads into a row as Parquet has it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        own = {name.removeprefix(prefix + "/"): part for name, part in value.items()}
        return {name: plain(part, f"{prefix}/{name}") for name, part in own.items()}
    return [plain(one, prefix) for one in value] if isinstance(value, list) else value


def test_files_and_checksums_are_those_of_the_manifest(built_probe: Probe) -> None:
    folder = built_probe(ANTONYM)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    described = croissant(folder)
    found = {one["contentUrl"]: one["sha256"] for one in described["distribution"]}
    assert found == {entry["path"]: entry["sha256"] for entry in manifest["files"]}
    names = [one["@id"] for one in described["recordSet"]]
    assert names == [f"{entry['config']}/{entry['split']}" for entry in manifest["files"]]
    for one in described["recordSet"]:
        assert [field["@id"] for field in one["field"]] == [f"{one['@id']}/{c}" for c in COLUMNS]


def test_on_the_hub_files_are_those_of_the_release(built_probe: Probe) -> None:
    described = croissant(built_probe(HYPERNYMY), repo_id="me/probe", version="v1.0.0")
    assert described["url"] == "https://huggingface.co/datasets/me/probe"
    assert described["version"] == "1.0.0"
    prefix = "https://huggingface.co/datasets/me/probe/resolve/v1.0.0/data/"
    assert all(one["contentUrl"].startswith(prefix) for one in described["distribution"])


def test_the_same_probe_gives_the_same_text(built_probe: Probe) -> None:
    folder = built_probe(HYPERNYMY)
    assert croissant_text(folder) == croissant_text(folder)
    assert "Richardson" in croissant(folder)["citeAs"]
    assert croissant(folder)["license"] == [
        "https://wordnet.princeton.edu/license-and-commercial-use"
    ]


def test_the_check_compares_it(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    path = folder / CROISSANT
    path.write_text(croissant_text(folder), encoding="utf-8")
    assert check(folder).passed
    changed = croissant(folder)
    changed["distribution"][0]["sha256"] = "0" * 64
    for text in (json.dumps(changed), "{", "[]"):
        path.write_text(text, encoding="utf-8")
        assert [one.name for one in check(folder).failed] == ["croissant"]


@pytest.mark.needs("mlcroissant")
@pytest.mark.slow
@pytest.mark.parametrize("name", [HYPERNYMY, ANTONYM])
def test_mlcroissant_finds_it_valid_and_reads_the_rows(probe_copy: Probe, name: str) -> None:
    import mlcroissant

    folder = probe_copy(name)
    path = folder / CROISSANT
    path.write_text(croissant_text(folder, version="v1.0.0"), encoding="utf-8")
    dataset = mlcroissant.Dataset(jsonld=str(path))
    assert not dataset.metadata.ctx.issues.errors
    for record_set in dataset.metadata.record_sets:
        config, split = record_set.id.split("/")
        data = folder / "data" if config == "default" else folder / config / "data"
        rows = pq.read_table(data / f"{split}-00000-of-00001.parquet").to_pylist()
        read = [plain(row, record_set.id) for row in dataset.records(record_set.id)]
        assert read == rows


@pytest.mark.needs("mlcroissant")
@pytest.mark.slow
def test_mlcroissant_finds_the_published_form_valid(built_probe: Probe) -> None:
    import mlcroissant

    text = croissant_text(built_probe(ANTONYM), repo_id="me/probe", version="v1.0.0")
    dataset = mlcroissant.Dataset(jsonld=json.loads(text))
    assert not dataset.metadata.ctx.issues.errors


def test_responsible_ai_fields_say_what_manifest_and_card_record(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    described = croissant(folder)
    assert described["conformsTo"][1] == "http://mlcommons.org/croissant/RAI/1.0"
    assert manifest["knowledge_base"]["name"] in described["rai:dataCollection"]
    reason, count = next(iter(manifest["counts"]["dropped"].items()))
    assert f"{reason}: {count:,}" in described["rai:dataPreprocessingProtocol"][0]
    card = (folder / "README.md").read_text(encoding="utf-8")
    section = card.split("## What it cannot show\n")[1].split("\n## ")[0]
    assert [f"- {one}" for one in described["rai:dataLimitations"]] == section.strip().splitlines()
    for name, cells in (manifest["audit"] or {"baselines": {}})["baselines"].items():
        share = f"{name} {100 * cells['all']['accuracy']:.1f}%"
        assert share in described["rai:dataBiases"][1]
    # Without a card, what it lists is left out.
    (folder / "README.md").unlink()
    assert "rai:dataLimitations" not in croissant(folder)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wordnet_hypernymy", "what wordnet-3.0 states; no person labelled it"),
        ("fw_eos", "Intended labels"),
        ("fw_negation", "No person has voted on these rows. A language model read each"),
    ],
)
def test_answers_that_no_annotator_gave_are_not_said_to_be_votes(name: str, says: str) -> None:
    manifest = read_manifest(MANIFESTS / f"{name}.json")
    assert says in responsible_ai(manifest, "")["rai:dataAnnotationProtocol"]


@pytest.mark.needs("mlcroissant")
@pytest.mark.slow
def test_mlcroissant_reads_the_responsible_ai_fields(built_probe: Probe) -> None:
    import mlcroissant

    described = croissant(built_probe(HYPERNYMY))
    metadata = mlcroissant.Dataset(jsonld=described).metadata
    assert metadata.data_collection == described["rai:dataCollection"]
    assert metadata.data_limitations == described["rai:dataLimitations"]
    assert metadata.data_biases == described["rai:dataBiases"]
    assert metadata.data_use_cases == described["rai:dataUseCases"]
