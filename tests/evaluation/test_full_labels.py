"""Fine-tuning a whole encoder to give labels: its head, what its classes mean, what it learns."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import evaluation
from evaluation.items.folds import open_rows
from evaluation.learners.entries import LabelsOptions
from evaluation.learners.finetune.training import LABELS
from evaluation.models.checkpoint import open_checkpoint
from evaluation.scorers.classifier.scorer import ClassifierScorer
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from tests.evaluation import folded_probe
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)

FOLD = {"split": "all", "fold": 0, "learner": "full_labels"}
STRONG = {
    **FOLD,
    "train": 90,
    "epochs": 30,
    "learning_rate": 4e-3,
    "training": {"weight_decay": 0.0},
}


pytestmark = pytest.mark.usefixtures("own_cache")


def named(names):
    ids = dict(enumerate(names))
    return {"id2label": ids, "label2id": {name: number for number, name in ids.items()}}


def classifier(folder, names):
    return str(tiny.write(folder, "Bert", "ForSequenceClassification", **named(names)))


@pytest.mark.slow
@pytest.mark.parametrize("setup", [ACCEPTABILITY, NLI])
def test_a_fresh_head_learns_and_the_kept_checkpoint_names_its_classes(setup, tmp_path):
    probe = folded_probe.write(tmp_path / "probe", setup)
    encoder = str(tiny.write(tmp_path / "bert", "Bert", "Model"))
    kept = tmp_path / "kept"
    done = evaluation.evaluate(probe, encoder, **STRONG, keep_checkpoint=str(kept))
    assert done.results.metrics.accuracy.value > 0.9
    config = json.loads((kept / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {
        str(number): label for number, label in enumerate(SETUPS[setup].labels)
    }
    assert config["architectures"] == ["BertForSequenceClassification"]
    # What was kept is a classifier like any other, and gives the same answers.
    again = evaluation.evaluate(probe, str(kept), split="all", fold=0)
    assert again.results.scoring.scorer == "classifier"
    assert again.predictions["prediction"] == done.predictions["prediction"]


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True], ids=["as the rows", "the other way round"])
def test_a_trained_head_keeps_the_order_of_its_classes(turned, tmp_path):
    labels = SETUPS[NLI].labels
    names = labels[::-1] if turned else labels
    probe = folded_probe.write(tmp_path / "probe", NLI)
    model = classifier(tmp_path / "mnli", [name.upper() for name in names])
    kept = tmp_path / "kept"
    # A rate that changes nothing that could be seen: the head is the checkpoint's own.
    tiny_rate = {**STRONG, "epochs": 1, "learning_rate": 1e-12}
    done = evaluation.evaluate(probe, model, **tiny_rate, keep_checkpoint=str(kept))
    before = evaluation.evaluate(probe, model, split="all", fold=0)
    for mine, own in zip(
        done.predictions["scores"].to_pylist(),
        before.predictions["scores"].to_pylist(),
        strict=True,
    ):
        assert mine == pytest.approx(own, abs=1e-4)
    assert transformers.AutoConfig.from_pretrained(kept).id2label == dict(enumerate(names))
    learnt = evaluation.evaluate(probe, model, **STRONG)
    assert learnt.results.metrics.accuracy.value > 0.9


@pytest.mark.slow
def test_classes_without_names_are_stated_or_refused(tmp_path):
    probe = folded_probe.write(tmp_path / "probe")
    nameless = str(tiny.write(tmp_path / "nameless", "Bert", "ForSequenceClassification"))
    with pytest.raises(UsageError, match="does not say what its classes mean"):
        evaluation.evaluate(probe, nameless, **STRONG)
    stated = ("acceptable", "unacceptable")
    done = evaluation.evaluate(
        probe, nameless, **STRONG, class_labels=stated, keep_checkpoint=str(tmp_path / "kept")
    )
    assert done.results.metrics.accuracy.value > 0.9
    kept = transformers.AutoConfig.from_pretrained(tmp_path / "kept")
    assert kept.id2label == dict(enumerate(stated))
    encoder = str(tiny.write(tmp_path / "bert", "Bert", "Model"))
    with pytest.raises(UsageError, match="has no such head: leave it out"):
        evaluation.evaluate(probe, encoder, **STRONG, class_labels=stated)
    other = classifier(tmp_path / "rte", ["entailment", "not_entailment"])
    with pytest.raises(UsageError, match="are not the labels of rows"):
        evaluation.evaluate(probe, other, **STRONG)


def test_logits_are_those_of_the_classes(tmp_path):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        classifier(tmp_path / "model", SETUPS[NLI].labels[::-1])
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    scorer = ClassifierScorer(model, tokenizer)
    items = open_rows(folded_probe.write(tmp_path / "probe", NLI, 6), "all").items
    encoded = scorer.encode(items)
    slots = np.arange(3 * len(items))[::-1].copy()
    found = scorer.slot_logits(encoded, slots)
    assert found.requires_grad
    choices = encoded.slot_choice[slots]
    for logit, choice in zip(found.tolist(), choices.tolist(), strict=True):
        item = items[choice // 3]
        with torch.no_grad():
            logits = model(**tokenizer(item.premise, item.question, return_tensors="pt")).logits
        assert logit == pytest.approx(float(logits[0, 2 - choice % 3]), abs=1e-5)


def test_the_configuration_of_the_checkpoint_stays_as_it_is(tmp_path):
    encoder = Path(tiny.write(tmp_path / "bert", "Bert", "Model"))
    checkpoint = open_checkpoint(str(encoder))
    items = open_rows(folded_probe.write(tmp_path / "probe", NLI), "all").items
    made = LABELS.configured(checkpoint, items, LabelsOptions())
    assert made.config is not None
    assert made.config.num_labels == 3
    assert checkpoint.config is not None
    assert checkpoint.config.num_labels == 2
