"""Questions are read as they are published, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.items.own_schema import in_schema, read_parquet, row_questions, table_questions
from evaluation.items.rows import Records, read_json
from evaluation.items.sources import open_probe
from evaluation.items.types import ABOUT, Item, SplitQuestions, arguments_type, fingerprint
from kbprobe.columns import arrow_type
from kbprobe.errors import KbprobeError, UsageError
from tests.manifests import toy_manifest

DATA = Path(__file__).parent / "data"
REPOSITORY = Path(__file__).resolve().parents[2]
SPLITS = ("train", "validation", "test")

Row = dict[str, Any]


def row(name: str = "q1", **changes: Any) -> Row:
    """A sound row in the form of ARC on the Hub."""
    return {
        "id": name,
        "question": "Which of these is a source of light?",
        "choices": {"text": ["the Moon", "the Sun", "a mirror"], "label": ["A", "B", "C"]},
        "answerKey": "B",
        **changes,
    }


def own_row(name: str = "q1", **changes: Any) -> Row:
    """A sound row in kbprobe's own schema, as far as evaluation reads it."""
    about = {"cluster": "sun.n.01", "hops": 1, "distractor_family": "sister", "pos": "noun"}
    more = {"distractor_hops": 2, "template": "plain", "concept": "sun.n.01"}
    return row(name, answer=1, setup="mc_qa") | about | more | changes


def write_rows(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in rows), encoding="utf-8")
    return path


def refusal(source: Path | str, **asked: Any) -> str:
    with pytest.raises(KbprobeError) as caught:
        open_probe(str(source), **asked)
    return str(caught.value)


def read_rows(*rows: Any) -> tuple[Item, ...]:
    return tuple(row_questions(Records("line", enumerate(rows, 1)), "rows").items)


# Built probes.


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, open_wordnet: Callable[[], str]
) -> Mapping[str, Path]:
    """One small build of a real probe, as Parquet and as JSON lines."""
    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    parent = tmp_path_factory.mktemp("built")
    probe = find_probe("wordnet_hypernymy")
    asked = {"limit": 150, "wordnet": open_wordnet(), "split_shares": (0.2, 0.2, 0.6)}
    options = probe.options.parse(asked, probe.name)
    request = Request(probe, options, audit=False)
    done = build(request)
    write(done, parent / "parquet")
    write(replace(done, request=replace(request, format="jsonl")), parent / "jsonl")
    return {form: parent / form for form in ("parquet", "jsonl")}


@pytest.mark.parametrize("split", SPLITS)
def test_a_built_probe_is_read_alike_from_parquet_and_json_lines(
    built: Mapping[str, Path], split: str
) -> None:
    parquet, jsonl = (open_probe(str(built[form]), split=split) for form in ("parquet", "jsonl"))
    assert parquet.items == jsonl.items
    assert parquet.about.to_pylist() == jsonl.about.to_pylist()
    assert parquet.arguments is not None
    assert parquet.arguments.equals(jsonl.arguments)
    assert parquet.fingerprint == jsonl.fingerprint == fingerprint(parquet.items)
    assert parquet.name == "wordnet_hypernymy"
    assert parquet.split == split
    assert parquet.clustered
    assert parquet.manifest is not None
    assert parquet.manifest.probe == "wordnet_hypernymy"
    for opened in (parquet, jsonl):
        assert {f.name: str(f.type) for f in opened.about.schema} == ABOUT


def test_a_built_probe_says_what_its_files_say(built: Mapping[str, Path]) -> None:
    opened = open_probe(str(built["parquet"]))
    (path,) = (built["parquet"] / "data").glob("test-*")
    rows = pq.read_table(path).to_pylist()
    assert len(opened.items) == len(rows) > 10
    assert opened.arguments is not None
    assert opened.arguments.to_pylist() == [row["arguments"] for row in rows]
    assert opened.take([3, 1]).arguments.to_pylist() == [rows[at]["arguments"] for at in (3, 1)]
    for item, about, told in zip(opened.items, opened.about.to_pylist(), rows, strict=True):
        assert (item.id, item.setup, item.question) == (told["id"], told["setup"], told["question"])
        assert item.choices == tuple(told["choices"]["text"])
        assert item.answer == told["answer"]
        assert about == {name: told.get(name) for name in ABOUT}


def test_built_parquet_is_taken_as_columns(built: Mapping[str, Path]) -> None:
    (path,) = (built["parquet"] / "data").glob("test-*")
    assert in_schema(read_parquet([path]))


def test_a_manifest_stands_for_its_folder(built: Mapping[str, Path]) -> None:
    folder = built["parquet"]
    assert open_probe(str(folder / "manifest.json")).items == open_probe(str(folder)).items


