"""The check before a release: each kind of damage is found, named, and blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import release
from kbprobe.errors import UsageError
from kbprobe.format.items import arrow_schema
from release.checks.checking import CheckReport, check
from release.cli import main
from tests.commands import imported_by

Probe = Callable[[str], Path]
Row = dict[str, Any]

HYPERNYMY, ANTONYM = "wordnet_hypernymy", "antonym_negation"


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def edit_rows(
    folder: Path,
    change: Callable[[list[Row]], object],
    split: str = "test",
    config: str = "default",
) -> None:
    """Change the rows of a split, and record the new file in the manifest."""
    data = folder / "data" if config == "default" else folder / config / "data"
    path = data / f"{split}-00000-of-00001.parquet"
    rows = pq.read_table(path).to_pylist()
    change(rows)
    write_table(pa.Table.from_pylist(rows, schema=arrow_schema()), path)
    record(folder, path)


def write_table(table: pa.Table, path: Path) -> None:
    """Write as build-probe does: with Features, without Arrow's own schema."""
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(arrow_schema().metadata)


def record(folder: Path, path: Path) -> None:
    name = path.relative_to(folder).as_posix()

    def change(manifest: dict[str, Any]) -> None:
        (entry,) = [one for one in manifest["files"] if one["path"] == name]
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        entry["bytes"] = path.stat().st_size
        entry["rows"] = pq.read_metadata(path).num_rows

    edit_manifest(folder, change)


def failures(report: CheckReport) -> dict[str, str]:
    """The failures but for those of the card, which no longer tells the size of the files."""
    said: dict[str, str] = {}
    for one in report.failed:
        if one.name != "card":
            said[one.name] = f"{said.get(one.name, '')}{one.what} ({one.where})\n"
    return said


@pytest.mark.slow
def test_a_check_imports_only_what_it_needs(built_probe: Probe) -> None:
    assert imported_by("release.cli", "check", built_probe(HYPERNYMY)) == []


@pytest.mark.parametrize("name", [HYPERNYMY, ANTONYM])
def test_what_was_built_passes(built_probe: Probe, name: str) -> None:
    report = release.check(built_probe(name))
    assert report.passed, report.failed
    assert {"manifest", "checksums", "schema", "rows", "card", "licence", "canary"} <= {
        one.name for one in report.findings
    }


def test_rows_written_again_unchanged_pass(probe_copy: Probe) -> None:
    """Else the tests below would prove nothing."""
    folder = probe_copy(HYPERNYMY)
    edit_rows(folder, lambda rows: None)
    assert failures(check(folder)) == {}


@pytest.mark.slow
def test_json_lines_are_checked_too(tmp_path: Path, open_wordnet: Callable[[], str]) -> None:
    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    probe = find_probe(HYPERNYMY)
    options = probe.options.parse({"limit": 150, "wordnet": open_wordnet()}, HYPERNYMY)
    write(build(Request(probe, options, format="jsonl")), tmp_path / "lines")
    report = check(tmp_path / "lines")
    assert report.passed, report.failed
    path = tmp_path / "lines" / "data" / "test.jsonl"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"answerKey": "A"', '"answerKey": "B"')
    )
    assert {"checksums", "answerKey"} <= failures(check(tmp_path / "lines")).keys()


# Files


