"""PMI: the difference of two log-likelihoods, and the neutral one computed once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import evaluation
from evaluation.cli import main
from evaluation.items.types import Item
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.entries import PMI
from tests.evaluation import tiny_causal

CHOICES = ("a dog", "a cat", "the river")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pmi")
    tiny_causal.write("gpt2", folder / "gpt2")
    (folder / "probe").mkdir()
    for split, first in (("train", 50), ("test", 0)):
        rows = [
            {
                "id": f"{split}-{n}",
                "question": f"The word number {n} is a kind of",
                "choices": {"text": [*CHOICES[n % 3 :], *CHOICES[: n % 3]], "label": list("ABC")},
                "answerKey": "ABC"[n % 3],
            }
            for n in range(first, first + 8)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "probe" / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def after(context: str, choices: list[str], model: Any, tokenizer: Any) -> list[float]:
    """Score choices after a context: one forward pass for each."""
    scores = []
    for choice in choices:
        before, both = (
            tokenizer(text)["input_ids"] if context else [tokenizer.eos_token_id, *end]
            for text, end in (
                (context, []),
                (f"{context} {choice}", tokenizer(f" {choice}")["input_ids"]),
            )
        )
        with torch.no_grad():
            logits = model(torch.tensor([both])).logits.log_softmax(-1)[0]
        ends = range(len(before), len(both))
        scores.append(sum(float(logits[at - 1, both[at]]) for at in ends))
    return scores


@pytest.mark.parametrize(
    "options",
    [{}, {"neutral": "Answer:"}, {"prompt": "Q: {question} A:"}, {"neutral": "no", "shots": 1}],
)
def test_pmi_is_the_difference_of_two_scores(options: dict[str, Any], world: Path) -> None:
    torch.set_num_threads(1)
    probe, folder = world / "probe", world / "gpt2"
    found = evaluation.evaluate(probe, folder, scorer="pmi", cache=False, **options)
    asked = {name: value for name, value in options.items() if name != "neutral"}
    plain = evaluation.evaluate(probe, folder, normalization="sum", cache=False, **asked)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    template = options.get("prompt", "{question}")
    context = template.format(question=options.get("neutral", ""))
    columns = (done.predictions["scores"].to_pylist() for done in (found, plain))
    shown = found.predictions["choices"].to_pylist()
    for row, given, choices in zip(*columns, shown, strict=True):
        alone = after(context, choices, model, tokenizer)
        assert row == pytest.approx([a - b for a, b in zip(given, alone, strict=True)], abs=1e-4)
    assert found.results.scoring.score == "pointwise mutual information"
    assert found.results.metrics.normalization == "sum"


def test_pmi_is_what_lm_evaluation_harness_divides_by(world: Path) -> None:
    """``acc_mutual_info``: less the log-likelihood after an empty context."""
    huggingface = pytest.importorskip(
        "lm_eval.models.huggingface", reason="comparing needs lm-evaluation-harness"
    )
    from lm_eval.api.instance import Instance

    model, tokenizer = tiny_causal.load("gpt2", world / "gpt2")
    peer = huggingface.HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4, logits_cache=False)

    def scored(context: str, choices: list[str]) -> list[float]:
        requests = [
            Instance("loglikelihood", {}, (context, f" {choice}"), number)
            for number, choice in enumerate(choices)
        ]
        return [score for score, _ in peer.loglikelihood(requests, disable_tqdm=True)]

    found = evaluation.evaluate(world / "probe", world / "gpt2", scorer="pmi", cache=False)
    for row in found.predictions.to_pylist():
        pairs = zip(
            scored(row["question"], row["choices"]), scored("", row["choices"]), strict=True
        )
        assert row["scores"] == pytest.approx([one - alone for one, alone in pairs], abs=1e-4)


def test_choices_are_scored_once_after_the_neutral_text(world: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(world / "gpt2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(world / "gpt2")
    scorer = PMI.make(ScorerInputs(model, tokenizer, PMI.options()))
    items = [Item(str(n), "mc_qa", f"Is it {n}?", CHOICES, 0) for n in range(5)]
    assert len(scorer.encode(items).lengths) == 5 + 1


def test_letters_have_no_pmi(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main([str(world / "probe"), "-m", str(world / "gpt2"), "--scorer", "pmi", "--letters"])
    assert done.value.code == 2
    assert "leave one out" in capsys.readouterr().err
