"""The written dataset: what it holds, how it loads, and that it is there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import builders
import kbprobe
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.items import COLUMNS, LABELS, arrow_schema, features
from kbprobe.format.manifest import SCHEMA_VERSION

Built = Callable[[str, str], Path]
ManifestOf = Callable[[str, str], dict[str, Any]]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

NAME = "wordnet_hypernymy"
SMALL = ("--wordnet", "miniature", "--pos", "noun", "--limit", "200", "--no-audit")
# Soon drawn, and long in being written.
LARGE = ("wordnet_definitions", "--sampling", "uniform", "--no-audit")


@pytest.fixture
def folder(built: Built, tmp_path: Path) -> Path:
    """A copy of a small built probe, which a test may damage."""
    return Path(shutil.copytree(built(NAME, "small"), tmp_path / "probe"))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows as Parquet holds them, splits in the card's order."""
    files = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    return [row for file in files for row in pq.read_table(folder / file["path"]).to_pylist()]


def remains(parent: Path) -> list[str]:
    """What a write that was broken off has left beside its target."""
    return sorted(path.name for path in parent.iterdir() if path.name.startswith("."))


# What it holds


@pytest.mark.parametrize("content", [b"no Parquet", b"", "other types"])
def test_a_file_that_matches_its_checksum_but_holds_no_rows_is_named(
    folder: Path, content: bytes | str
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    entry = next(file for file in manifest["files"] if file["split"] == "test")
    path = folder / entry["path"]
    if isinstance(content, str):
        pq.write_table(pa.table({"choices": [1]}), path)
    else:
        path.write_bytes(content)
    entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(KbprobeError, match=rf"{path.name} cannot be read as rows.*Build the"):
        kbprobe.load(folder)


def test_it_loads_with_datasets_and_keeps_its_types(built: Built, tmp_path: Path) -> None:
    import datasets

    folder = built(NAME, "small")
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "hf"))
    assert {"train", "test"} <= set(loaded)
    value, list_of = datasets.Value, datasets.List
    for split in loaded.values():
        assert split.features == features()
        assert list(split.features) == list(COLUMNS)
    types = loaded["test"].features
    assert types["answer"] == value("int32")
    assert types["choices"] == {
        "text": list_of(value("string")),
        "label": list_of(value("string")),
    }
    assert types["choice_hops"] == list_of(value("int32"))
    assert types["triples"] == list_of(
        {part: value("string") for part in ("subject", "relation", "object")}
    )
    assert [row for split in loaded.values() for row in split.to_list()] == rows_of(folder)


def test_parquet_files_carry_types_for_arrow_and_for_datasets(built: Built) -> None:
    import datasets

    for path in (built(NAME, "small") / "data").iterdir():
        schema = pq.read_schema(path)
        assert schema.equals(arrow_schema(), check_metadata=False)
        declared = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        assert datasets.Features.from_dict(declared) == features()