def test_a_missing_file_is_named(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    (folder / "data" / "test-00000-of-00001.parquet").unlink()
    found = failures(check(folder))
    assert "data/test-00000-of-00001.parquet" in found["files"]
    assert "not checked" in found["rows"]


@pytest.mark.parametrize("how", ["changed", "cut", "empty"])
def test_a_damaged_file_is_named(probe_copy: Probe, how: str) -> None:
    folder = probe_copy(HYPERNYMY)
    path = folder / "data" / "train-00000-of-00001.parquet"
    content = path.read_bytes()
    damaged = {"changed": content[:99] + b"x" + content[100:], "cut": content[:-50], "empty": b""}
    path.write_bytes(damaged[how])
    assert "data/train-00000-of-00001.parquet" in failures(check(folder))["checksums"]


def test_what_else_lies_there_is_named(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    report = check(folder)
    assert report.passed
    assert report.blocks(strict=True)
    (found,) = [one for one in report.warnings if one.name not in ("oracles", "similarity")]
    assert (found.name, found.where) == ("other files", "notes.txt")
    (folder / "data" / "old-00000-of-00001.parquet").write_bytes(b"")
    assert "data/old" in failures(check(folder))["other files"]


def test_another_number_of_rows_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)

    def change(manifest: dict[str, Any]) -> None:
        manifest["files"][0]["rows"] += 1

    edit_manifest(folder, change)
    assert "recorded" in failures(check(folder))["row numbers"]


def test_another_schema_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    path = folder / "data" / "test-00000-of-00001.parquet"
    table = pq.read_table(path)
    for other, message in (
        (table.drop_columns(["premise"]), "premise"),
        (table.set_column(3, "answer", table["answer"].cast(pa.int64())), "answer is int64"),
    ):
        write_table(other, path)
        record(folder, path)
        assert message in failures(check(folder))["schema"]
    pq.write_table(table, path, store_schema=False)
    record(folder, path)
    assert "no Hugging Face features" in failures(check(folder))["schema"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest.pop("counts"), "counts"),
        (lambda manifest: manifest.update(schema_version="2.0"), "reads 1.x"),
        (lambda manifest: manifest["files"][0].update(path="../outside"), "within the probe"),
        (lambda manifest: manifest["files"][0].update(sha256="abc"), "sha256"),
        (lambda manifest: manifest.update(files=[]), "files"),
        (lambda manifest: manifest.update(audit={}), "audit.baselines"),
    ],
)
def test_a_manifest_of_another_layout_is_named(
    probe_copy: Probe, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    folder = probe_copy(HYPERNYMY)
    edit_manifest(folder, change)
    (finding,) = check(folder).findings
    assert (finding.name, finding.verdict) == ("manifest", "failed")
    assert message in finding.what


def test_no_probe_at_all_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no built probe"):
        check(tmp_path)


# Rows


def same_id(rows: list[Row]) -> None:
    rows[1]["id"] = rows[0]["id"]


def outside(rows: list[Row]) -> None:
    rows[0]["answer"] = 9


def unlabelled(rows: list[Row]) -> None:
    rows[0]["answer"] = -1


def other_key(rows: list[Row]) -> None:
    rows[0]["answerKey"] = "Z"


def other_gold(rows: list[Row]) -> None:
    families = rows[0]["choice_families"]
    at = rows[0]["answer"]
    families[at], families[at - 1] = families[at - 1], families[at]


def two_golds(rows: list[Row]) -> None:
    rows[0]["choice_families"] = ["gold"] * 5


def twice_a_choice(rows: list[Row]) -> None:
    texts = rows[0]["choices"]["text"]
    texts[0] = texts[1]


def labels_turned(rows: list[Row]) -> None:
    rows[0]["choices"]["label"].reverse()


def fewer_labels(rows: list[Row]) -> None:
    rows[0]["choices"]["label"].pop()


def one_choice(rows: list[Row]) -> None:
    rows[0].update(choices={"text": ["x"], "label": ["A"]}, choice_families=["gold"])
    rows[0].update(answer=0, answerKey="A")


def blank_question(rows: list[Row]) -> None:
    rows[0]["question"] = "  "


def blank_choice(rows: list[Row]) -> None:
    rows[0]["choices"]["text"][2] = ""


def null_question(rows: list[Row]) -> None:
    rows[0]["question"] = None


def null_choice(rows: list[Row]) -> None:
    rows[0]["choices"]["text"][0] = None


def same_row_turned(rows: list[Row]) -> None:
    rows[1]["question"] = rows[0]["question"]
    rows[1]["choices"]["text"] = rows[0]["choices"]["text"][::-1]


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (same_id, "ids", "not unique"),
        (outside, "answer", "not the index of a choice"),
        (unlabelled, "answer", "has no answer yet"),
        (other_key, "answerKey", "not the label of answer"),
        (other_gold, "choice_families", "gold at the answer alone"),
        (two_golds, "choice_families", "gold at the answer alone"),
        (twice_a_choice, "choices", "twice"),
        (labels_turned, "choices", "in order"),
        (fewer_labels, "choices", "another number of labels"),
        (one_choice, "choices", "fewer than 2"),
        (blank_question, "question", "question is empty"),
        (blank_choice, "choices", "hold an empty text"),
        (null_question, "question", "question is missing"),
        (null_choice, "choices", "hold a null"),
        (same_row_turned, "duplicates", "those of another row"),
    ],
)
def test_a_faulty_row_is_found_and_named(
    probe_copy: Probe, change: Callable[[list[Row]], None], name: str, message: str
) -> None:
    folder = probe_copy(HYPERNYMY)
    edit_rows(folder, change)
    found = failures(check(folder))
    assert message in found[name]
    if name != "ids":
        ids = pq.read_table(folder / "data" / "test-00000-of-00001.parquet")["id"].to_pylist()
        assert any(one in found[name] for one in ids[:2])


