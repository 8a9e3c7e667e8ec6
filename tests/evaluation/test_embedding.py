"""Cosines of pooled vectors equal those of one text at a time; other poolings are refused."""

import json

import numpy as np
import pytest
import torch

from evaluation.items.types import Item
from evaluation.models.capabilities import Capability
from evaluation.options import RunOptions
from evaluation.runs.encoders import encoder_options, open_encoder
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.entries import EMBEDDING, EmbeddingOptions
from evaluation.scorers.registry import SCORERS, choose_scorer
from kbprobe.errors import UsageError
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation import tiny_seq2seq

LONG = "a car " * 100
ITEMS = [
    Item("vehicle", "mc_qa", "What is a vehicle?", ("a car", "a small red house", "run"), 0),
    Item("again", "mc_qa", "What is a vehicle?", ("a bus", "a car"), 1),
    Item("cloze", "mc_mlm", "A 41 year old is [MASK] than a 24 year old.", ("older", LONG), 0),
]


@pytest.fixture(scope="module", params=["Bert", "Roberta", "XLNet"])
def checkpoint(request, tmp_path_factory):
    folder = tiny.write(tmp_path_factory.mktemp(request.param), request.param)
    return folder, *tiny.load(folder)


def score(model, tokenizer, pooling="mean"):
    options = EmbeddingOptions(pooling=pooling)
    scorer = EMBEDDING.make(ScorerInputs(model, tokenizer, options))
    encoded = scorer.encode(ITEMS)
    return scorer.score(encoded, np.arange(len(ITEMS))), encoded.notes


@torch.inference_mode()
def alone(model, tokenizer, text, pooling):
    # XLNet's tokenizer leaves out the segment that its pretraining had for the last token.
    types = {"return_token_type_ids": "XLNet" in type(model).__name__}
    read = tokenizer(text, return_tensors="pt", **types)
    states = model.base_model(**read)[0][0]
    return {"mean": states.mean(0), "first": states[0], "last": states[-1]}[pooling]


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_cosines_are_those_of_texts_alone(checkpoint, pooling):
    _, model, tokenizer = checkpoint
    expected = [
        torch.cosine_similarity(
            alone(model, tokenizer, item.question, pooling),
            alone(model, tokenizer, choice, pooling),
            dim=0,
        ).item()
        for item in ITEMS
        for choice in item.choices
        if choice != LONG
    ]
    scores, notes = score(model, tokenizer, pooling)
    np.testing.assert_allclose(scores[:-1], expected, atol=1e-5)
    assert -1 <= scores[-1] <= 1
    assert notes in ({"cut_texts": 1}, {})


def saved(folder, types, **pooling):
    modules = [{"type": f"sentence_transformers.models.{t}", "path": f"1_{t}"} for t in types]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def test_the_pooling_that_the_checkpoint_states_is_the_one_to_use(tmp_path):
    model, tokenizer = tiny.load(tiny.write(tmp_path, "Bert"))
    saved(tmp_path, ["Transformer", "Pooling"], pooling_mode_cls_token=True, dimension=4)
    assert score(model, tokenizer, "first")
    with pytest.raises(UsageError, match="pooling first, not mean: give --pooling first"):
        score(model, tokenizer)
    saved(tmp_path, ["Pooling"], pooling_mode_max_tokens=True, pooling_mode_mean_tokens=True)
    with pytest.raises(UsageError, match="choose another checkpoint"):
        score(model, tokenizer)
    saved(tmp_path, ["Transformer", "Pooling", "Dense"], pooling_mode_mean_tokens=True)
    with pytest.raises(UsageError, match=r"layer \(Dense\)"):
        score(model, tokenizer)
    (tmp_path / "modules.json").write_text('[{"path": 3}]')
    with pytest.raises(UsageError, match="modules"):
        score(model, tokenizer)


def test_it_is_never_chosen_by_itself():
    class Headless:
        id = architecture = "encoder"
        capabilities = Capability.HIDDEN_STATES | Capability.TRAINABLE

    assert "embedding" in SCORERS.names()
    with pytest.raises(UsageError, match="--scorer embedding"):
        choose_scorer(Headless())


def test_similarity_needs_a_model_of_whole_texts(tmp_path):
    folder = tiny_seq2seq.write("t5", tmp_path / "tiny-t5")
    with pytest.raises(UsageError, match=r"--similarity .*tiny-t5: this model gives no vectors"):
        open_encoder(RunOptions(similarity=str(folder), device="cpu"))


@pytest.mark.parametrize("saved", [None, "pooling_mode_cls_token"])
def test_an_encoder_is_pooled_as_it_was_saved(tmp_path, saved):
    folder = tiny.write(tmp_path / "tiny", "Bert")
    if saved is not None:
        modules = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({saved: True}))
    encoder = open_encoder(RunOptions(similarity=str(folder), device="cpu"))
    assert encoder_options(encoder) == ({} if saved is None else {"pooling": "first"})
