"""Flat rows and the tasks that read them: what is written, and what of others is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import release
from evaluation.items.sources import open_probe
from kbprobe.errors import UsageError
from kbprobe.format.manifest import read_manifest
from release.checks import files
from release.checks.checking import check
from release.croissant import croissant_text
from release.exports.flat import write_flat_configs
from release.hub.registration import merge_registration
from tests.release.exports_toy import CLOZES, ODD, rows, write_probe
from tests.release.hub_server import REPO, HubServer, make_default, publish, refusal

Copy = Callable[[str], Path]
FILE = "test-00000-of-00001.parquet"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Questions, clozes, and rows that no harness can score."""
    return write_probe(
        tmp_path / "odd",
        {
            "default": {"test": rows(ODD), "train": rows(ODD)},
            "clozes": {"test": rows(CLOZES, "mc_mlm")},
            "pairs": {"test": rows(ODD, "nli")},
            "open": {"test": rows(ODD, answer=-1)},
            "more": {"train": rows(ODD)},
        },
    )


def test_flat_rows_are_written_of_what_can_be_scored(odd: Path, tmp_path: Path) -> None:
    written = write_flat_configs(odd, read_manifest(odd), tmp_path / "flat")
    assert [(one.source, one.name) for one in written] == [
        ("default", "flat"),
        ("clozes", "clozes-flat"),
    ]
    for one, asked in zip(written, (ODD, CLOZES), strict=True):
        (file,) = one.files.files
        table = pq.read_table(tmp_path / "flat" / file.path)
        assert table["choices"].to_pylist() == [choices for _, choices in asked]
        configs, info = one.front_matter
        assert configs["data_files"] == [{"split": "test", "path": f"{one.name}/data/" + FILE}]
        assert info["splits"][0]["num_examples"] == file.rows == len(asked)
        assert info["download_size"] == (tmp_path / "flat" / file.path).stat().st_size
        assert info["features"][2] == {"name": "choices", "list": "string"}