def test_loading_from_python_checks_and_types(folder: Path) -> None:
    loaded = kbprobe.load(folder)
    assert [row for split in loaded.values() for row in split.to_list()] == rows_of(folder)
    assert all(split.features == features() for split in loaded.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wordnet_definitions", "wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy"]
)
def test_ids_answers_and_labels_of_a_full_build_agree(built: Built, name: str) -> None:
    columns = ["id", "choices", "answer", "answerKey", "cluster", "concept", "schema_version"]
    table = pq.read_table(built(name, "miniature") / "data", columns=columns)
    ids = table["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in ids)
    assert table["cluster"] == table["concept"]
    assert set(table["schema_version"].to_pylist()) == {SCHEMA_VERSION}
    answers, keys = table["answer"].to_pylist(), table["answerKey"].to_pylist()
    assert set(answers) == {0, 1, 2, 3, 4}
    assert [LABELS.index(key) for key in keys] == answers
    labels = table["choices"].combine_chunks().field("label")
    assert labels.value_lengths().unique().to_pylist() == [5]
    assert labels.values.to_pylist() == list("ABCDE") * len(ids)


@pytest.mark.slow
def test_the_manifest_agrees_with_the_files(built: Built, manifest_of: ManifestOf) -> None:
    folder, manifest = built(NAME, "miniature"), manifest_of(NAME, "miniature")
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    assert written == sorted(
        ["README.md", "manifest.json", *(file["path"] for file in manifest["files"])]
    )
    for file in manifest["files"]:
        content = (folder / file["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        assert len(content) == file["bytes"]
        rows = pq.read_metadata(folder / file["path"]).num_rows
        assert rows == file["rows"] == manifest["counts"]["splits"][file["split"]]


def test_the_manifests_counts_are_those_of_the_data(built: Built, manifest_of: ManifestOf) -> None:
    rows, counts = rows_of(built(NAME, "miniature")), manifest_of(NAME, "miniature")["counts"]
    gold = [row["choice_nodes"][row["answer"]] for row in rows]
    assert counts["rows"] == len(rows)
    assert counts["concepts"] == len({row["concept"] for row in rows})
    assert counts["golds"] == len(set(gold))
    stems = {(row["concept"], row["context"]) for row in rows}
    assert counts["questions"] == len(stems)
    pairs = {(row["concept"], row["context"], one) for row, one in zip(rows, gold, strict=True)}
    assert counts["question_answer_pairs"] == len(pairs)
    assert counts["mean_cluster"] == round(len(rows) / counts["concepts"], 2)
    cells: dict[str, dict[str, int]] = {}
    for row in rows:
        family, distance = row["distractor_family"], row["distractor_hops"]
        label = f"{family} {distance}" if distance else family
        of_hops = cells.setdefault(str(row["hops"]), {})
        of_hops[label] = of_hops.get(label, 0) + 1
    assert counts["cells"] == cells


def test_the_manifest_says_what_was_built_and_from_what(manifest_of: ManifestOf) -> None:
    manifest = manifest_of(NAME, "small")
    assert manifest["probe"] == manifest["request"]["probe"] == NAME
    assert manifest["request"]["options"]["limit"] == 200
    assert manifest["request"]["seed"] == 0
    knowledge = manifest["knowledge_base"]
    assert (knowledge["name"], knowledge["version"]) == ("wordnet-miniature", "3.0-miniature")
    assert len(knowledge["digest"]) == len(manifest["template"]["digest"]) == 64
    assert manifest["audit"]["baselines"].keys() >= {"choice-only model", "longest choice"}


def test_the_card_names_a_default_config_and_a_true_sample(
    built: Built, manifest_of: ManifestOf
) -> None:
    folder, manifest = built(NAME, "small"), manifest_of(NAME, "small")
    _, front, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    header = yaml.safe_load(front)
    (config,) = header["configs"]
    assert (config["config_name"], config["default"]) == ("default", True)
    assert config["data_files"] == [
        {"split": file["split"], "path": file["path"]} for file in manifest["files"]
    ]
    assert header["license"]
    assert header["size_categories"] == ["n<1K"]
    sample = json.loads(text.split("```json\n")[1].split("```")[0])
    assert sample in rows_of(folder)
    for option in manifest["request"]["options"]:
        assert f"`--{option.replace('_', '-')}`" in text
    for baseline in manifest["audit"]["baselines"]:
        assert f"| {baseline} |" in text
    assert "build-probe wordnet_hypernymy --limit 200 --wordnet miniature --pos noun" in text
    assert "{{" not in text
    assert "{%" not in text


@pytest.mark.slow
def test_json_lines_hold_the_same_rows(built: Built, tmp_path: Path, build_probe: Run) -> None:
    import datasets

    done = build_probe(NAME, *SMALL, "--format", "jsonl", "-o", "lines")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "lines"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    paths = [file["path"] for file in manifest["files"]]
    assert paths == [f"data/{file['split']}.jsonl" for file in manifest["files"]]
    assert {"data/train.jsonl", "data/test.jsonl"} <= set(paths)
    lines = [
        json.loads(line)
        for path in paths
        for line in (folder / path).read_text(encoding="utf-8").splitlines()
    ]
    assert lines == rows_of(built(NAME, "small"))
    assert [list(line) for line in lines[:1]] == [list(COLUMNS)]
    # The same from Python, and as datasets reads the card.
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "hf"))
    assert [row for split in loaded.values() for row in split.to_list()] == lines


@pytest.mark.slow
def test_json_lines_load_with_the_declared_types(
    tmp_path: Path, build_probe: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")
    assert build_probe(NAME, *SMALL, "--format", "jsonl", "-o", "lines").returncode == 0
    loaded = kbprobe.load(tmp_path / "lines")
    assert {"train", "test"} <= set(loaded)
    assert all(split.features == features() for split in loaded.values())


@pytest.mark.slow
def test_building_from_python_gives_the_written_rows(built: Built, tmp_path: Path) -> None:
    expected = rows_of(built(NAME, "small"))
    for output in (None, tmp_path / "probe", tmp_path / "probe"):  # the third finds the second
        probe = builders.build(NAME, wordnet="miniature", pos=["noun"], limit=200, output=output)
        assert all(split.features == features() for split in probe.values())
        assert [row for split in probe.values() for row in split.to_list()] == expected
    with pytest.raises(UsageError, match="built from another request"):
        builders.build(NAME, wordnet="miniature", limit=150, output=tmp_path / "probe")
    with pytest.raises(UsageError, match=r"no option --limits\. Did you mean 'limit'"):
        builders.build(NAME, limits=150)


# Damage


@pytest.mark.parametrize("how", ["changed", "cut", "missing"])
def test_damage_is_found_and_named(folder: Path, how: str) -> None:
    path = folder / "data" / "test-00000-of-00001.parquet"
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        changed = content[:99] + bytes([content[99] ^ 1]) + content[100:]
        path.write_bytes(content[:-100] if how == "cut" else changed)
    with pytest.raises(KbprobeError, match=r"data/test-00000-of-00001\.parquet") as raised:
        kbprobe.load(folder)
    assert "Build the probe again" in str(raised.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"probe": 1}', '{"name": "my-web-page"}'])
def test_what_is_no_manifest_is_said_to_be_none(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"manifest\.json"):
        kbprobe.load(folder)


def test_a_folder_without_a_probe_is_said_to_hold_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no built probe"):
        kbprobe.load(tmp_path)


# What stands in the way


@pytest.mark.slow
def test_another_probe_is_kept_unless_overwritten(
    folder: Path, build_probe: Run, tmp_path: Path
) -> None:
    before = rows_of(folder)
    refused = build_probe(NAME, *SMALL, "--seed", "1", "-o", "probe")
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert rows_of(folder) == before
    done = build_probe(NAME, *SMALL, "--seed", "1", "-o", "probe", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert rows_of(folder) != before
    assert remains(tmp_path) == []


@pytest.mark.parametrize("manifest", [None, '{"name": "my-web-page", "icons": []}'])
def test_what_others_wrote_is_never_overwritten(
    tmp_path: Path, build_probe: Run, manifest: str | None
) -> None:
    """Not even where it has a manifest.json, as web pages and browser extensions do."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work", encoding="utf-8")
    if manifest is not None:
        (tmp_path / "thesis" / "manifest.json").write_text(manifest, encoding="utf-8")
    for flags in ([], ["--overwrite"]):
        refused = build_probe(NAME, *SMALL, "-o", "thesis", *flags)
        assert refused.returncode == 2
        assert "thesis" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert (tmp_path / "thesis" / "chapter.txt").read_text(encoding="utf-8") == "years of work"


@pytest.mark.slow
def test_an_empty_folder_is_filled(tmp_path: Path, build_probe: Run) -> None:
    (tmp_path / "empty").mkdir()
    assert build_probe(NAME, *SMALL, "-o", "empty").returncode == 0
    assert kbprobe.load(tmp_path / "empty").num_rows


@pytest.mark.posix
@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="the superuser may write everywhere")
def test_an_output_that_may_not_be_written(tmp_path: Path, build_probe: Run) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    failed = build_probe(NAME, *SMALL, "-o", "closed/probe")
    assert failed.returncode == 1
    assert "Permission denied" in failed.stderr
    assert "Traceback" not in failed.stderr


# Broken off


@pytest.mark.slow
@pytest.mark.posix
def test_interrupted_while_writing_nothing_is_left_and_said_so(
    tmp_path: Path, command_line: list[str], environment: dict[str, str]
) -> None:
    """Other ends of a writer: ``tests/reliability`` and ``tests/kb_cache/test_store.py``."""
    process = subprocess.Popen(
        [*command_line, *LARGE, "-o", "probe", "--overwrite"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
        # Where this test itself runs with Ctrl-C ignored, its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 100
        while process.poll() is None and not list(tmp_path.glob(".probe.new-*/data/*")):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.strip().startswith("build-probe: Interrupted; nothing was left half written.")
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "name", ["~/p", *(pytest.param(name, marks=pytest.mark.slow) for name in ("a:b", "s3:x"))]
)
def test_a_folder_whose_name_looks_like_another_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")
    kbprobe.build("age_comparison", limit=60, audit=False, output=name)
    assert (tmp_path / name / "manifest.json").is_file()
    loaded, opened = kbprobe.load(name), open_probe(name)
    assert loaded["test"]["id"] == [item.id for item in opened.items]
    done = kbprobe.evaluate(name, "none", learner="majority", train=5)
    assert done.results.probe.fingerprint == opened.fingerprint


def test_rows_are_those_of_the_files_that_were_checked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")
    first = kbprobe.load(folder)["test"]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    entry = next(file for file in manifest["files"] if file["split"] == "test")
    path = folder / entry["path"]
    table, before = pq.read_table(path), path.stat()
    pq.write_table(table.take(list(range(len(table)))[::-1]), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert kbprobe.load(folder)["test"]["id"] == first["id"][::-1]
