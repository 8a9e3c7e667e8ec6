"""The card: what datasets and the Hub read of it, what people read, what publishing adds."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.format.card import arrow_bytes, canary_of, hub_features, size_category
from kbprobe.format.items import arrow_schema, features, plain
from kbprobe.format.licences import software_entry
from kbprobe.tables import in_markdown
from release.cards import split_card
from release.checks.checking import check
from release.checks.findings import Finding
from release.hub.names import add_canary_column
from release.hub.package import publication_card

Probe = Callable[[str], Path]
HYPERNYMY, ANTONYM = "wordnet_hypernymy", "antonym_negation"
REPOSITORY = Path(__file__).resolve().parents[2]


def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    return split_card((folder / "README.md").read_text(encoding="utf-8"))


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.parametrize("name", [HYPERNYMY, ANTONYM])
def test_the_hub_reads_the_front_matter_and_datasets_its_infos(
    built_probe: Probe, name: str
) -> None:
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    front, _ = card_of(built_probe(name))
    data = DatasetCardData(**front, ignore_metadata_errors=False)
    assert data.annotations_creators == ["machine-generated"]
    assert data.task_categories[0] == "multiple-choice"
    assert data.license == "other"
    infos = DatasetInfosDict.from_dataset_card_data(data)
    manifest = manifest_of(built_probe(name))
    configs = dict.fromkeys(entry["config"] for entry in manifest["files"])
    assert list(infos) == list(configs)
    for info in infos.values():
        assert info.features == features()


def test_features_are_spelled_as_datasets_spells_them() -> None:
    assert hub_features(arrow_schema()) == features()._to_yaml_list()


@pytest.mark.slow
@pytest.mark.parametrize("name", [HYPERNYMY, ANTONYM])
def test_sizes_are_those_of_the_rows(built_probe: Probe, name: str) -> None:
    folder = built_probe(name)
    files = manifest_of(folder)["files"]
    for info in card_of(folder)[0]["dataset_info"]:
        own = [entry for entry in files if entry["config"] == info["config_name"]]
        assert info["download_size"] == sum(entry["bytes"] for entry in own)
        for split, entry in zip(info["splits"], own, strict=True):
            table = plain(pq.read_table(folder / entry["path"]).combine_chunks())
            assert (split["name"], split["num_examples"]) == (entry["split"], table.num_rows)
            assert split["num_bytes"] == pytest.approx(table.nbytes, rel=0.02)
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])


def assert_bytes(counted: int, table: pa.Table) -> None:
    """Arrow may have made bitmaps of nulls: a bit for each entry of a column."""
    entries = table.num_rows * sum(5 if "list" in str(one.type) else 1 for one in table.schema)
    assert counted <= table.nbytes <= counted + entries / 8 + 2 * table.num_columns


@pytest.mark.slow
def test_sizes_of_rows_are_counted_without_laying_them_out(
    open_wordnet: Callable[[], str],
) -> None:
    from builders.engine.pipeline import build
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    for name, more in ((HYPERNYMY, {"wordnet": open_wordnet()}), ("age_comparison", {})):
        probe = find_probe(name)
        options = probe.options.parse({"limit": 100, **more}, name)
        built = build(Request(probe, options, audit=False))
        for splits in built.configs.values():
            for items in splits.values():
                assert_bytes(arrow_bytes(items), plain(items.table()))


@pytest.mark.slow
def test_loading_by_the_card_gives_each_config(built_probe: Probe, tmp_path: Path) -> None:
    import datasets

    folder = built_probe(ANTONYM)
    for config in (None, "perturbed", "no_language"):
        loaded = datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "hf"))
        counts = manifest_of(folder)["counts"]["splits"]
        assert {name: split.num_rows for name, split in loaded.items()} == counts


@pytest.mark.parametrize(
    ("rows", "name"),
    [(999, "n<1K"), (1_000, "1K<n<10K"), (99_999, "10K<n<100K"), (2_000_000, "1M<n<10M")],
)
def test_size_categories(rows: int, name: str) -> None:
    assert size_category(rows) == name


def test_tables_are_whole_whatever_their_cells_hold(built_probe: Probe) -> None:
    assert in_markdown("a | b * c _d_ `e` <f>\n g") == r"a \| b \* c \_d\_ \`e\` &lt;f&gt; g"
    for name in (HYPERNYMY, ANTONYM):
        width = None
        for line in card_of(built_probe(name))[1].splitlines():
            if not line.startswith("|"):
                width = None
                continue
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert width in (None, cells), line
            width = cells


def test_no_section_is_empty(built_probe: Probe) -> None:
    for name in (HYPERNYMY, ANTONYM):
        sections = re.split(r"^#+ .*$", card_of(built_probe(name))[1], flags=re.MULTILINE)[1:]
        assert all(section.strip() for section in sections)


def test_the_canary_is_that_of_the_probe_and_seed() -> None:
    """Fixed for good: whoever searches a corpus for it must find every release."""
    expected = "fe6c6594-51e6-5371-a950-e0691b8530bd"
    assert canary_of("wordnet_hypernymy", 0).split()[-1] == expected
    assert canary_of("wordnet_hypernymy", 1) != canary_of("wordnet_hypernymy", 0)
    assert canary_of("wordnet_hyponymy", 0) != canary_of("wordnet_hypernymy", 0)


def test_kbprobe_is_cited_as_its_citation_file_says(built_probe: Probe) -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    entry = software_entry(kbprobe_version())
    assert citation["title"] in entry
    assert citation["authors"][0]["name"] in entry
    assert citation["license"] in entry
    _, text = card_of(built_probe(HYPERNYMY))
    assert entry in text
    assert citation["references"][0]["title"].replace("QA", "{QA}") in text
    assert "@article{miller-1995" in text


# What publishing adds


def test_publishing_adds_place_and_version_alone(built_probe: Probe) -> None:
    folder = built_probe(ANTONYM)
    front, text = card_of(folder)
    new_front, new = split_card(publication_card(folder, repo_id="me/probe", version="v1.2"))
    assert new_front == front
    assert 'load_dataset("me/probe")' in new
    assert 'load_dataset("me/probe", "no_language")' in new
    assert 'load_dataset("me/probe", revision="v1.2")' in new
    assert 'load_dataset("antonym_negation"' not in new
    kept = [line for line in text.splitlines() if "load_dataset" not in line]
    assert set(kept) <= set(new.splitlines())
    assert new.index("## Release") < new.index("## What it cannot show")


def test_what_was_forced_is_said(built_probe: Probe) -> None:
    forced = [Finding("audit", "failed", "longest choice is high: 40.0%", "default", "Mend it.")]
    card = publication_card(built_probe(HYPERNYMY), repo_id="me/probe", forced=forced)
    assert "although its check before release failed" in card
    assert "- audit: longest choice is high: 40.0% (default)" in card
    without = publication_card(built_probe(HYPERNYMY), repo_id="me/probe")
    assert "although" not in without


def test_doing_it_again_changes_nothing_and_a_new_version_replaces_the_old(
    probe_copy: Probe,
) -> None:
    folder = probe_copy(HYPERNYMY)
    once = publication_card(folder, repo_id="me/probe", version="v1")
    (folder / "README.md").write_text(once, encoding="utf-8")
    assert publication_card(folder, repo_id="me/probe", version="v1") == once
    moved = publication_card(folder, repo_id="us/other", version="v2")
    assert "me/probe" not in moved
    assert '"v1"' not in moved
    assert moved.count("## Release") == 1
    assert check(folder).passed


def test_what_was_written_by_hand_is_kept(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8").replace("\n## Counts", "\nMy own words.\n\n## Counts")
    path.write_text(text.replace("tags:\n", "viewer: false\ntags:\n- mine\n"), encoding="utf-8")
    front, new = split_card(publication_card(folder, repo_id="me/probe"))
    assert "My own words." in new
    assert front["viewer"] is False
    assert "mine" in front["tags"]


def test_no_card_is_a_usage_error(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    (folder / "README.md").unlink()
    with pytest.raises(UsageError, match=r"no README\.md"):
        publication_card(folder, repo_id="me/probe")


# The canary as a column


@pytest.mark.slow
def test_the_canary_column_is_the_last_and_all_else_as_it_was(
    built_probe: Probe, tmp_path: Path
) -> None:
    import datasets

    folder, output = built_probe(ANTONYM), tmp_path / "with-canary"
    add_canary_column(folder, output)
    canary = canary_of(ANTONYM, 0)
    for entry in manifest_of(output)["files"]:
        table, before = (pq.read_table(one / entry["path"]) for one in (output, folder))
        assert table.column_names[-1] == "canary"
        assert table["canary"].unique().to_pylist() == [canary]
        assert table.drop_columns(["canary"]).equals(before)
    report = check(output)
    assert report.passed, report.failed
    loaded = datasets.load_dataset(str(output), cache_dir=str(tmp_path / "hf"))
    assert loaded["test"].features == features() | {"canary": datasets.Value("string")}
    front, text = card_of(output)
    assert "| `canary` | string |" in text
    for info in front["dataset_info"]:
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])
    again = split_card(publication_card(output, repo_id="me/probe"))
    assert again[0] == front
    assert again[1].count("| `canary` |") == 1


def test_the_canary_column_overwrites_nothing(built_probe: Probe, tmp_path: Path) -> None:
    shutil.copytree(built_probe(ANTONYM), tmp_path / "there")
    with pytest.raises(UsageError, match="exists already"):
        add_canary_column(built_probe(ANTONYM), tmp_path / "there")
