"""Architectures that docs/models.md lists: scores are those of one plain pass for each choice."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evaluation.items.types import Item
from evaluation.scorers.causal import forked
from evaluation.scorers.causal.forward import Sharing
from evaluation.scorers.causal.scorer import CausalScorer
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_masked, tiny_multiple_choice
from tests.evaluation.scored import score
from tests.evaluation.test_causal import TOLERANCE, reference
from tests.evaluation.tiny_architectures import CAUSAL, QUESTION_AGAIN, STATE_COPIED, make, sharing

DOCS = Path(__file__).resolve().parents[2] / "docs" / "models.md"
QUICK = ("jamba", "mamba2")
"""Tested by default; test_causal tests others."""

ITEMS = [
    Item("1", "mc_qa", "A dog is a kind of", ("animal", "animal too", "rodent", "city"), 0),
    Item("2", "mc_qa", "A dog is a kind of", ("mouse", "cat that can swim well, but not fly"), 0),
    Item(
        "3",
        "mc_qa",
        "The capital of a country is the city where its government meets, and a mouse is",
        ("a rodent", "a country", "the word"),
        0,
    ),
    Item("4", "mc_mlm", "A [MASK] is a kind of animal, as a robin is.", ("dog", "vehicle"), 0),
]


@pytest.mark.parametrize(
    "model_type",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in CAUSAL],
)
def test_causal_scores_are_those_of_plain_passes(
    model_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(forked.LEAST_TOKENS, "cpu", 1)
    model, tokenizer = make(model_type)
    scorer = CausalScorer(model, tokenizer)
    assert scorer.sharing == sharing(model_type)
    scores, encoded = score(scorer, ITEMS)
    assert not encoded.set_aside
    assert encoded.branched.any() == (scorer.sharing is not Sharing.NONE)
    assert ("unpacked" in encoded.notes) == (scorer.sharing is Sharing.NONE)
    np.testing.assert_allclose(scores, reference(model, tokenizer, ITEMS), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_encoders_are_no_causal_models(model_type: str) -> None:
    model, tokenizer = make(model_type)
    with pytest.raises(UsageError, match="is not causal: what follows a token changes its score"):
        CausalScorer(model, tokenizer)


def test_a_permutation_model_is_refused() -> None:
    from transformers import XLNetConfig, XLNetLMHeadModel

    _, tokenizer = make("gpt2")
    sizes = {"vocab_size": len(tokenizer), "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}
    model = XLNetLMHeadModel(XLNetConfig(**sizes)).eval()
    with pytest.raises(UsageError, match="is a permutation language model"):
        CausalScorer(model, tokenizer)


def test_a_model_that_cannot_run_here_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = make("llama")

    def fails(*_args: object, **_named: object) -> None:
        raise RuntimeError("no kernel for this device\nand more")

    monkeypatch.setattr(model, "forward", fails)
    with pytest.raises(KbprobeError, match=r"cannot read a text on cpu .* device\. Try another"):
        CausalScorer(model, tokenizer)


def test_the_documentation_lists_what_is_tested() -> None:
    """Each architecture of the table is tested here or with its scorer."""
    lines = re.findall(r"^\| ([\w -]+) \| ([^|]*)\| (`.+) \|$", DOCS.read_text("utf-8"), re.M)
    listed = {
        (scorer, how.strip()): set(re.findall(r"`([\w-]+)`", names)) for scorer, how, names in lines
    }
    once, copied = listed["causal", "read once"], listed["causal", "read once, state copied"]
    again = listed["causal", "read for each choice"]
    assert (copied, again) == (STATE_COPIED, QUESTION_AGAIN)
    assert once == set(CAUSAL) - copied - again
    assert listed["masked", ""] == set(tiny_masked.FAMILIES)
    assert listed["multiple choice", ""] == {name.lower() for name in tiny_multiple_choice.FAMILIES}
