"""Probes whose splits are in several files, as those of large builds are."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pytest

from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.render import blocks
from builders.engine.request import Request
from kbprobe.audit.adversaries import read
from kbprobe.format import shards
from kbprobe.format.dataset import read_rows
from kbprobe.format.manifest import read_manifest
from kbprobe.format.sheets import write_reading
from release.annotation.options import SheetOptions
from release.annotation.plan import plan_sheets
from release.checks.checking import check
from release.checks.deep import cues_of
from release.croissant import croissant, croissant_text
from release.exports.exporting import export

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the same probe with one file a split, and with several."""
    probe = find_probe("age_comparison")
    request = Request(probe, probe.options.parse({"limit": 300}, probe.name))
    folder = tmp_path_factory.mktemp("several")
    write(build(request), folder / "one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROWS", 30)
        patch.setattr(shards, "SHARD_BYTES", 6_000)
        write(build(request), folder / "several")
    return folder / "one", folder / "several"


def test_rows_of_a_split_are_those_of_all_its_files(probes: tuple[Path, Path]) -> None:
    one, several = (
        {
            split: (files.rows, read_rows(folder, files), len(files.files))
            for split, files in read_manifest(folder).split_files("default").items()
        }
        for folder in probes
    )
    assert one.keys() == several.keys()
    for split, (rows, table, count) in several.items():
        assert (rows, table.to_pylist()) == (one[split][0], one[split][1].to_pylist())
        assert (one[split][2], count > 1) == (1, split != "validation")


@pytest.mark.parametrize("target", ["lm-eval", "inspect", "lighteval"])
def test_exports_hold_the_same_rows(probes: tuple[Path, Path], target: str, tmp_path: Path) -> None:
    import datasets

    held = []
    for number, folder in enumerate(probes):
        output = tmp_path / str(number) / "export"
        done = export(folder, to=target, output=output, configs=["default"])
        assert list(done.rows.values()) == [36]
        loaded = datasets.load_dataset(str(output), split="test", cache_dir=str(tmp_path / "c"))
        held.append(loaded.to_list())
    assert len(held[0]) == 36
    assert held[0] == held[1]


def test_sheets_show_the_same_rows(probes: tuple[Path, Path], tmp_path: Path) -> None:
    options = SheetOptions(n=20, repeats=0, gold_checks=0.1)
    one, several = (plan_sheets(folder, options) for folder in probes)
    assert one.key.items == several.key.items
    assert one.rows == several.rows
    for number, folder in enumerate(probes):
        write_reading(folder, tmp_path / str(number), 10, blind=False)
    sheets = [(tmp_path / number / "sheets" / "reading.csv").read_bytes() for number in "01"]
    assert sheets[0] == sheets[1]


def test_adversaries_see_the_same_rows(probes: tuple[Path, Path]) -> None:
    cues = cues_of(read_manifest(probes[0]))
    one, several = (read(folder, read_manifest(folder), "default", 0, cues) for folder in probes)
    assert one is not None
    for field in dataclasses.fields(one):
        left, right = (getattr(rows, field.name) for rows in (one, several))
        if isinstance(left, pa.Array):
            assert left.equals(right), field.name
        else:
            assert repr(left) == repr(right), field.name


@pytest.mark.needs("mlcroissant")
@pytest.mark.slow
def test_croissant_reads_all_files(probes: tuple[Path, Path]) -> None:
    import mlcroissant

    _, folder = probes
    (folder / "croissant.json").write_text(croissant_text(folder), encoding="utf-8")
    rows = list(mlcroissant.Dataset(jsonld=str(folder / "croissant.json")).records("default/test"))
    table = read_rows(folder, read_manifest(folder).files_of_split("default", "test"))
    assert [row["default/test/id"].decode() for row in rows] == table["id"].to_pylist()


def test_on_the_hub_the_files_are_those_of_the_repository(probes: tuple[Path, Path]) -> None:
    described = croissant(probes[1], repo_id="me/ages", version="v1", prefix="ages/")
    (repo,) = (one for one in described["distribution"] if one["@id"] == "repo")
    assert repo["contentUrl"] == "https://huggingface.co/datasets/me/ages/tree/v1"
    (files,) = (one for one in described["distribution"] if one["@id"] == "default/test.files")
    assert files["containedIn"] == {"@id": "repo"}
    assert files["includes"] == "ages/data/test-*.parquet"
    assert "repo" not in json.dumps(croissant(probes[0], repo_id="me/ages")["distribution"])


def test_they_pass_the_check(probes: tuple[Path, Path]) -> None:
    assert not check(probes[1]).failed
