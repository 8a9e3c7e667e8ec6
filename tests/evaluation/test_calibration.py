"""Contextual calibration: equal to a pass for each row, choice and text; scored once a choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import evaluation
from evaluation.items.types import Item
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.entries import CALIBRATED, MASKED_CALIBRATED
from evaluation.scorers.masked.scorer import MaskedScorer
from tests.evaluation import tiny_causal, tiny_masked
from tests.evaluation.scored import score
from tests.evaluation.test_causal import reference

CHOICES = ("a dog", "a cat that can swim", "mouse")
TEXTS = ("N/A", "[MASK]", "")
ITEMS = [
    *(
        Item(str(n), "mc_qa", f"The word {n} is a kind of", CHOICES[n % 3 :] + CHOICES[: n % 3], 0)
        for n in range(6)
    ),
    Item("two", "mc_qa", "A rodent is", ("a city", "mouse"), 1),
]
CLOZES = [
    Item("c1", "mc_mlm", "A [MASK] is a kind of animal.", ("dog", "robin", "vehicle"), 0),
    Item("c2", "mc_mlm", "What swims well is a [MASK]", ("penguin", "dog"), 0),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal.write("gpt2", tmp_path_factory.mktemp("calibration") / "gpt2")


@pytest.fixture(scope="module")
def causal(folder: Path) -> tuple[Any, Any]:
    torch.set_num_threads(1)
    return tiny_causal.load("gpt2", folder)


def calibrated(
    plain: Sequence[Sequence[float]], without: Sequence[Sequence[Sequence[float]]]
) -> list[float]:
    """Calibrate rows of scores, given those of each row after each text."""
    found: list[float] = []
    for row, texts in zip(plain, without, strict=True):
        shares = [np.exp(np.array(one) - np.logaddexp.reduce(one)) for one in texts]
        found += (np.array(row) - np.log(np.mean(shares, axis=0))).tolist()
    return found


def by_row(items: Sequence[Item], scores: Any) -> list[list[float]]:
    ends = np.cumsum([len(item.choices) for item in items])
    return [part.tolist() for part in np.split(np.asarray(scores), ends[:-1])]


def with_question(items: Sequence[Item], text: str) -> list[Item]:
    return [
        Item(one.id, one.setup, text if one.setup == "mc_qa" else f"{text} [MASK]".strip(),
             one.choices, one.answer)
        for one in items
    ]  # fmt: skip


@pytest.mark.parametrize("items", [ITEMS, CLOZES])
def test_a_causal_model_is_calibrated_as_by_a_pass_for_each(
    causal: tuple[Any, Any], items: list[Item]
) -> None:
    model, tokenizer = causal
    texts = TEXTS if items is ITEMS else ("N/A", "")
    scorer = CALIBRATED.make(ScorerInputs(model, tokenizer, CALIBRATED.options(content_free=texts)))
    scores, encoded = score(scorer, items)  # type: ignore[arg-type]
    assert not encoded.set_aside
    plain = by_row(items, reference(model, tokenizer, items))
    without = [
        by_row(items, reference(model, tokenizer, with_question(items, text))) for text in texts
    ]
    expected = calibrated(plain, list(zip(*without, strict=True)))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4)


def test_a_masked_model_is_calibrated_after_a_mask_alone(tmp_path: Path) -> None:
    model, tokenizer = tiny_masked.load(tiny_masked.write("bert-uncased", tmp_path / "bert"))
    items = CLOZES
    options = MASKED_CALIBRATED.options(content_free=("N/A", "this is [MASK]"), log_probs=True)
    scorer = MASKED_CALIBRATED.make(ScorerInputs(model, tokenizer, options))
    scores, encoded = score(scorer, items)  # type: ignore[arg-type]
    assert not encoded.set_aside
    naive = MaskedScorer(model, tokenizer, log_probs=True)

    def alone(item: Item, question: str) -> list[float]:
        row = Item(item.id, item.setup, question, item.choices, item.answer)
        return score(naive, [row])[0].tolist()  # type: ignore[arg-type,no-any-return]

    plain = [alone(item, item.question) for item in items]
    without = [[alone(item, text) for text in ("N/A [MASK]", "this is [MASK]")] for item in items]
    np.testing.assert_allclose(scores, calibrated(plain, without), rtol=0, atol=1e-4)


@pytest.mark.parametrize("order", ["CAB", "7"])
def test_letters_are_calibrated_where_choices_are_in_one_order(
    causal: tuple[Any, Any], order: str
) -> None:
    from evaluation.scorers.causal.options import PromptOptions
    from evaluation.scorers.causal.prompts import Prompt

    model, tokenizer = causal
    options = CALIBRATED.options(letters=True, order=order, content_free=("N/A", ""))
    scorer = CALIBRATED.make(ScorerInputs(model, tokenizer, options))
    items = ITEMS[:6]
    scores, _ = score(scorer, items)  # type: ignore[arg-type]
    prompt = Prompt(PromptOptions(letters=True, order=order))
    plain = by_row(items, reference(model, tokenizer, items, prompt))
    without = []
    for text in ("N/A", ""):
        bare = [Item(one.id, one.setup, text, (text,) * len(one.choices), 0) for one in items]
        without.append(by_row(items, reference(model, tokenizer, bare, prompt)))
    expected = calibrated(plain, list(zip(*without, strict=True)))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4)


def test_choices_are_scored_once_without_content(
    causal: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = causal
    asked: list[list[Item]] = []
    encode = CausalScorer.encode

    def counted(self: CausalScorer, items: list[Item]) -> Any:
        asked.append(list(items))
        return encode(self, items)

    monkeypatch.setattr(CausalScorer, "encode", counted)
    scorer = CALIBRATED.make(ScorerInputs(model, tokenizer, CALIBRATED.options()))
    scorer.encode(ITEMS[:6])
    scorer.encode(ITEMS)
    bare = [item for some in asked for item in some if item.question in TEXTS]
    assert len(bare) == 3 * len({*CHOICES, "a city"})


@pytest.mark.slow
def test_one_text_ranks_as_pmi_and_leaves_other_scores_alone(folder: Path, tmp_path: Path) -> None:
    rows = [
        {"id": item.id, "question": item.question, "answerKey": "A",
         "choices": {"text": list(item.choices), "label": list("ABC"[: len(item.choices)])}}
        for item in ITEMS
    ]  # fmt: skip
    (tmp_path / "probe").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "probe" / "test.jsonl").write_text(text, encoding="utf-8")

    def scores(**options: Any) -> Any:
        done = evaluation.evaluate(tmp_path / "probe", folder, cache=False, **options)
        return done.predictions["scores"].to_pylist(), done.predictions["prediction"].to_pylist()

    before = scores(normalization="sum")
    found, picked = scores(scorer="calibrated", content_free=("nothing",))
    pmi, picked_too = scores(scorer="pmi", neutral="nothing")
    assert picked == picked_too
    for row, other in zip(found, pmi, strict=True):
        off = np.array(row) - np.array(other)
        assert np.ptp(off) < 1e-4
    assert scores(normalization="sum") == before


def test_rows_without_a_score_without_content_are_set_aside(causal: tuple[Any, Any]) -> None:
    model, tokenizer = causal
    scorer = CALIBRATED.make(ScorerInputs(model, tokenizer, CALIBRATED.options()))
    items = [*ITEMS[:2], Item("empty", "mc_qa", "A dog is", ("", "a dog"), 1)]
    _, encoded = score(scorer, items)  # type: ignore[arg-type]
    plain = CausalScorer(model, tokenizer).encode(items)
    assert encoded.set_aside.keys() == plain.set_aside.keys()
