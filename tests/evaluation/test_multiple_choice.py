"""Multiple-choice scores equal a naive reference in any batches; fresh heads are refused."""

import logging

import numpy as np
import pytest
import torch
import transformers

from benchmarks.naive_multiple_choice import naive_scores
from evaluation.items.types import Item, choice_starts
from evaluation.models.capabilities import HEADS, MASKED_LM, MULTIPLE_CHOICE
from evaluation.models.loading import (
    draw_fresh,
    fresh_parameters,
    refuse_fresh_encoder,
    refuse_fresh_head,
)
from evaluation.scorers.batching import cut_batches
from evaluation.scorers.multiple_choice import MultipleChoiceScorer
from kbprobe.errors import UsageError
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)
logging.getLogger("transformers").setLevel(logging.ERROR)


def ask(name, question, *choices, setup="mc_qa"):
    return Item(name, setup, question, choices, 0)


ITEMS = [
    ask("vehicle", "What is a vehicle?", "a car", "a small red house", "an animal"),
    ask("again", "What is a vehicle?", "a bicycle or a truck, or a bus", "a car"),
    ask(
        "age",
        "A 41 year old person is [MASK] than a 24 year old.",
        "older",
        "younger",
        setup="mc_mlm",
    ),
    ask(
        "dog",
        'The word "dog" means',
        "a mouse",
        "a domestic animal; not a person",
        "run",
        "a toy",
        "a bus",
    ),
    ask("short", "run", "move fast", "a piano", "it"),
    ask("twice", "Really?", "not really", "really", "not really"),
]


