"""Sequence classifiers: equal to transformers' pipeline, classes matched to labels by name."""

import copy
import logging

import numpy as np
import pytest
import torch
import transformers

from evaluation.items.types import Item
from evaluation.scorers.batching import cut_batches
from evaluation.scorers.classifier import classes_of
from evaluation.scorers.classifier.scorer import ClassifierScorer
from evaluation.scorers.encoder import EncoderRunner
from kbprobe.errors import UsageError
from kbprobe.format.setups import SETUPS
from tests.evaluation import tiny_causal
from tests.evaluation import tiny_multiple_choice as tiny
from tests.evaluation.labelled_probe import rows_of

torch.set_num_threads(1)
logging.getLogger("transformers").setLevel(logging.ERROR)

MNLI = ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]
COLA = ["unacceptable", "acceptable"]


def named(names):
    ids = dict(enumerate(names))
    return {"id2label": ids, "label2id": {name: number for number, name in ids.items()}}


def write(folder, names, family="Bert", **changes):
    return tiny.write(folder, family, "ForSequenceClassification", **named(names), **changes)


def load(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def items_of(setup):
    labels = SETUPS[setup].labels
    found = [
        Item(
            row["id"],
            setup,
            row["hypothesis"] or row["question"],
            labels if at % 3 else labels[::-1],
            0,
            row["premise"],
        )
        for at, row in enumerate(rows_of(setup, pairs=12))
    ]
    return [*found, found[3], found[0]]


def scored(scorer, items, budget=200, shuffled_by=None):
    """The scores of all choices of each item, run in batches as the evaluation runs them."""
    encoded = scorer.encode(items)
    totals = np.zeros(sum(len(item.choices) for item in items))
    batches = cut_batches(encoded.lengths, budget)
    if shuffled_by is not None:
        random = np.random.default_rng(shuffled_by)
        batches = [random.permutation(batch) for batch in reversed(batches)]
    for batch in batches:
        _, slots = encoded.slots(batch)
        np.add.at(totals, encoded.slot_choice[slots], scorer.score(encoded, batch))
    return np.split(totals, np.cumsum([len(item.choices) for item in items])[:-1])


def piped(model, tokenizer, items):
    """The reference: transformers' pipeline, one text at a time; log-probabilities by choice.

    Its tokenizer is told to give segments to models that were trained with them: ALBERT's and
    XLNet's of today leave them out, and those of the time of their checkpoints did not.
    """
    scorer = EncoderRunner(model, tokenizer)
    names = ["input_ids", "attention_mask", *["token_type_ids"] * scorer.takes_types]
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_input_names, tokenizer.model_max_length = names, scorer.limit
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    found = []
    for item in items:
        shown = {"text": item.question}
        if item.premise:
            shown = {"text": item.premise, "text_pair": item.question}
        said = pipe(shown, top_k=None, function_to_apply="softmax", truncation=True)
        shares = {entry["label"].lower(): entry["score"] for entry in said}
        found.append(np.log([shares[choice] for choice in item.choices]))
    return found


@pytest.mark.parametrize("family", list(tiny.FAMILIES))
@pytest.mark.parametrize("setup", ["acceptability", "nli"])
def test_scores_are_those_of_the_pipeline(setup, family, tmp_path):
    folder = write(tmp_path / family, COLA if setup == "acceptability" else MNLI, family)
    model, tokenizer = load(folder)
    items = items_of(setup)
    expected = np.concatenate(piped(model, tokenizer, items))
    assert np.ptp(expected) > 0.05
    for budget, order in ((1, None), (60, 1), (10_000, None)):
        found = np.concatenate(scored(ClassifierScorer(model, tokenizer), items, budget, order))
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_decoder_reads_its_last_token_whether_it_knows_padding_or_not(tmp_path):
    tiny_causal.write("gpt2", tmp_path / "gpt2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "gpt2")
    items = items_of("acceptability")
    for pad in (None, tokenizer.eos_token_id):
        torch.manual_seed(0)
        config = transformers.AutoConfig.from_pretrained(
            tmp_path / "gpt2", pad_token_id=pad, initializer_range=0.3, **named(COLA)
        )
        model = transformers.GPT2ForSequenceClassification(config).eval()
        found = np.concatenate(scored(ClassifierScorer(model, tokenizer), items, 60))
        expected = np.concatenate(piped(model, tokenizer, items))
        assert np.ptp(expected) > 0.05
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_text_that_is_too_long_is_cut_as_the_tokenizer_cuts_it_and_counted(tmp_path):
    model, tokenizer = load(write(tmp_path / "bert", MNLI))
    labels = SETUPS["nli"].labels
    long = Item("long", "nli", "A car is red.", labels, 0, "A dog is a kind of animal. " * 30)
    items = [long, *items_of("nli")]
    scorer = ClassifierScorer(model, tokenizer)
    encoded = scorer.encode(items)
    assert encoded.notes == {"truncated": 1}
    assert encoded.lengths.max() == tiny.POSITIONS
    np.testing.assert_allclose(
        scored(scorer, items)[0], piped(model, tokenizer, [long])[0], atol=1e-4
    )


def test_rows_that_show_the_same_text_share_its_sequence(tmp_path):
    model, tokenizer = load(write(tmp_path / "bert", MNLI))
    items = items_of("nli")
    encoded = ClassifierScorer(model, tokenizer).encode(items)
    assert len(encoded.lengths) == len({(i.premise, i.question) for i in items}) < len(items)
    assert sorted(encoded.slot_choice) == list(range(3 * len(items)))


@pytest.mark.parametrize(
    ("setup", "names", "expected"),
    [
        ("nli", ["contradiction", "neutral", "entailment"], [2, 1, 0]),
        ("nli", ["Entailment", "NEUTRAL", "Contradiction"], [0, 1, 2]),
        ("acceptability", ["ungrammatical", "grammatical"], [0, 1]),
        ("acceptability", ["Acceptable", "not_acceptable"], [1, 0]),
    ],
)
def test_classes_are_matched_by_name(setup, names, expected):
    found = classes_of(setup, dict(enumerate(names)), (), "m")
    assert found == dict(zip(SETUPS[setup].labels, expected, strict=True))


def test_nameless_classes_need_the_users_word():
    nameless = {0: "LABEL_0", 1: "LABEL_1"}
    with pytest.raises(UsageError, match=r"--class-labels unacceptable,acceptable$"):
        classes_of("acceptability", nameless, (), "m")
    stated = ("acceptable", "unacceptable")
    found = classes_of("acceptability", nameless, stated, "m")
    assert found == {"unacceptable": 1, "acceptable": 0}


@pytest.mark.parametrize(
    ("setup", "names", "stated", "said"),
    [
        ("nli", ["entailment", "not_entailment"], (), "cannot tell neutral from contradiction"),
        ("nli", ["unacceptable", "acceptable"], (), "tells 2 classes apart"),
        ("acceptability", MNLI, (), "tells 3 classes apart"),
        ("acceptability", ["LABEL_0"], (), "tells 1 classes apart"),
        ("acceptability", ["negative", "positive"], (), "are not the labels of rows"),
        ("acceptability", ["unacceptable", "other"], (), "--class-labels unacceptable,acceptable"),
        ("acceptability", ["a", "b"], ("acceptable",), "names 1 classes"),
        ("acceptability", ["a", "b"], ("acceptable", "grammatical"), "each of them once"),
        ("acceptability", ["a", "b"], ("true", "false"), "have the labels"),
    ],
)
def test_other_classes_are_refused(setup, names, stated, said):
    with pytest.raises(UsageError, match=said) as caught:
        classes_of(setup, dict(enumerate(names)), stated, "some/model")
    assert "some/model" in str(caught.value) or "--class-labels" in str(caught.value)