def test_only_the_split_asked_for_need_be_undamaged(
    built: Mapping[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "probe"
    shutil.copytree(built["jsonl"], folder)
    train = folder / "data" / "train.jsonl"
    train.write_text(train.read_text().replace("e", "a", 1))
    assert open_probe(str(folder), split="test").items
    message = refusal(folder, split="train")
    assert "data/train.jsonl differs from its checksum" in message
    assert "Build the probe again" in message
    train.unlink()
    assert "data/train.jsonl is missing" in refusal(folder, split="train")


def test_an_unknown_split_names_those_that_exist(built: Mapping[str, Path]) -> None:
    message = refusal(built["parquet"], split="tets")
    assert "It has: test, train, validation." in message
    assert "Did you mean 'test'?" in message


def test_dev_and_validation_are_one(built: Mapping[str, Path]) -> None:
    opened = open_probe(str(built["parquet"]), split="dev")
    assert opened.split == "validation"


def test_configs_of_a_built_probe(built: Mapping[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    shutil.copytree(built["jsonl"], folder)
    # A config listed in the manifest of the whole, and one that is a probe of its own.
    (folder / "no_language" / "data").mkdir(parents=True)
    shutil.copy(folder / "data" / "test.jsonl", folder / "no_language" / "data")
    manifest = json.loads((folder / "manifest.json").read_text())
    entry = next(entry for entry in manifest["files"] if entry["split"] == "test")
    manifest["files"].append({**entry, "path": "no_language/data/test.jsonl"})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(built["jsonl"], folder / "perturbed")

    default = open_probe(str(folder), config="default")
    assert default.name == "wordnet_hypernymy"
    for config in ("no_language", "perturbed"):
        opened = open_probe(str(folder), config=config)
        assert opened.items == default.items
        assert opened.name == f"wordnet_hypernymy-{config}"
        assert opened.manifest is None, "the audit is of the default config"
    assert "It has: default, no_language." in refusal(folder, config="no_langauge")
    assert "has no split 'train'" in refusal(folder, config="no_language", split="train")


@pytest.mark.parametrize("files", [[{"path": "x"}], ["data/test.jsonl"], [{}]])
def test_a_manifest_that_lists_nonsense_is_refused(tmp_path: Path, files: list[Any]) -> None:
    manifest = toy_manifest("p", files)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert "it is damaged: files.0" in refusal(tmp_path)


@pytest.mark.slow
def test_a_dataset_in_memory_keeps_its_audit(tmp_path: Path) -> None:
    """What `kbprobe.build` and `kbprobe.load` return is evaluated with the audit's baselines."""
    import kbprobe

    folder = tmp_path / "probe"
    made = kbprobe.build("age_comparison", limit=200, output=folder)
    in_folder = open_probe(str(folder)).manifest
    assert in_folder is not None
    assert in_folder.audit is not None
    for source in (made, made["test"], kbprobe.load(folder), kbprobe.load(folder)["test"]):
        opened = open_probe(source)
        assert opened.split == "test"
        assert opened.manifest is not None
        assert opened.manifest.audit == in_folder.audit
    assert open_probe(made["test"].select(range(3))).manifest is None


def test_a_dataset_in_memory_reads_as_its_folder(built: Mapping[str, Path]) -> None:
    from kbprobe.format.dataset import load

    dataset = load(built["parquet"])
    opened, folder = open_probe(dataset), open_probe(str(built["parquet"]))
    assert opened.items == folder.items
    assert opened.about.equals(folder.about)
    assert opened.fingerprint == folder.fingerprint
    assert opened.source == f"memory:{folder.fingerprint[:16]}"
    assert open_probe(dataset, split="dev").split == "validation"
    assert open_probe(dataset["train"]).split == "train"
    with pytest.raises(UsageError, match=r"It has: test, train, validation\."):
        open_probe(dataset, split="tets")
    with pytest.raises(UsageError, match=r"is one split \(train\); it has no split 'validation'"):
        open_probe(dataset["train"], split="validation")
    with pytest.raises(UsageError, match="has no config 'perturbed'"):
        open_probe(dataset, config="perturbed")


# Published files.


def test_olmpics_mc_mlm_is_read_to_the_letter() -> None:
    opened = open_probe(str(DATA / "olmpics" / "age_comparison_dev.jsonl"))
    assert opened.name == "age_comparison"
    assert opened.split == "dev"
    assert opened.manifest is None
    assert opened.items[1] == Item(
        id="dbcd5840600b00f067e7a66fcf3423e2",
        setup="mc_mlm",
        question="A 33 year old person age is [MASK] than a 18 year old person .",
        choices=("younger", "older"),
        answer=1,
    )


def test_a_question_repeated_in_a_published_file_is_scored_as_often() -> None:
    opened = open_probe(str(DATA / "olmpics" / "age_comparison_dev.jsonl"))
    first, last = opened.items[0], opened.items[3]
    assert (last.id, last.question) == (f"{first.id}#2", first.question)
    assert last.choices[last.answer] == first.choices[first.answer] == "younger"
    assert not opened.clustered
    assert opened.about["cluster"].to_pylist() == [item.id for item in opened.items]


def test_olmpics_mc_qa() -> None:
    opened = open_probe(str(DATA / "olmpics" / "property_conjunction_dev.jsonl"))
    assert [item.setup for item in opened.items] == ["mc_qa", "mc_qa"]
    assert [item.choices[item.answer] for item in opened.items] == ["knife", "wood"]


def test_wordnet_qa_tells_clusters_hops_and_families() -> None:
    opened = open_probe(str(DATA / "wordnet_qa" / "hypernymy"), split="test")
    assert opened.name == "hypernymy"
    assert opened.clustered
    assert opened.about.to_pydict() == {
        "cluster": ["dog.n.01", "dog.n.01", "whisper.v.01"],
        "hops": [1, 2, 1],
        "distractor_family": ["random", "sister", "sister"],
        "distractor_hops": [0, 1, 2],
        "pos": ["noun", "noun", "verb"],
        "content": [None] * 3,
        "template": [None, None, None],
        "concept": ["dog.n.01", "dog.n.01", "whisper.v.01"],
        "fold": [None, None, None],
        "choice_hops": [None, None, None],
        "choice_families": [None, None, None],
        "surface_form": [None, None, None],
    }
    assert {f.name: str(f.type) for f in opened.about.schema} == ABOUT
    dev = open_probe(str(DATA / "wordnet_qa" / "hypernymy"), split="validation")
    assert (dev.split, dev.about["pos"].to_pylist()) == ("dev", ["adjective"])


def test_dictionary_qa_has_integers_for_ids_labels_and_answers() -> None:
    opened = open_probe(str(DATA / "dictionary_qa" / "dev.jsonl"))
    assert opened.name == "dictionary_qa"
    assert [(item.id, item.answer) for item in opened.items] == [("1204", 1), ("77", 0)]
    assert opened.about["cluster"].to_pylist() == ["bank.n.2", "bank.v.4"]
    assert opened.about["hops"].to_pylist() == [0, 0]
    # The file writes 0 in every row, and no family.
    assert opened.about["distractor_hops"].to_pylist() == [None, None]


def test_arc_as_first_published() -> None:
    opened = open_probe(str(DATA / "arc" / "ARC-Challenge-Test.jsonl"))
    assert (opened.name, opened.split) == ("ARC-Challenge", "test")
    assert [item.choices[item.answer] for item in opened.items] == ["the Sun", "freezing"]


@pytest.mark.parametrize(
    ("labels", "key", "answer"),
    [
        (["A", "B", "C"], "C", 2),
        (["A", "B", "C"], 2, 2),
        (["1", "2", "3"], "2", 1),
        (["1", "2", "3"], 2, 1),
        ([1, 2, 3], "3", 2),
        ([0, 1, 2], 0, 0),
        (["C", "A", "B"], "A", 1),
    ],
)
def test_answers_are_labels_or_indices(labels: list[Any], key: Any, answer: int) -> None:
    choices = {"text": ["x", "y", "z"], "label": labels}
    assert read_rows(row(choices=choices, answerKey=key))[0].answer == answer


def test_every_shape_of_a_row_reads_alike() -> None:
    plain = row()
    texts, labels = plain["choices"]["text"], plain["choices"]["label"]
    listed = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    stem, key = plain["question"], plain["answerKey"]
    shapes = [
        plain,
        {"id": "q1", "question": stem, "choices": listed, "answerKey": key},
        {"id": "q1", "question": {"stem": stem, "choices": listed}, "answerKey": key},
        {"id": "q1", "question": {"stem": stem, "choices": plain["choices"]}, "answerKey": key},
        {"id": "q1", "question_stem": stem, "choices": plain["choices"], "answerKey": key},
    ]
    assert len({read_rows(shape) for shape in shapes}) == 1


# Files and folders.


def test_a_file_may_be_gzipped_a_json_list_or_come_from_windows(tmp_path: Path) -> None:
    rows = [row("q1"), row("q2", question="Où?")]
    expected = read_rows(*rows)
    lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in rows)
    text = json.dumps(rows, indent=2)
    forms = {
        "lines.jsonl": lines.encode(),
        "bom.jsonl": b"\xef\xbb\xbf" + lines.encode(),
        "windows.jsonl": lines.replace("\n", "\r\n").encode(),
        "gaps.jsonl": lines.replace("\n", "\n\n \n").encode(),
        "unended.jsonl": lines.rstrip().encode(),
        "list.json": text.encode(),
        "list_bom.json": b"\xef\xbb\xbf\n " + text.encode(),
        "zipped.jsonl.gz": gzip.compress(lines.encode()),
        "zipped.json.gz": gzip.compress(text.encode()),
    }
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        opened = open_probe(str(tmp_path / name))
        assert opened.items == expected, name
        assert (opened.name, opened.split) == (name.partition(".")[0], "all")


def test_separators_within_text_do_not_end_a_line(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0cfour"
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(row(question=text), ensure_ascii=False) + "\n", encoding="utf-8")
    assert open_probe(str(path)).items[0].question == text


def test_a_parquet_file_alone(built: Mapping[str, Path], tmp_path: Path) -> None:
    (path,) = (built["parquet"] / "data").glob("test-*")
    copied = shutil.copy(path, tmp_path / "verbs-test-00000-of-00001.parquet")
    opened = open_probe(str(copied))
    assert (opened.name, opened.split) == ("verbs", "test")
    assert opened.items == open_probe(str(built["parquet"])).items


def test_shards_are_one_split(tmp_path: Path) -> None:
    for part, name in enumerate(("q1", "q2")):
        table = pa.Table.from_pylist([row(name)])
        pq.write_table(table, tmp_path / f"test-0000{part}-of-00002.parquet")
    opened = open_probe(str(tmp_path))
    assert [item.id for item in opened.items] == ["q1", "q2"]
    assert opened.name == tmp_path.name
    pq.write_table(table.drop_columns("id"), tmp_path / "test-00001-of-00002.parquet")
    assert "do not have the same columns" in refusal(tmp_path)


@pytest.mark.posix
def test_a_pipe_is_not_said_to_be_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test.parquet")
    with pytest.raises(UsageError, match=r"test\.parquet is neither a plain file nor a folder"):
        open_probe(tmp_path / "test.parquet")


@pytest.mark.posix
@pytest.mark.parametrize("name", ["manifest.json", "test.jsonl"])
def test_a_pipe_in_a_folder_is_not_passed_over(name: str, tmp_path: Path) -> None:
    """What else the folder holds would be read as the probe, or another split as the test's."""
    (tmp_path / "validation.jsonl").write_text(json.dumps(row()) + "\n", encoding="utf-8")
    os.mkfifo(tmp_path / name)
    with pytest.raises(KbprobeError, match=rf"{name}.* not a plain file"):
        open_probe(tmp_path)


def test_a_single_file_is_one_split() -> None:
    path = DATA / "olmpics" / "age_comparison_dev.jsonl"
    assert open_probe(str(path), split="validation").items
    message = refusal(path, split="train")
    assert "is one split (dev); it has no split 'train'" in message
    assert "has no configs" in refusal(path, config="x")


def test_a_folder_of_several_probes_asks_for_one() -> None:
    folder = DATA / "olmpics"
    message = refusal(folder, split="dev")
    assert "Name one as config: age_comparison, property_conjunction" in message
    opened = open_probe(str(folder), config="age_comparison", split="train")
    assert (opened.name, opened.split, len(opened.items)) == ("age_comparison", "train", 3)
    message = refusal(folder, config="age_comparisons")
    assert "Did you mean 'age_comparison'?" in message
    assert "It has: dev." in refusal(folder, config="property_conjunction")


def test_a_config_may_be_a_folder_within_the_folder() -> None:
    opened = open_probe(str(DATA / "wordnet_qa"), config="hypernymy", split="train")
    assert opened.about["concept"].to_pylist() == ["oak.n.02"]


def test_a_split_held_twice_is_not_guessed(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", row())
    write_rows(tmp_path / "data" / "test.json", row())
    assert "Several files hold the split test" in refusal(tmp_path)


def test_a_folder_without_rows(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert "holds no probe" in refusal(tmp_path)


def test_the_card_of_a_folder_decides_its_configs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "json"  # also the name of a format of datasets
    write_rows(folder / "easy" / "rows_a.jsonl", row("q1"))
    write_rows(folder / "hard" / "rows_b.jsonl", row("q2"), row("q3", answerKey=None))
    write_rows(folder / "hard" / "rows_c.jsonl", row("q2"))
    card = """---
configs:
- config_name: easy
  data_files: [{split: test, path: easy/rows_a.jsonl}]
- config_name: hard
  data_files: [{split: test, path: hard/rows_b.jsonl}, {split: validation, path: hard/rows_c.jsonl}]
---
"""
    (folder / "README.md").write_text(card)
    opened = open_probe(str(folder), config="easy")
    assert opened.items == read_rows(row("q1"))
    assert (opened.name, opened.split) == ("json-easy", "test")
    assert open_probe(str(folder), config="hard", split="dev").split == "validation"
    assert "It has: test, validation." in refusal(folder, config="hard", split="train")
    assert "has several configs. Name one of: easy, hard" in refusal(folder)
    assert "It has: easy, hard." in refusal(folder, config="medium")
    assert "1 of 2 rows have no answer yet (the first at row 2)" in refusal(folder, config="hard")


# What is refused.

BAD: list[tuple[Any, str]] = [
    (["id"], "item 1: the text 'id' where an object with id, question, choices should be"),
    ("q1", "line 1: the text 'q1' where an object"),
    (None, "line 1: null where an object"),
    ({}, "line 1: answerKey is missing"),
    (row(question=None), "question is missing"),
    (row(question=5), "question is the number 5, not text"),
    (row(question=" \n"), "question is empty"),
    (row(question="a \ud800"), "question holds half a character"),
    (row(question={"choices": []}), "question is missing"),
    (row(question={"stem": "x"}), "choices.text are missing"),
    (row(choices=None), "choices.text are missing"),
    (row(choices="A B"), "choices are the text 'A B', not a list"),
    (row(choices=["a", "b"]), "choices[0] is the text 'a', not an object"),
    (row(choices=[]), "choices.text are fewer than 2 (got [])"),
    (row(choices=[{"text": "x", "label": "B"}]), "choices.text are fewer than 2 (got ['x'])"),
    (row(choices={"text": ["x", "y"], "label": "AB"}), "choices must hold two lists"),
    (
        row(choices={"text": ["x", "y"], "label": ["A"]}),
        "choices hold another number of labels than of texts",
    ),
    (
        row(choices={"text": ["x", " "], "label": ["A", "B"]}),
        "choices.text hold an empty text (got ['x', ' '])",
    ),
    (row(choices={"text": ["x", None], "label": ["A", "B"]}), "choices.text hold a null"),
    (
        row(choices={"text": ["x", float("nan")], "label": ["A", "B"]}),
        "text[1] is the number nan, not text",
    ),
    (row(choices={"text": ["x", 1962], "label": ["A", "B"]}), "is the number 1962, not text"),
    (
        row(choices={"text": ["x", "y"], "label": ["B", "B"]}),
        "choices.label are not all different (got ['B', 'B'])",
    ),
    (row(choices={"text": ["x", "y"], "label": ["A", None]}), "choices.label hold a null"),
    (row(choices={"text": ["x", "y"], "label": ["A", True]}), "label[1] is true, not text"),
    (row(choices={"text": ["y", "y"], "label": ["A", "B"]}), "hold the gold twice"),
    (
        own_row(choices={"text": ["x", "y", "y"], "label": ["A", "B", "C"]}),
        "and no choice could be called right (got ['x', 'y', 'y'])",
    ),
    (row(answerKey="E"), "answerKey is 'E', which is not among the labels A, B, C"),
    (row(answerKey="b"), "answerKey is 'b', which is not among the labels"),
    (row(answerKey=3), "answerKey is 3; the 3 choices are 0 to 2"),
    (row(answerKey=True), "answerKey is true, not a label"),
    (row(answerKey=1.0), "answerKey is the number 1.0, not a label"),
    (row(answerKey=["B"]), "answerKey is a list, not a label"),
    ({k: v for k, v in row().items() if k != "answerKey"}, "answerKey is missing"),
    (row(id=None), "id is missing"),
    (row(id=""), "id is empty"),
    (row(id=1.5), "id is the number 1.5, not text"),
    (
        row(question="[MASK] or [MASK]?"),
        "question must show [MASK] exactly once (got '[MASK] or [MASK]?')",
    ),
    (own_row(setup="mc_mlm"), "question must show [MASK] exactly once"),
    (own_row(setup="rank"), "setup is none of mc_qa, mc_mlm, acceptability, nli (got 'rank')"),
    (own_row(setup="nli"), "premise is missing"),
    (own_row(setup="nli", premise="It rains."), "hypothesis is missing"),
    (
        own_row(setup="acceptability"),
        "must be the labels of acceptability: unacceptable, acceptable",
    ),
    (own_row(setup=["mc_qa"]), "setup is a list, not text"),
    (own_row(answer=3), "answer is not the index of a choice (got 3)"),
    (own_row(answer="1"), "answer is the text '1', not the index of a choice"),
    (own_row(answer=2), "answerKey is not the label of answer (got 'B')"),
    (own_row(hops="1"), "hops is '1', not a number from 0"),
    (own_row(hops=2**31), "hops is 2147483648, not a number from 0"),
    (own_row(cluster=["x"]), "cluster is a list, not text"),
    (row(notes={"hops": -1}), "hops must be a number from 0 (got -1)"),
    (row(notes={"gold_synset": 5}), "gold_synset is the number 5, not text"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message for _, message in BAD])
def test_a_malformed_row_is_named(tmp_path: Path, bad: Any, message: str) -> None:
    found = refusal(write_rows(tmp_path / "dev.jsonl", bad))
    assert message in found
    assert "1 of 1 rows cannot be scored" in found
    assert str(tmp_path / "dev.jsonl") in found


def test_a_repeated_distractor_is_allowed() -> None:
    choices = {"text": ["NaT", "1962", "NaT"], "label": ["A", "B", "C"]}
    assert read_rows(row(choices=choices))[0].choices == ("NaT", "1962", "NaT")


def test_nothing_is_scored_on_the_rows_that_are_well(tmp_path: Path) -> None:
    rows = [row(f"q{i}", answerKey="E" if i % 2 else "A") for i in range(40)]
    found = refusal(write_rows(tmp_path / "dev.jsonl", *rows)).splitlines()
    assert found[0].endswith("20 of 40 rows cannot be scored:")
    assert [line.split(":")[0].strip() for line in found[1:6]] == [
        f"line {i}" for i in (2, 4, 6, 8, 10)
    ]
    assert found[6] == "  and 15 more"
    assert len(found) == 8


@pytest.mark.parametrize("missing", [{"answerKey": ""}, {"answerKey": None}, {"answerKey": -1}])
def test_rows_without_answers_are_counted_and_refused(
    tmp_path: Path, missing: dict[str, Any]
) -> None:
    found = refusal(write_rows(tmp_path / "x.jsonl", row(), row("q2", **missing)))
    assert "1 of 2 rows have no answer yet (the first at line 2)" in found
    assert "the index of the right choice" in found


def test_own_rows_without_answers(tmp_path: Path) -> None:
    rows = [own_row(answer=-1, answerKey=""), own_row("q2", answer=-1, answerKey="")]
    assert "2 of 2 rows have no answer yet" in refusal(write_rows(tmp_path / "x.jsonl", *rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert "2 of 2 rows have no answer yet" in refusal(tmp_path / "x.parquet")


def test_two_questions_under_one_id_are_both_scored() -> None:
    items = read_rows(row("q1"), row("q2"), row("q1", question="Another?"))
    assert [item.id for item in items] == ["q1", "q2", "q1#2"]
    assert items[2].question == "Another?"


def test_words_about_splits_are_no_names(tmp_path: Path) -> None:
    folder = tmp_path / "commonsense_qa"
    folder.mkdir()
    write_rows(folder / "dev_rand_split.jsonl", row())
    found = open_probe(str(folder), split="validation")
    assert (found.name, found.split) == ("commonsense_qa", "dev")


def test_copies_of_the_gold_are_left_out_and_counted(tmp_path: Path) -> None:
    copied = row("q2", choices={"text": ["y", "x", "y"], "label": ["A", "B", "C"]}, answerKey="C")
    found = open_probe(str(write_rows(tmp_path / "test.jsonl", row(), copied)))
    assert found.items[1].choices == ("x", "y")
    assert found.items[1].answer == 1
    assert found.notes == {"gold_copies": 1}


def test_numbers_given_to_repeated_rows_are_not_taken_already() -> None:
    items = read_rows(row("q"), row("q#2"), row("q"), row("q"))
    assert [item.id for item in items] == ["q", "q#2", "q#3", "q#4"]


def test_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    good = json.dumps(row()).encode()
    deep = b'{"id": ' + b"[" * 100_000 + b"}"
    path.write_bytes(b"\n".join([good, b'{"id": "q\xe9"}', b"{'id': 1}", deep, b'{"id"']))
    found = refusal(path)
    assert "4 of 5 rows cannot be scored" in found
    assert "line 2: not UTF-8: byte 10 is 0xe9" in found
    assert "line 3: not JSON: Expecting property name" in found
    assert "line 4: not JSON that can be read: nested too deeply" in found
    assert "line 5: not JSON: Expecting ':' delimiter at character 6" in found


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b"", "holds no rows"),
        ("x.jsonl", b"\xef\xbb\xbf\n \n", "holds no rows"),
        ("x.json", b"[]", "holds no rows"),
        ("x.jsonl", '{"id": 1}'.encode("utf-16"), "is UTF-16. Save it as UTF-8."),
        ("x.json", b'[{"id": 1},\n]', "not JSON: Illegal trailing comma before end of array"),
        ("x.json", b"[[", "must be one JSON list, or an object a line"),
        ("x.jsonl.gz", b"plain", "cannot be read"),
        ("x.jsonl.gz", gzip.compress(b"x" * 99, mtime=0)[:-12], "cannot be read"),
        ("x.parquet", b"PAR1 no", "cannot be read as Parquet"),
        ("x.csv", b"id,question", "its name must end in one of"),
    ],
)
def test_files_that_are_not_what_they_seem(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    if sys.version_info < (3, 13):
        message = message.replace("Illegal trailing comma before end of array", "Expecting value")
    (tmp_path / name).write_bytes(content)
    assert message in refusal(tmp_path / name)


def test_parquet_rows_are_named_too(tmp_path: Path) -> None:
    rows = [own_row("q1"), own_row("q2", answerKey="C"), own_row("q3", question=None)]
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    found = refusal(path)
    assert "row 2: answerKey is not the label of answer (got 'C')" in found
    assert "row 3: question is missing" in found


def test_parquet_text_that_is_not_utf8(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()])
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    pq.write_table(table.set_column(1, "question", broken), tmp_path / "test.parquet")
    assert "text that is not UTF-8" in refusal(tmp_path / "test.parquet")


# Sources that are not there.


def test_missing_paths_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probes" / "wordnet_hypernymy").mkdir(parents=True)
    assert "Did you mean 'probes/wordnet_hypernymy'?" in refusal("wordnet_hypernymy")
    found = refusal("probes/wordnet_hypernimy")
    assert "Did you mean 'probes/wordnet_hypernymy'?" in found
    found = refusal("probes/age_comparison")
    assert "There is no file or folder 'probes/age_comparison'" in found
    assert "build-probe age_comparison -o probes/age_comparison" in found
    assert "HF_HUB_OFFLINE" in found
    assert "is named org/name" in refusal("./probes/none")
    for odd in ("", " ", "\0", "a" * 5_000, "a/b/c", "a/b.jsonl", "../x", "https://x/y"):
        with pytest.raises(UsageError):
            open_probe(odd)


# The Hub.

LIGHTS = toy_manifest(
    "lights",
    [{"path": "data/train.jsonl", "split": "train", "rows": 1, "bytes": 9, "sha256": "0" * 64}],
)

REVISION = "1" * 40
HUB_FILES = {
    "README.md": b"""---
configs:
- config_name: default
  data_files: [{split: train, path: data/train.jsonl}, {split: validation, path: data/dev.jsonl}]
---
""",
    "data/train.jsonl": json.dumps(row("q1")).encode() + b"\n",
    "data/dev.jsonl": json.dumps(row("q2")).encode() + b"\n",
    "manifest.json": json.dumps(LIGHTS).encode(),
}


class FakeHub(BaseHTTPRequestHandler):
    """As much of the Hub as it takes to load one dataset, org/suns."""

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        for revision in ("main", REVISION):
            if path.startswith(start := f"/datasets/org/suns/resolve/{revision}/"):
                content = HUB_FILES.get(path.removeprefix(start))
                return self.reply(content, "EntryNotFound")
        if path.startswith("/api/datasets/org/suns/revision/"):
            siblings = [{"rfilename": name} for name in HUB_FILES]
            return self.reply_json({"id": "org/suns", "sha": REVISION, "siblings": siblings})
        if path.startswith(f"/api/datasets/org/suns/tree/{REVISION}/data"):
            files = [name for name in HUB_FILES if name.startswith("data/")]
            return self.reply_json([self.entry(name) for name in files])
        return self.reply(None, "RepoNotFound")

    do_HEAD = do_GET

    def entry(self, name: str) -> dict[str, Any]:
        return {"type": "file", "oid": "0" * 40, "size": len(HUB_FILES[name]), "path": name}

    def reply_json(self, value: Any) -> None:
        self.reply(json.dumps(value).encode(), "")

    def reply(self, content: bytes | None, missing: str) -> None:
        self.send_response(404 if content is None else 200)
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{hash(content) & 0xFFFFFFFF:040x}"')
        self.send_header("Content-Length", str(len(content or b"")))
        if content is None:
            self.send_header("X-Error-Code", missing)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content or b"")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


ASK_HUB = """
import json, sys
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError
for source, asked in json.loads(sys.argv[1]):
    try:
        opened = open_probe(source, **asked)
        items = [[item.id, item.answer] for item in opened.items]
        manifest = opened.manifest and opened.manifest.content
        print(json.dumps([opened.name, opened.split, items, manifest]))
    except KbprobeError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""


def ask_hub(environment: Mapping[str, str], *questions: tuple[str, dict[str, str]]) -> list[Any]:
    """Open probes in a process of its own: the Hub's address is read at import."""
    environment = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
    command = [sys.executable, "-c", ASK_HUB, json.dumps(questions)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=kept | environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_probe_on_the_hub(hub: str, tmp_path: Path) -> None:
    online = {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path)}
    good, split, config, missing = ask_hub(
        online,
        ("org/suns", {"split": "dev"}),
        ("org/suns", {"split": "test"}),
        ("org/suns", {"split": "dev", "config": "hard"}),
        ("org/moons", {}),
    )
    assert good == ["lights", "validation", [["q2", 1]], LIGHTS]
    assert split == "UnknownSplit: org/suns has no split 'test'. It has: train, validation."
    assert config == "UsageError: org/suns has no config 'hard'. It has: default."
    assert missing.startswith("UsageError: There is no file or folder 'org/moons'.")
    assert "doesn't exist on the Hub" in missing

    cached, unknown = ask_hub(
        {**online, "HF_HUB_OFFLINE": "1"}, ("org/suns", {"split": "dev"}), ("org/moons", {})
    )
    assert cached == good
    assert unknown.startswith("KbprobeError: There is no file or folder 'org/moons'.")
    assert "offline mode is on (HF_HUB_OFFLINE), and it has not been loaded before" in unknown


# Any row, and any nonsense.

LABELS = "ABCDEFGH"
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@st.composite
def rows_and_items(draw: st.DrawFn) -> tuple[Row, Item]:
    """A sound row in any published shape, and the item that it must become."""
    choices = draw(st.lists(texts, min_size=2, max_size=5, unique=True))
    answer = draw(st.integers(0, len(choices) - 1))
    stem = draw(texts.filter(lambda text: "[MASK]" not in text))
    setup = draw(st.sampled_from(["mc_qa", "mc_mlm"]))
    if setup == "mc_mlm":
        stem = f"{stem}[MASK]{draw(st.sampled_from(['', ' ', ' .', '  x']))}"
    labels: list[Any] = draw(
        st.sampled_from([list(LABELS), list("01234567"), list(range(8)), list("12345678")])
    )[: len(choices)]
    key: Any = draw(st.sampled_from([labels[answer], str(labels[answer])]))
    if labels[0] == "A":
        key = draw(st.sampled_from([key, answer]))
    pairs = zip(choices, labels, strict=True)
    given: Any = [{"text": text, "label": label} for text, label in pairs]
    if draw(st.booleans()):
        given = {"text": choices, "label": labels}
    name = draw(st.one_of(st.integers(), texts))
    whole = {"id": name, "question": {"stem": stem, "choices": given}, "answerKey": key}
    if draw(st.booleans()):
        whole = {"id": name, "question": stem, "choices": given, "answerKey": key}
    return whole, Item(str(name), setup, stem, tuple(choices), answer)


@pytest.mark.slow
@given(st.lists(rows_and_items(), min_size=1, max_size=5, unique_by=lambda pair: pair[1].id))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_sound_row_survives_the_way_through_a_file(
    tmp_path: Path, pairs: list[tuple[Row, Item]]
) -> None:
    path = write_rows(tmp_path / "rows.jsonl", *[given for given, _ in pairs])
    opened = open_probe(str(path))
    assert opened.items == tuple(item for _, item in pairs)
    assert len(opened.about) == len(pairs)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from([*own_row(), "notes", "question_stem"])
NOTES = st.sampled_from(["gold_synset", "hops", "distractor_type", "distractor_hops", "pos"])
hostile_notes = st.dictionaries(NOTES, json_values)
hostile_rows = json_values | st.dictionaries(FIELDS, json_values | hostile_notes).map(
    lambda changes: own_row() | changes
)


@given(st.lists(hostile_rows, max_size=3))
def test_no_json_crashes_the_reader(rows: list[Any]) -> None:
    try:
        items = read_rows(*rows)
    except KbprobeError:
        return
    assert len({item.id for item in items}) == len(items) == len(rows)
    for item in items:
        assert item.question.strip()
        assert all(choice.strip() for choice in item.choices)
        assert item.choices.count(item.choices[item.answer]) == 1
        assert item.setup == "mc_qa" or item.question.count("[MASK]") == 1


@given(st.binary(max_size=60) | st.text('{}[]":,1eidqANUL \n\\u').map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_crash_the_reader(tmp_path: Path, content: bytes) -> None:
    for name in ("rows.jsonl", "rows.json.gz", "rows.parquet"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(KbprobeError):
            open_probe(str(tmp_path / name))


changes = st.fixed_dictionaries(
    {},
    optional={
        "question": st.sampled_from(["", " ", "[MASK]", "[MASK][MASK]", "é?", None]),
        "answer": st.sampled_from([-1, 0, 1, 2, 3, None]),
        "answerKey": st.sampled_from(["A", "B", "", None]),
        "setup": st.sampled_from(["mc_qa", "mc_mlm", "nli", None]),
        "cluster": st.sampled_from(["", " ", "x", None]),
        "hops": st.sampled_from([-1, 0, 3, None]),
        "pos": st.sampled_from(["", "verb", None]),
        "choice_hops": st.sampled_from([[1, 2], [1, -1], [1, None], [], None]),
        "choice_families": st.sampled_from([["gold", "near"], ["gold", None], [], None]),
        "id": st.sampled_from(["q", "", None]),
        "arguments": st.sampled_from(
            [[], [{"name": "a", "value": "1"}], [{"name": "a", "value": None}], [None], None]
        ),
        "choices": st.sampled_from(
            [
                {"text": ["x", "y"], "label": ["A", "B"]},
                {"text": ["y", "y"], "label": ["A", "B"]},
                {"text": ["x", "y", "x"], "label": ["A", "B", "C"]},
                {"text": ["x", "y"], "label": ["B", "A"]},
                {"text": ["x", "y"], "label": ["A"]},
                {"text": ["x"], "label": ["A"]},
                {"text": ["x", None], "label": ["A", "B"]},
                {"text": ["x", ""], "label": ["A", "B"]},
                {"text": [], "label": []},
                {"text": None, "label": ["A"]},
                None,
            ]
        ),
    },
)
OWN_TYPES = pa.schema(
    [
        ("id", pa.string()),
        ("question", pa.string()),
        (
            "choices",
            pa.struct([("text", pa.list_(pa.string())), ("label", pa.list_(pa.string()))]),
        ),
        ("answer", pa.int32()),
        ("answerKey", pa.string()),
        ("setup", pa.string()),
        *[(name, arrow_type(kind)) for name, kind in ABOUT.items()],
        ("arguments", arguments_type()),
    ]
)


def outcome(read: Callable[[], SplitQuestions]) -> SplitQuestions | str:
    """What is read, or the message of the refusal."""
    try:
        return read()
    except KbprobeError as error:
        return str(error)


@pytest.mark.slow
@given(st.lists(changes, min_size=1, max_size=4), st.integers(0, 2), st.booleans())
def test_columns_are_read_as_rows_are(edits: list[Row], cut: int, chunked: bool) -> None:
    rows = [{**own_row(f"q{i}"), **edit} for i, edit in enumerate(edits)]
    table = pa.Table.from_pylist(rows, schema=OWN_TYPES).slice(cut)
    if chunked:
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    kept = table.to_pylist()
    slow = outcome(lambda: row_questions(Records("row", enumerate(kept, 1)), "table"))
    found = outcome(lambda: table_questions(table, "table"))
    if isinstance(slow, str) or isinstance(found, str):
        assert found == slow
        return
    assert found.items == slow.items
    assert found.about.to_pylist() == slow.about.to_pylist()
    assert found.about.schema == slow.about.schema
    assert (found.arguments is None) == (slow.arguments is None)
    assert found.arguments is None or found.arguments.equals(slow.arguments)


@pytest.mark.parametrize(
    "arguments", ["24", {"age": "24"}, [{"name": "age"}], [{"name": "age", "value": 24}], [None]]
)
def test_arguments_are_names_and_values(arguments: Any) -> None:
    with pytest.raises(KbprobeError, match="arguments must be a list of objects with name and"):
        read_rows(own_row(arguments=arguments))
    with pytest.raises(KbprobeError, match="lone surrogate"):
        read_rows(own_row(arguments=[{"name": "age", "value": "\ud800"}]))


def test_reading_json_keeps_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n\n{"b": 2}\n')
    assert list(read_json(path).rows) == [(1, {"a": 1}), (3, {"b": 2})]
