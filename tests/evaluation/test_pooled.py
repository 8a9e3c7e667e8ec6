"""Classifiers on pooled vectors: what they read, and what they learn."""

import json

import numpy as np
import pytest
import torch
import transformers

import evaluation
from evaluation.frozen.plans import LabelPlan
from evaluation.frozen.readers import MaxReader
from evaluation.items.folds import open_rows, take_fold
from evaluation.items.types import Item
from evaluation.learners.base import HeadTraining
from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.workers import ALONE
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from kbprobe.terminal.progress import silent
from tests.evaluation import folded_probe, tiny_causal, tiny_masked
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)

STRONG = {"epochs": 30, "learning_rate": 3e-3, "learner": "pooled", "split": "all"}


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(tiny.write(tmp_path_factory.mktemp("pooled") / "bert", "Bert", "Model"))


def plan_of(model, folder):
    handle = ModelHandle(model, ModelOptions())
    return LabelPlan(HeadTraining(handle, [], folder, ALONE, silent), MaxReader)


def label_items(setup, *texts):
    labels = SETUPS[setup].labels
    return tuple(Item(text, setup, text, labels, 0, premise) for premise, text in texts)


@pytest.mark.parametrize("setup", [ACCEPTABILITY, NLI])
def test_vectors_are_the_maximum_over_tokens_and_never_of_padding(setup, bert, tmp_path):
    premise = "What is a dog?" if setup == NLI else ""
    texts = [
        (premise, text)
        for text in ("It is red.", "A cat is a kind of animal, and a mouse is a rodent too.", "No.")
    ]
    plan = plan_of(bert, tmp_path)
    rows = label_items(setup, *texts)
    (read,) = plan.read([(rows, np.arange(3))])
    model = transformers.AutoModel.from_pretrained(bert).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    for (first, second), [place] in zip(texts, read.table.vectors.tolist(), strict=True):
        pair = (first, second) if first else (second,)
        with torch.no_grad():
            states = model(**tokenizer(*pair, return_tensors="pt"))[0][0]
        torch.testing.assert_close(plan.vectors[place], states.amax(0), atol=1e-5, rtol=1e-4)
    assert read.table.candidates.tolist() == [list(range(len(SETUPS[setup].labels)))] * 3


@pytest.mark.parametrize("family", ["causal", "masked"])
def test_bodies_of_language_models_are_read(family, tmp_path):
    if family == "causal":
        tiny_causal.write("gpt2", tmp_path / "model")
    else:
        tiny_masked.write("bert-uncased", tmp_path / "model")
    handle = ModelHandle(str(tmp_path / "model"), ModelOptions())
    probe = folded_probe.write(tmp_path / "probe")
    done = evaluation.evaluate(
        probe, str(tmp_path / "model"), **{**STRONG, "epochs": 1}, train=80, fold=0
    )
    assert done.results.model.architecture == handle.checkpoint.architecture
    assert done.results.scoring.scorer == "head"


def test_labels_in_another_order_are_read_as_the_same_labels(bert, tmp_path):
    plan = plan_of(bert, tmp_path)
    item = label_items(ACCEPTABILITY, ("", "It is red."))[0]
    turned = Item("2", item.setup, item.question, item.choices[::-1], 1)
    (read,) = plan.read([((item, turned), np.arange(2))])
    assert read.table.candidates.tolist() == [[0, 1], [1, 0]]
    ((head, _),) = plan.modules([read.table], [0])
    scores = head(plan.vectors[read.table.vectors], read.table.candidates)
    torch.testing.assert_close(scores[0], scores[1].flip(0))


@pytest.mark.slow
@pytest.mark.parametrize("setup", [ACCEPTABILITY, NLI])
def test_a_planted_signal_is_learnt_in_every_fold_with_one_pass(setup, bert, tmp_path, monkeypatch):
    probe = folded_probe.write(tmp_path / "probe", setup)
    passes = []
    forward = MaxReader._forward

    def counted(self, inputs):
        passes.append(len(inputs["input_ids"]))
        return forward(self, inputs)

    monkeypatch.setattr(MaxReader, "_forward", counted)
    specs = [
        RunSpec.parse(probe, bert, {**STRONG, "fold": fold, "train": 80, "train_seed": seed})
        for fold in range(folded_probe.FOLDS)
        for seed in (0, 1)
    ]
    found = [outcome.or_raise() for outcome in execute(specs)]
    whole = open_rows(probe, "all")
    texts = {(item.premise, item.question) for item in whole.items}
    assert sum(passes) == len(texts)
    for spec, done in zip(specs, found, strict=True):
        assert done.results.metrics.accuracy.value > 0.9
        assert done.results.metrics.items == len(take_fold(whole, spec.run.fold or 0).items)
    # All of it is found again, without the model.
    monkeypatch.setattr(ModelHandle, "load", None)
    again = [outcome.or_raise() for outcome in execute(specs)]
    for one, other in zip(found, again, strict=True):
        assert json.dumps(one.results.metrics.model_dump()) == json.dumps(
            other.results.metrics.model_dump()
        )
