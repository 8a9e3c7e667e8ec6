"""The published probes of function words: their labels, texts and folds."""

import json

import pytest

from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError

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
        ({"label": "fine"}, "answerKey is 'fine'"),
        ({"label": ["acceptable"]}, "answerKey is a list"),
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