@pytest.fixture(scope="module", params=list(tiny.FAMILIES))
def loaded(request, tmp_path_factory):
    folder = tiny.write(tmp_path_factory.mktemp(request.param), request.param)
    return tiny.load(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny.load(tiny.write(tmp_path_factory.mktemp("bert"), "Bert"))


def scores(model, tokenizer, items, budget=10_000, shuffled_by=None):
    """Scores of all choices of all items, run in batches as the evaluation runs them."""
    scorer = MultipleChoiceScorer(model, tokenizer)
    encoded = scorer.encode(items)
    numbers = np.full(len(encoded.slot_choice), np.nan)
    batches = cut_batches(encoded.lengths, budget)
    if shuffled_by is not None:
        random = np.random.default_rng(shuffled_by)
        batches = [random.permutation(batch) for batch in reversed(batches)]
    for batch in batches:
        slots = [
            slot
            for sequence in batch
            for slot in range(encoded.slot_starts[sequence], encoded.slot_starts[sequence + 1])
        ]
        numbers[slots] = scorer.score(encoded, batch)
    found = np.zeros(choice_starts(items)[-1])
    np.add.at(found, encoded.slot_choice, numbers)
    return found


def reference(model, tokenizer, items):
    return np.array([score for row in naive_scores(model, tokenizer, items) for score in row])


@pytest.mark.parametrize("budget", [1, 40, 10_000])
def test_scores_are_those_of_one_item_at_a_time(loaded, budget):
    model, tokenizer = loaded
    if model.config.model_type == "convbert":  # padding would change the reference itself
        expected = [
            naive_scores(model, tokenizer, [ask(item.id, item.question, choice, setup=item.setup)])
            for item in ITEMS
            for choice in item.choices
        ]
        expected = np.array(expected).ravel()
    else:
        expected = reference(model, tokenizer, ITEMS)
    assert np.ptp(expected) > 0.05
    for order in (None, 1):
        np.testing.assert_allclose(
            scores(model, tokenizer, ITEMS, budget, order), expected, atol=1e-4
        )


def test_the_order_of_items_changes_nothing(bert):
    forward = scores(*bert, ITEMS, 60)
    backward = scores(*bert, ITEMS[::-1], 60)
    starts, reverse = choice_starts(ITEMS), choice_starts(ITEMS[::-1])
    for row in range(len(ITEMS)):
        other = len(ITEMS) - 1 - row
        np.testing.assert_allclose(
            forward[starts[row] : starts[row + 1]],
            backward[reverse[other] : reverse[other + 1]],
            atol=1e-4,
        )


def test_items_that_share_question_and_choice_share_the_sequence(bert):
    encoded = MultipleChoiceScorer(*bert).encode(ITEMS)
    choices = sum(len(item.choices) for item in ITEMS)
    assert len(encoded.lengths) == choices - 2  # "a car" of two items, "not really" of one
    assert sorted(encoded.slot_choice) == list(range(choices))
    for sequence, item in enumerate(encoded.item):
        slots = encoded.slot_choice[
            encoded.slot_starts[sequence] : encoded.slot_starts[sequence + 1]
        ]
        owners = np.searchsorted(choice_starts(ITEMS), slots, side="right") - 1
        assert {ITEMS[owner].question for owner in owners} == {ITEMS[item].question}


def test_choice_tokens_are_the_choices_own(bert):
    _, tokenizer = bert
    encoded = MultipleChoiceScorer(*bert).encode(ITEMS)
    alone = [
        len(tokenizer(choice, add_special_tokens=False)["input_ids"])
        for item in ITEMS
        for choice in item.choices
    ]
    assert encoded.choice_tokens.tolist() == alone


def test_the_mask_becomes_the_models_own(tmp_path):
    model, tokenizer = tiny.load(tiny.write(tmp_path, "Roberta"))
    encoded = MultipleChoiceScorer(model, tokenizer).encode([ITEMS[2]])
    first = encoded.tokens[: encoded.lengths[0]].tolist()
    assert first.count(tokenizer.mask_token_id) == 1
    assert "[MASK]" not in tokenizer.decode(first)


def test_a_mask_that_the_model_does_not_have_is_refused(tmp_path):
    model, tokenizer = tiny.load(tiny.write(tmp_path, "Bert"))
    tokenizer.mask_token = None
    with pytest.raises(UsageError, match=r"item age has a \[MASK\], and this model's tokenizer"):
        MultipleChoiceScorer(model, tokenizer).encode(ITEMS)


@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_a_long_question_is_cut_at_its_start_and_counted(family, tmp_path):
    model, tokenizer = tiny.load(tiny.write(tmp_path, family))
    long = "A dog is an animal. " * 20 + "What is a vehicle?"
    items = [ITEMS[0], ask("long", long, "a car", "a small red house")]
    encoded = MultipleChoiceScorer(model, tokenizer).encode(items)
    assert encoded.notes == {"truncated": 1}
    assert encoded.lengths[3:].tolist() == [tiny.POSITIONS] * 2
    assert encoded.lengths[:3].max() < tiny.POSITIONS
    tokenizer.truncation_side = "left"
    for sequence, choice in enumerate(items[1].choices, start=3):
        expected = tokenizer(long, choice, truncation="only_first", max_length=tiny.POSITIONS)[
            "input_ids"
        ]
        start, stop = encoded.token_starts[sequence : sequence + 2]
        assert encoded.tokens[start:stop].tolist() == expected
    assert np.isfinite(scores(model, tokenizer, items)).all()


def test_an_item_with_a_choice_that_leaves_no_room_is_set_aside(bert):
    items = [ITEMS[0], ask("endless", "What is it?", "a car", "a red toy " * 40), ITEMS[1]]
    encoded = MultipleChoiceScorer(*bert).encode(items)
    assert list(encoded.set_aside) == [1]
    assert encoded.set_aside[1].startswith("a choice that leaves no room for its question: 120")
    assert not encoded.notes
    found = np.split(scores(*bert, items), choice_starts(items)[1:-1])
    alone = np.split(scores(*bert, [ITEMS[0], ITEMS[1]]), [len(ITEMS[0].choices)])
    np.testing.assert_allclose(found[0], alone[0], atol=1e-5)
    np.testing.assert_allclose(found[2], alone[1], atol=1e-5)


def test_scoring_leaves_the_tokenizer_as_it_was(tmp_path):
    model, tokenizer = tiny.load(tiny.write(tmp_path, "Bert"))
    before = tokenizer.backend_tokenizer.to_str()
    scores(model, tokenizer, [*ITEMS, ask("long", "a dog " * 90, "a car", "a bus")])
    assert tokenizer.backend_tokenizer.to_str() == before


# Fresh heads


@pytest.mark.parametrize(
    ("head", "loader", "remedy"),
    [
        ("multiple_choice", "AutoModelForMultipleChoice", "Train it here with --train N"),
        ("masked_lm", "AutoModelForMaskedLM", "fine-tune this one for multiple choice"),
        ("causal_lm", "AutoModelForCausalLM", "trained as a causal LM"),
    ],
)
def test_a_fresh_head_is_refused_with_the_remedy(head, loader, remedy, tmp_path):
    tiny.write(tmp_path, "Bert", "Model")
    _, info = getattr(transformers, loader).from_pretrained(tmp_path, output_loading_info=True)
    fresh = fresh_parameters(info)
    assert fresh
    assert all("embeddings" not in name for name in fresh)
    with pytest.raises(UsageError, match=remedy) as caught:
        refuse_fresh_head("my/encoder", fresh, HEADS.get(head))
    assert fresh[0] in str(caught.value)
    assert "my/encoder" in str(caught.value)


@pytest.mark.parametrize(
    ("family", "head", "loader", "kind"),
    [
        ("Bert", "ForMultipleChoice", "AutoModelForMultipleChoice", "multiple_choice"),
        ("Bert", "ForMaskedLM", "AutoModelForMaskedLM", "masked_lm"),
        ("Bert", "ForPreTraining", "AutoModelForMaskedLM", "masked_lm"),
        ("Roberta", "ForMaskedLM", "AutoModelForMaskedLM", "masked_lm"),
        ("Albert", "ForMaskedLM", "AutoModelForMaskedLM", "masked_lm"),
        ("Electra", "ForMaskedLM", "AutoModelForMaskedLM", "masked_lm"),
        ("XLNet", "LMHeadModel", "AutoModelForCausalLM", "causal_lm"),
    ],
)
def test_a_checkpoint_that_holds_its_head_passes(family, head, loader, kind, tmp_path):
    tiny.write(tmp_path, family, head)
    _, info = getattr(transformers, loader).from_pretrained(tmp_path, output_loading_info=True)
    refuse_fresh_head("checkpoint", fresh_parameters(info), HEADS.get(kind))


def test_a_masked_lm_has_no_multiple_choice_head_and_no_pooler(tmp_path):
    tiny.write(tmp_path, "Bert", "ForMaskedLM")
    model, info = transformers.AutoModelForMultipleChoice.from_pretrained(
        tmp_path, output_loading_info=True
    )
    fresh = fresh_parameters(info)
    assert fresh == [
        "bert.pooler.dense.bias",
        "bert.pooler.dense.weight",
        "classifier.bias",
        "classifier.weight",
    ]
    refuse_fresh_encoder("masked", fresh, model)  # all of it is head: it may be trained


def test_an_electra_discriminator_is_no_masked_lm(tmp_path):
    tiny.write(tmp_path, "Electra", "ForPreTraining")
    _, info = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    with pytest.raises(UsageError, match="no masked-LM head"):
        refuse_fresh_head("electra", fresh_parameters(info), MASKED_LM)


def test_a_pooler_matters_to_multiple_choice_only():
    fresh = ["bert.pooler.dense.weight"]
    refuse_fresh_head("m", fresh, MASKED_LM)
    with pytest.raises(UsageError, match=r"bert\.pooler\.dense\.weight is not in the checkpoint"):
        refuse_fresh_head("m", fresh, MULTIPLE_CHOICE)


def test_a_head_of_another_shape_counts_as_fresh():
    info = {"missing_keys": set(), "mismatched_keys": {("classifier.weight", (3, 24), (1, 24))}}
    assert fresh_parameters(info) == ["classifier.weight"]


def test_a_checkpoint_without_its_encoder_is_refused_even_for_training():
    model = tiny.make("Bert")
    fresh = ["bert.encoder.layer.0.output.dense.weight", "classifier.weight"]
    with pytest.raises(UsageError, match="does not hold the encoder"):
        refuse_fresh_encoder("m", fresh, model)


def test_fresh_parameters_depend_on_the_seed_alone():
    models = [tiny.make("Bert", seed=seed) for seed in (0, 0, 0)]
    names = ["classifier.bias", "classifier.weight", "bert.pooler.dense.weight"]
    untouched = models[0].bert.embeddings.word_embeddings.weight.clone()
    state = torch.get_rng_state()
    for model, seed in zip(models, (7, 7, 8), strict=True):
        draw_fresh(model, names, seed)
    assert torch.equal(torch.get_rng_state(), state)
    first, same, other = (model.classifier.weight for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert 0.8 < models[0].bert.pooler.dense.weight.std().item() / 0.02 < 1.2
    assert not models[0].classifier.bias.any()
    assert torch.equal(untouched, models[0].bert.embeddings.word_embeddings.weight)