def test_a_question_and_its_gold_in_two_splits_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    train = pq.read_table(folder / "data" / "train-00000-of-00001.parquet").to_pylist()[0]

    def leak(rows: list[Row]) -> None:
        gold = train["choices"]["text"][train["answer"]]
        rows[0]["question"] = train["question"]
        rows[0]["choices"]["text"][rows[0]["answer"]] = gold

    edit_rows(folder, leak)
    assert train["id"] in failures(check(folder))["splits"]


def test_a_cluster_in_two_splits_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    train = pq.read_table(folder / "data" / "train-00000-of-00001.parquet").to_pylist()[0]
    edit_rows(folder, lambda rows: rows[0].update(cluster=train["cluster"]))
    assert train["cluster"] in failures(check(folder))["clusters"]


def test_counts_that_are_not_those_of_the_data_are_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    edit_manifest(folder, lambda manifest: manifest["counts"].update(concepts=1))
    assert "concepts" in failures(check(folder))["counts"]


def test_a_control_without_its_rows_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(ANTONYM)
    rows = pq.read_table(folder / "data" / "test-00000-of-00001.parquet").to_pylist()
    edit_rows(folder, lambda some: some.pop(3), config="perturbed")
    found = failures(check(folder))["ids"]
    assert "perturbed" in found
    assert rows[3]["id"] in found


def test_the_order_of_a_controls_rows_does_not_matter(probe_copy: Probe) -> None:
    folder = probe_copy(ANTONYM)
    edit_rows(folder, lambda rows: rows.reverse(), config="perturbed")
    assert failures(check(folder)) == {}


def test_a_cloze_question_without_its_mask_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(ANTONYM)
    edit_rows(folder, lambda rows: rows[0].update(question="It was a word."))
    assert "[MASK]" in failures(check(folder))["question"]


# The audit


def flagged(manifest: dict[str, Any]) -> None:
    manifest["audit"]["flags"] = ["longest choice is high on all: 40.0%"]


