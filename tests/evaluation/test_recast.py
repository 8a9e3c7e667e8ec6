"""The published probes of function words: their labels, texts and folds."""

import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evaluation
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.setups import SETUPS
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation.folded_probe import write as write_labelled

NLI = ["contradiction", "neutral", "entailment"]


def row(number, label, labels, hypothesis=""):
    return {
        "binary-label": True,
        "context": f"Sentence {number}.",
        "hypothesis": hypothesis,
        "label": label,
        "label-set": labels,
        "pair-id": number,
        "split": "dev",
    }


def write(folder, rows, folds=None):
    (folder / "words_data.json").write_text(json.dumps(rows))
    if folds is not None:
        metadata = [
            {
                "pair-id": one["pair-id"],
                "misc": {f"fold{n}": "test" if n == fold else "train" for n in (1, 2, 3)},
            }
            for one, fold in zip(rows, folds, strict=True)
        ]
        (folder / "words_metadata.json").write_text(json.dumps(metadata))
    return str(folder / "words_data.json")


def test_sentences_to_judge_and_their_folds(tmp_path):
    labels = ["acceptable", "unacceptable"]
    rows = [row(1, "acceptable", labels), row(2, "unacceptable", labels)]
    found = open_probe(write(tmp_path, rows, folds=[3, 1]))
    assert [item.setup for item in found.items] == ["acceptability"] * 2
    assert [item.choices[item.answer] for item in found.items] == ["acceptable", "unacceptable"]
    assert [item.question for item in found.items] == ["Sentence 1.", "Sentence 2."]
    assert found.about["fold"].to_pylist() == [2, 0]


def test_pairs_of_sentences_without_folds(tmp_path):
    rows = [row(number, label, NLI, "It does.") for number, label in enumerate(NLI)]
    found = open_probe(write(tmp_path, rows))
    assert {item.setup for item in found.items} == {"nli"}
    assert [item.choices[item.answer] for item in found.items] == NLI
    assert found.items[0].premise == "Sentence 0."
    assert found.items[0].question == "It does."
    assert found.about["fold"].to_pylist() == [None] * 3
    assert found.about["cluster"].to_pylist() == ["Sentence 0.", "Sentence 1.", "Sentence 2."]
    assert found.clustered


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"label-set": ["entailed", "not-entailed"]},
            "label-set is entailed, not-entailed; the",
        ),
        ({"label-set": "acceptable"}, "label-set must be a list of labels"),
        ({"label": "fine"}, "label is 'fine', which is not in label-set"),
        ({"label": ["acceptable"]}, "label is .*, which is not in label-set"),
        ({"label": 0}, "label is 0, which is not in label-set"),
        ({"label": "A"}, "label is 'A', which is not in label-set"),
        ({"context": None}, "question is missing"),
    ],
)
def test_rows_that_cannot_be_read_are_named(tmp_path, changes, message):
    whole = row(1, "acceptable", ["acceptable", "unacceptable"])
    with pytest.raises(KbprobeError, match=message):
        open_probe(write(tmp_path, [whole | changes]))


@pytest.mark.parametrize("text", ["[", "[1]", '[{"pair-id": 1, "misc": {"foldx": "test"}}]', "{}{"])
def test_damaged_metadata_is_an_error_that_says_what_to_do(tmp_path, text):
    source = write(tmp_path, [row(1, "acceptable", ["acceptable", "unacceptable"])])
    (tmp_path / "words_metadata.json").write_text(text)
    with pytest.raises(KbprobeError, match=r"words_metadata.json cannot be read.* Remove it"):
        open_probe(source)


# --- MNLI and its like ------------------------------------------------------------------------


def mnli(number, label, premise="A dog runs.", **more):
    return {
        "annotator_labels": [label],
        "genre": "fiction",
        "gold_label": label,
        "pairID": f"p{number}",
        "promptID": str(number),
        "sentence1": premise,
        "sentence2": f"It moves {number}.",
    }


def write_mnli(folder, split, rows):
    folder.mkdir(exist_ok=True)
    path = folder / f"multinli_1.0_{split}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_mnli_as_it_is_published(tmp_path):
    rows = [mnli(number, label) for number, label in enumerate([*NLI, "-"])]
    write_mnli(tmp_path / "mnli", "dev_matched", rows)
    write_mnli(tmp_path / "mnli", "train", rows[:2])
    found = open_probe(str(tmp_path / "mnli" / "multinli_1.0_dev_matched.jsonl"))
    assert [item.id for item in found.items] == ["p0", "p1", "p2"]
    assert [item.choices[item.answer] for item in found.items] == NLI
    assert (found.items[0].premise, found.items[0].question) == ("A dog runs.", "It moves 0.")
    assert found.about["cluster"].to_pylist() == ["A dog runs."] * 3
    assert found.notes == {"undecided": 1}
    assert len(open_probe(str(tmp_path / "mnli"), split="train").items) == 2


@pytest.mark.parametrize("ids", [{"idx": [7, 8, 9]}, {"pairID": ["7", "8", "9"]}, {}])
def test_nli_collections_as_the_hub_has_them(tmp_path, ids):
    table = pa.table(
        {
            "premise": ["A dog runs.", "A dog runs.", "A cat sits."],
            "hypothesis": ["It moves.", "It sleeps.", "It is old."],
            "label": [0, 2, -1],
            "genre": ["fiction"] * 3,
            **ids,
        }
    )
    pq.write_table(table, tmp_path / "train-00000-of-00001.parquet")
    found = open_probe(str(tmp_path), split="train", label_names=SETUPS["nli"].labels)
    assert [item.id for item in found.items] == (["7", "8"] if ids else ["1", "2"])
    assert [item.choices[item.answer] for item in found.items] == ["entailment", "contradiction"]
    rows = datasets.Dataset.from_dict(table.to_pydict())
    assert open_probe(rows, label_names=SETUPS["nli"].labels).items == found.items


def test_pairs_without_any_label_are_refused(tmp_path):
    path = write_mnli(tmp_path / "mnli", "test_matched", [mnli(1, "-"), mnli(2, "-")])
    with pytest.raises(KbprobeError, match="2 of 2 rows have no answer yet"):
        open_probe(str(path))
    path = write_mnli(tmp_path / "other", "dev", [mnli(1, "perhaps")])
    with pytest.raises(KbprobeError, match="gold_label is 'perhaps'; the labels of NLI"):
        open_probe(str(path))


def test_one_command_trains_on_mnli_and_evaluates_nli_probes(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    rows = [mnli(number, NLI[number % 3], f"Premise {number}.") for number in range(12)]
    write_mnli(tmp_path / "mnli", "train", rows)
    probes = [write_labelled(tmp_path / name, "nli", clusters=6) for name in ("one", "two")]
    options = {
        "learner": "full_labels",
        "train": 12,
        "epochs": 1,
        "train_on": str(tmp_path / "mnli"),
    }
    model = tiny.write(tmp_path / "bert", "Bert", "Model")
    done = [evaluation.evaluate(probe, str(model), **options) for probe in probes]
    for one in done:
        assert one.results.scoring.scorer == "classifier"
        assert one.results.model.finetuning["train_on"] == str(tmp_path / "mnli")
    assert done[0].results.model.weights_sha256 == done[1].results.model.weights_sha256
    other = write_labelled(tmp_path / "three", clusters=6)
    with pytest.raises(UsageError, match="must have the same labels"):
        evaluation.evaluate(other, str(model), **options)
