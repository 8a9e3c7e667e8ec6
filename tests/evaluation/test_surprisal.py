"""Surprisals: the bits of each token, equal to plain passes and to the scores of an evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import evaluation
from evaluation.cli import main
from evaluation.surprisal.table import surprisals
from kbprobe.errors import UsageError
from tests.evaluation import tiny_causal, tiny_masked

ROWS = [
    ("A dog is a kind of", ["animal", "animal that can swim", "rodent"]),
    ("A dog is a kind of", ["mouse", "naïve café 猫"]),
    ("The capital of a country is a", ["city", "dog"]),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("surprisal")
    tiny_causal.write("gpt2", folder / "gpt2")
    (folder / "probe").mkdir()
    lines = [
        {"id": f"r{n}", "question": question, "answerKey": "A",
         "choices": {"text": choices, "label": list("ABC"[: len(choices)])}}
        for n, (question, choices) in enumerate(ROWS)
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "probe" / "test.jsonl").write_text(text, encoding="utf-8")
    return folder


def naive(folder: Path, question: str, choice: str) -> tuple[list[int], list[float]]:
    """Return a choice's tokens, and the bits of each in one plain pass."""
    model, tokenizer = tiny_causal.load("gpt2", folder)
    before = tokenizer(question)["input_ids"]
    both = tokenizer(f"{question} {choice}")["input_ids"]
    with torch.no_grad():
        logs = model(torch.tensor([both])).logits.log_softmax(-1)[0]
    ends = range(len(before), len(both))
    bits = [-float(logs[at - 1, both[at]]) / float(np.log(2)) for at in ends]
    return both[len(before) :], bits


@pytest.mark.slow
def test_surprisals_are_those_of_plain_passes_and_make_up_scores(world: Path) -> None:
    found = surprisals(world / "probe", world / "gpt2")
    rows = {(row["id"], row["choice"]): row for row in found.table.to_pylist()}
    assert len(rows) == 7
    assert found.set_aside == {}
    for number, (question, choices) in enumerate(ROWS):
        for choice, text in enumerate(choices):
            row = rows[f"r{number}", choice]
            ids, bits = naive(world / "gpt2", question, text)
            assert (row["text"], row["token_ids"]) == (text, ids)
            assert row["surprisal"] == pytest.approx(bits, abs=1e-4)
            assert (row["gold"], row["bytes"]) == (choice == 0, len(text.encode()))
            assert len(row["tokens"]) == len(ids)
            assert row["bits_per_byte"] == pytest.approx(sum(bits) / len(text.encode()), abs=1e-4)
    done = evaluation.evaluate(world / "probe", world / "gpt2", cache=False)
    for scored in done.predictions.select(["id", "scores"]).to_pylist():
        bits = [rows[scored["id"], choice]["bits"] for choice in range(len(scored["scores"]))]
        assert -np.log(2) * np.array(bits) == pytest.approx(scored["scores"], abs=1e-4)


def test_surprisals_are_those_of_minicons(world: Path) -> None:
    scorer = pytest.importorskip("minicons.scorer", reason="compares with minicons")
    peer = scorer.IncrementalLMScorer(str(world / "gpt2"), "cpu")
    for row in surprisals(world / "probe", world / "gpt2").table.to_pylist():
        question = ROWS[int(row["id"][1:])][0]
        [tokens] = peer.token_score(f"{question} {row['text']}", surprisal=True, base_two=True)
        own = [bits for _, bits in tokens][-len(row["surprisal"]) :]
        assert row["surprisal"] == pytest.approx(own, abs=1e-4)


def test_the_command_writes_a_file_and_keeps_an_existing_one(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "made" / "bits.parquet"
    words = ["surprisal", str(world / "probe"), "-m", str(world / "gpt2"), "-o", str(target)]
    with pytest.raises(SystemExit) as done:
        main(words)
    assert not done.value.code
    assert "golds: 3, " in capsys.readouterr().out
    assert pq.read_table(target).num_rows == 7
    with pytest.raises(SystemExit) as done:
        main(words)
    assert done.value.code == 2
    assert "add --overwrite" in capsys.readouterr().err


def test_other_models_and_letters_have_none(world: Path, tmp_path: Path) -> None:
    tiny_masked.write("bert-uncased", tmp_path / "bert")
    with pytest.raises(UsageError, match="surprisals are of causal LMs"):
        surprisals(world / "probe", tmp_path / "bert")
    with pytest.raises(UsageError, match="--letters scores letters"):
        surprisals(world / "probe", world / "gpt2", letters=True)