def test_a_large_split_is_read_a_row_group_at_a_time(
    odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = odd / "data" / FILE
    pq.write_table(pq.read_table(path), path, row_group_size=2)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a split is read at once")

    monkeypatch.setattr(pq, "read_table", never)
    first, *_ = write_flat_configs(odd, read_manifest(odd), tmp_path / "flat")
    held = pq.ParquetFile(tmp_path / "flat" / "flat" / "data" / FILE)
    assert held.num_row_groups == 3
    assert first.files.rows == held.metadata.num_rows == len(ODD)


def test_a_config_of_that_name_is_refused(tmp_path: Path) -> None:
    some = {"test": rows(ODD)}
    folder = write_probe(tmp_path / "probe", {"default": some, "flat": some})
    with pytest.raises(UsageError, match="has a config 'flat': that name is kept"):
        write_flat_configs(folder, read_manifest(folder), tmp_path / "flat")


def test_row_groups_that_the_hub_cannot_show_are_a_warning(
    odd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "VIEWER_BYTES", 1_000)
    (found,) = (
        one for one in files.schema_findings(odd, read_manifest(odd)) if one.name == "row groups"
    )
    assert found.verdict == "warning"
    assert f"data/{FILE} (" in found.where


# eval.yaml.


def task(name: str, **further: Any) -> dict[str, Any]:
    return {"id": name, "config": f"{name}-flat", "split": "test", **further}


def said(*tasks: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {"name": "A", "description": "What", "tasks": list(tasks), **further}


def merged(
    ours: dict[str, Any], hub: dict[str, Any], base: dict[str, Any]
) -> dict[str, Any] | None:
    content = merge_registration(ours, yaml.safe_dump(hub).encode(), base)
    found: dict[str, Any] | None = None if content is None else yaml.safe_load(content)
    return found


def test_tasks_of_others_and_what_was_changed_by_hand_are_kept() -> None:
    base = said(task("a"), task("b"))
    hub = said(task("a", epochs=2), task("theirs"), name="Ours")
    new = said(task("a", shuffle_choices=True), task("b"), task("c"))
    found = merged(new, hub, base)
    assert found is not None
    assert found["name"] == "Ours"
    assert found["tasks"] == [
        task("a", shuffle_choices=True, epochs=2),
        task("c"),
        task("theirs"),
    ]  # b was removed on the Hub
    # The first probe of a repository gives it its name.
    other = merged(said(task("c"), name="C"), said(task("a")), {})
    assert other == said(task("a"), task("c"))


def test_what_is_no_longer_registered_goes() -> None:
    base = said(task("a"))
    assert merged({}, said(task("a")), base) is None
    assert merged({}, said(task("a"), task("theirs")), base) == said(task("theirs"))
    assert merge_registration({}, None, {}) is None


def test_comments_stay_where_nothing_changes() -> None:
    content = b"# mine\n" + yaml.safe_dump(said(task("a"))).encode()
    assert merge_registration(said(task("a")), content, {}) == content


@pytest.mark.parametrize("content", [b"[]", b"tasks: all", b"a: [", b"\xff\xfe"])
def test_a_file_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"eval\.yaml on the Hub"):
        merge_registration(said(task("a")), content, {})


@pytest.mark.slow
def test_two_builds_of_a_probe_in_one_repository_have_tasks_of_their_own(
    hub: HubServer, probe_copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = probe_copy("wordnet_hypernymy")
    publish(hub, folder)
    publish(hub, folder, config_name="again")
    registered = yaml.safe_load(hub.content(REPO, "eval.yaml"))
    assert [(one["id"], one["config"]) for one in registered["tasks"]] == [
        ("kbprobe_wordnet_hypernymy", "flat"),
        ("kbprobe_wordnet_hypernymy_again", "again-flat"),
    ]
    card = hub.content(REPO, "README.md").decode()
    assert f"inspect eval hf/{REPO}/kbprobe_wordnet_hypernymy_again --model MODEL" in card
    assert f'load_dataset("{REPO}", "again-flat")' in card
    assert f"evaluate-probe {REPO} --config again --model MODEL" in card
    assert release.verify(REPO, endpoint=hub.url).passed
    make_default(monkeypatch, hub.url, tmp_path / "cache")
    one, other = open_probe(REPO), open_probe(REPO, config="again")
    assert one.name == other.name == "wordnet_hypernymy"
    assert one.manifest is not None
    assert other.manifest is not None
    assert [entry.config for entry in other.manifest.files] == ["again"] * 3
    assert one.fingerprint == other.fingerprint
    with pytest.raises(UsageError, match=r"config flat, has no column 'question'.* with --config"):
        open_probe(REPO, config="flat")
    hub.put(REPO, {"eval.yaml": b"tasks: all"})
    assert "Correct it there, or remove it" in refusal(hub, folder)


def test_the_canary_is_in_flat_rows_too(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy("wordnet_hypernymy")
    publish(hub, folder, canary_column=True)
    path = folder.parent / "got.parquet"
    path.write_bytes(hub.content(REPO, f"flat/data/{FILE}"))
    (canary,) = set(pq.read_table(path)["canary"].to_pylist())
    assert canary in hub.content(REPO, "README.md").decode()


def test_a_downloaded_copy_is_published_as_it_was(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy("wordnet_hypernymy")
    publish(hub, folder)
    for path in hub.paths(REPO):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(hub.content(REPO, path))
    assert check(folder).passed
    changed = {one.path for one in publish(hub, folder).plan.changes if one.state != "same"}
    assert changed == {"release.json"}  # the check found a croissant.json this time


@pytest.mark.needs("mlcroissant")
def test_croissant_describes_flat_rows(hub: HubServer, probe_copy: Copy) -> None:
    import mlcroissant

    folder = probe_copy("wordnet_hypernymy")
    manifest = read_manifest(folder)
    flat = write_flat_configs(folder, manifest, folder)
    text = croissant_text(folder, flat=flat)
    (folder / "croissant.json").write_text(text, encoding="utf-8")
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    read = list(dataset.records("flat/test"))
    table = pq.read_table(folder / flat[0].files.files[0].path)
    assert [row["flat/test/id"].decode() for row in read] == table["id"].to_pylist()
    assert [row["flat/test/target"].decode() for row in read] == table["target"].to_pylist()
