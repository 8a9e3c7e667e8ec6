"""Large builds are rendered and written in blocks: the rows are those of a build in one piece."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.engine.pipeline import Built, build, write
from builders.engine.plan import Plan
from builders.engine.probe import find_probe
from builders.engine.render import blocks
from builders.engine.request import Request
from evaluation.items.sampling import open_sample
from evaluation.items.sources import find_split, open_probe
from kbprobe.format import shards
from kbprobe.format.dataset import load
from kbprobe.format.items import ItemsInParts, plain
from kbprobe.format.manifest import read_manifest
from tests.builders.test_sub_questions import NAME, PROBE
from tests.real_data import MINIATURE

pytestmark = pytest.mark.usefixtures("miniature")

Rows = dict[tuple[str, str], list[dict[str, Any]]]

PROBES: dict[str, dict[str, Any]] = {
    "wordnet_hypernymy": {"limit": 300, "pos": ("noun",), "wordnet": MINIATURE},
    # Controls whose answers are replaced, and variants.
    "age_comparison": {"limit": 360},
    "antonym_negation": {"limit": 200, "wordnet": MINIATURE},
    # Sub-questions.
    NAME: {},
}


def request(name: str, *, audit: bool = False) -> Request:
    """Ask for a small build of a probe with controls, variants or sub-questions."""
    probe = PROBE if name == NAME else find_probe(name)
    planned, plans = probe.plan, list[Plan]()

    @wraps(planned)  # Its module is where the wordings are looked for.
    def plan_once(*given: Any) -> Plan:
        if not plans:
            plans.append(planned(*given))
        return plans[0]

    probe = replace(probe, plan=plan_once)
    return Request(probe, probe.options.parse(PROBES[name], name), audit=audit)


def rows_of(built: Built) -> Rows:
    return {
        (config, split): plain(items.table()).to_pylist()
        for config, splits in built.configs.items()
        for split, items in splits.items()
    }


@pytest.fixture(scope="module")
def asked() -> Callable[[str], Request]:
    """Return the request of a probe; it is planned once."""
    found: dict[str, Request] = {}

    def one(name: str) -> Request:
        if name not in found:
            found[name] = request(name)
        return found[name]

    return one


@pytest.fixture(scope="module")
def whole(asked: Callable[[str], Request]) -> Callable[[str], Rows]:
    """Return all rows of a probe, built in one piece."""
    found: dict[str, Rows] = {}

    def one(name: str) -> Rows:
        if name not in found:
            found[name] = rows_of(build(asked(name)))
        return found[name]

    return one


@pytest.mark.parametrize(
    "name",
    [
        name if name == "wordnet_hypernymy" else pytest.param(name, marks=pytest.mark.slow)
        for name in PROBES
    ],
)
def test_rows_do_not_depend_on_the_size_of_blocks(
    name: str,
    asked: Callable[[str], Request],
    whole: Callable[[str], Rows],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = whole(name)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 41)
    built = build(asked(name))
    assert any(isinstance(items, ItemsInParts) for items in built.splits.values())
    assert rows_of(built) == expected


def written(asked: Request, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Write a probe in blocks of 30 rows and files of two blocks or so."""
    patch.setattr(blocks, "BLOCK_ROWS", 30)
    patch.setattr(shards, "SHARD_BYTES", 6_000)
    write(build(asked), folder)
    return folder


@pytest.fixture(scope="module")
def sharded(asked: Callable[[str], Request], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a probe in many files."""
    with pytest.MonkeyPatch.context() as patch:
        return written(asked("age_comparison"), tmp_path_factory.mktemp("sharded") / "ages", patch)


@pytest.mark.slow
def test_large_splits_are_several_files(sharded: Path, whole: Callable[[str], Rows]) -> None:
    manifest = read_manifest(sharded)
    test = [entry for entry in manifest.files_of("default") if entry.split == "test"]
    assert len(test) > 1
    assert test[0].path == f"data/test-00000-of-{len(test):05d}.parquet"
    loaded = load(sharded, "no_language")
    assert loaded["test"].to_list() == whole("age_comparison")["no_language", "test"]


@pytest.mark.slow
def test_sharded_builds_are_streamed_by_their_card(
    sharded: Path, whole: Callable[[str], Rows]
) -> None:
    import datasets

    streamed = datasets.load_dataset(str(sharded), "perturbed", split="test", streaming=True)
    assert list(streamed) == whole("age_comparison")["perturbed", "test"]


def test_all_files_of_a_split_are_evaluated(sharded: Path) -> None:
    rows = read_manifest(sharded).counts.splits["test"]
    assert len(open_probe(sharded, split="test").items) == rows
    # The draw of a sample reads parts of files.
    found = find_split(sharded, split="test")
    sample = open_sample(found, 10, "rows", 0) if found else None
    assert sample is not None
    assert len(sample.items) == 10


@pytest.mark.slow
def test_what_is_counted_of_rows_does_not_depend_on_blocks(
    asked: Callable[[str], Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited = request("wordnet_hypernymy", audit=True)
    write(build(audited), tmp_path / "whole")
    written(audited, tmp_path / "blocks", monkeypatch)
    one, other = (
        json.loads((tmp_path / kind / "manifest.json").read_text(encoding="utf-8"))
        for kind in ("whole", "blocks")
    )
    assert len(other["files"]) > len(one["files"])
    assert {**one, "files": []} == {**other, "files": []}
    sizes = [
        [
            line
            for line in (tmp_path / kind / "README.md").read_text("utf-8").split("\n")
            if "num_bytes" in line or "num_examples" in line
        ]
        for kind in ("whole", "blocks")
    ]
    assert sizes[0] == sizes[1]


def test_pages_are_indexed(sharded: Path) -> None:
    for path in sorted((sharded / "data").glob("*.parquet")):
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).has_offset_index


@pytest.mark.slow
def test_an_error_in_a_worker_leaves_no_folder(
    asked: Callable[[str], Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards._Job, "run", full)
    with pytest.raises(OSError, match="No space left"):
        written(asked("age_comparison"), tmp_path / "ages", monkeypatch)
    assert not (tmp_path / "ages").exists()