def leaking(manifest: dict[str, Any]) -> None:
    manifest["audit"]["leakage"]["clusters in train and elsewhere"] = 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flagged, "longest choice is high on all: 40.0%"),
        (leaking, "7 clusters in train"),
        (lambda manifest: manifest.update(audit=None), "without an audit"),
    ],
)
def test_an_audit_that_fails_or_lacks_blocks(
    probe_copy: Probe, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    folder = probe_copy(HYPERNYMY)
    edit_manifest(folder, change)
    report = check(folder)
    assert message in failures(report)["audit"]
    assert report.blocks()
    assert all(one.remedy for one in report.failed)


@pytest.mark.parametrize(("share", "verdict"), [(0.4, "ok"), (0.6, "warning")])
def test_an_oracle_above_its_target_is_a_warning(
    probe_copy: Probe, share: float, verdict: str
) -> None:
    folder = probe_copy(HYPERNYMY)
    families = {"all": share, "near": 0.3, "random": 0.9}
    oracle = {"knows": "half of it", "target": 0.5, "families": families, "hops": {"1": share}}
    edit_manifest(folder, lambda manifest: manifest["audit"].update(oracles={"half": oracle}))
    report = check(folder)
    assert report.passed
    (found,) = [one for one in report.findings if one.name == "oracles"]
    assert found.verdict == verdict
    assert f"who knows only half of it gets {share:.1%} (near distractors 30.0%)" in found.what
    assert bool(found.remedy) == (verdict == "warning")
    edit_manifest(folder, lambda manifest: manifest["audit"]["oracles"]["half"]["families"].clear())
    assert "no share over 'all' families" in failures(check(folder))["manifest"]


def test_the_card_has_a_table_of_the_oracles(built_probe: Probe) -> None:
    folder = built_probe(HYPERNYMY)
    card = (folder / "README.md").read_text(encoding="utf-8")
    section = card[card.index("### Oracles of partial knowledge") : card.index("## Columns")]
    assert "| who knows only | target | all | near |" in section
    assert "| random | 1 hop | 2 hops |" in section
    oracles = json.loads((folder / "manifest.json").read_text())["audit"]["oracles"]
    assert oracles
    for one in oracles.values():
        shares = f"| {one['families']['all']:.1%} | {one['families']['near']:.1%} |"
        assert f"| {one['knows']} | {one['target']:.0%} {shares}" in section
        assert f"| {one['hops']['1']:.1%} | {one['hops']['2']:.1%} |" in section


def test_manifests_without_oracles_are_read(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    edit_manifest(folder, lambda manifest: manifest["audit"].pop("oracles"))
    report = check(folder)
    assert report.passed
    assert "oracles" not in {one.name for one in report.findings}


def test_a_gold_standard_is_taken_for_what_it_is(probe_copy: Probe) -> None:
    """It has votes beside its data, no audit of its own, and controls of one split alone."""
    folder = probe_copy(ANTONYM)

    def change(manifest: dict[str, Any]) -> None:
        manifest.update(audit=None, annotation={"kept": 1})
        for entry in list(manifest["files"]):
            if entry["config"] != "default" and entry["split"] != "test":
                manifest["files"].remove(entry)
                (folder / entry["path"]).unlink()

    edit_manifest(folder, change)
    (folder / "annotations.jsonl").write_text("{}\n", encoding="utf-8")
    report = check(folder)
    assert failures(report) == {}
    assert [one.name for one in report.warnings] == ["audit"]
    edit_manifest(folder, lambda manifest: manifest.pop("annotation"))
    assert {"audit", "ids", "other files"} <= failures(check(folder)).keys()


# Card and licence


@pytest.mark.parametrize(
    ("old", "new", "name", "message"),
    [
        ("---\n", "", "card", "no front matter"),
        ("language:\n- en\n", "language: [\n", "card", "not YAML"),
        ("language:\n- en\n", "language:\n- [en]\n", "card", "language lacks en"),
        ("task_ids:\n", "task_other:\n", "card", "lacks task_ids"),
        ("  default: true\n", "", "card", "none as default"),
        ("path: data/test", "path: data/tset", "card", "data_files"),
        ("num_examples: ", "num_examples: 1", "card", "num_examples"),
        ("download_size: ", "download_size: 1", "card", "download_size"),
        ("machine-generated", "by-hand", "card", "annotations_creators"),
        ("n<1K", "1M<n<10M", "card", "size_categories"),
        ("\n## Columns", "\n## Fields", "card", "no section Columns"),
        ("| test | ", "| test | 9", "card", "table of splits"),
        ("| longest choice | most characters | ", "| longest choice | | 9", "card", "audit"),
        ("# WordNet hypernymy", "# {{ title }}", "card", "template syntax"),
        ("license: other", "license: mit", "licence", "not what its sources require"),
        ("Contains text of WordNet", "Has text of WordNet", "licence", "attribution"),
        ("canary GUID ", "canary GUID 0", "canary", "lacks its canary"),
    ],
)
def test_a_card_that_says_otherwise_is_found(
    probe_copy: Probe, old: str, new: str, name: str, message: str
) -> None:
    path = probe_copy(HYPERNYMY) / "README.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    found = [one for one in check(path.parent).failed if one.name == name]
    assert any(message in one.what for one in found), found


def test_no_card_is_found(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    (folder / "README.md").unlink()
    assert "card" in {one.name for one in check(folder).failed}


def test_words_added_by_hand_do_no_harm(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8").replace("\n## Counts", "\nMy own words.\n\n## Counts")
    path.write_text(
        text.replace("tags:\n", "paperswithcode_id: x\ntags:\n- mine\n"), encoding="utf-8"
    )
    assert check(folder).passed


def test_a_mix_of_licences_that_cannot_be_blocks(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)

    def change(manifest: dict[str, Any]) -> None:
        manifest["knowledge_base"]["licence"] = "GPL-3.0-or-later AND CC-BY-SA-3.0"

    edit_manifest(folder, change)
    assert "no licence suits both" in failures(check(folder))["licence"]


# The command


def run(*words: str | Path) -> tuple[int, str, str]:
    with (
        redirect_stdout(StringIO()) as output,
        redirect_stderr(StringIO()) as errors,
        pytest.raises(SystemExit) as ended,
    ):
        main([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code, output.getvalue(), errors.getvalue()


def test_the_command_tells_and_exits(probe_copy: Probe) -> None:
    folder = probe_copy(HYPERNYMY)
    code, output, _ = run("check", folder)
    assert code == 0
    assert "ready to be released" in output
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert run("check", folder)[0] == 0
    assert run("check", folder, "--strict")[0] == 1
    edit_manifest(folder, flagged)
    code, output, _ = run("check", folder, "--json")
    assert code == 1
    told = json.loads(output)
    assert not told["passed"]
    assert [one["verdict"] for one in told["findings"] if one["name"] == "audit"] == ["failed"]


def test_the_command_names_what_is_no_probe(tmp_path: Path) -> None:
    code, _, errors = run("check", tmp_path)
    assert code == 2
    assert "holds no built probe" in errors
    assert "Traceback" not in errors
