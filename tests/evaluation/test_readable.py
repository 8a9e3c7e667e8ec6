"""Items whose text a tokenizer would not read as it is written: one rule for all scorers."""

from types import SimpleNamespace

import pytest
import torch
import transformers

import evaluation
from evaluation.items.types import Item
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.causal.options import CausalOptions, PromptOptions
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.classifier.scorer import ClassifierScorer
from evaluation.scorers.masked.scorer import CandidateScorer, MaskedScorer
from evaluation.scorers.multiple_choice import MultipleChoiceScorer
from evaluation.scorers.readable import SpecialTexts, unknown_token, unreadable_items
from tests.evaluation import jsonl_probe, tiny_causal, tiny_masked
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)


def ask(text, *choices):
    return Item(f"{text} {choices}", "mc_qa", text, choices, 0)


def cloze(text, *choices):
    return Item(f"{text} {choices}", "mc_mlm", text, choices, 0)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Models and tokenizers by name, written and loaded once."""
    kept = {}

    def load(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp("models") / name
            if name in tiny_masked.FAMILIES:
                kept[name] = tiny_masked.load(tiny_masked.write(name, folder))
            elif name == "choice":
                kept[name] = tiny.make("Bert"), tiny.make_tokenizer("Bert")
            elif name == "slow":
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    tiny_causal.write_slow(folder)
                )
                kept[name] = model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
            else:
                kept[name] = tiny_causal.load(name, tiny_causal.write(name, folder))
        return kept[name]

    return load


PLAIN = (ask("A dog is an", "animal", "rodent"), cloze("A dog is an [MASK].", "animal", "rodent"))


@pytest.mark.parametrize(
    ("family", "make", "token"),
    [
        ("bert-uncased", MaskedScorer, "[MASK]"),
        ("bert-uncased", MaskedScorer, "[SEP]"),
        ("bert-uncased", CandidateScorer, "[CLS]"),
        ("roberta", MaskedScorer, "<mask>"),
        ("roberta", MaskedScorer, "</s>"),
        ("xlm-roberta", MaskedScorer, "<unk>"),
        ("gpt2", CausalScorer, "<|endoftext|>"),
        ("llama", CausalScorer, "</s>"),
        ("choice", MultipleChoiceScorer, "[SEP]"),
    ],
)
def test_a_literal_special_token_is_no_text(loaded, family, make, token):
    scorer = make(*loaded(family))
    items = [
        *PLAIN,
        ask(f"A dog {token} is an", "animal", "rodent"),
        ask("A dog is an", "animal", f"a{token}rodent"),
        *([] if token == "[MASK]" else [cloze(f"A {token} is an [MASK].", "animal", "rodent")]),
    ]
    if make is CandidateScorer:
        items = [item for item in items if item.setup == "mc_mlm"]
    aside = scorer.encode(items).set_aside
    plain = sum(item in PLAIN for item in items)
    assert sorted(aside) == list(range(plain, len(items)))
    for reason in aside.values():
        assert reason == f"a text that holds a special token of the model: {token!r}"


def test_another_model_s_special_token_is_text(loaded):
    items = [ask("A dog <mask> </s> is an", "animal", "rodent")]
    assert not MaskedScorer(*loaded("bert-uncased")).encode(items).set_aside
    items = [ask("A dog [SEP] is an", "animal [MASK]", "rodent")]
    assert not CausalScorer(*loaded("gpt2")).encode(items).set_aside


@pytest.mark.parametrize(
    ("family", "make"),
    [
        ("bert-uncased", MaskedScorer),
        ("slow", CausalScorer),
        ("choice", MultipleChoiceScorer),
    ],
)
def test_unknown_candidates_are_set_aside_whatever_the_scorer(loaded, family, make):
    model, tokenizer = loaded(family)
    scorer = make(model, tokenizer)
    items = [PLAIN[0], ask("A dog is an", "犬", "猫"), ask("犬 is an", "animal", "rodent")]
    aside = scorer.encode(items).set_aside
    assert aside == {1: "a candidate with characters unknown to the tokenizer: '犬'"}
    assert dict(unreadable_items(items, tokenizer)) == aside


def test_a_token_that_ends_texts_is_not_the_unknown_one():
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    assert unknown_token(SimpleNamespace(unk_token_id=0, **ids)) is None
    assert unknown_token(SimpleNamespace(unk_token_id=3, **ids)) == 3
    assert unknown_token(SimpleNamespace(unk_token_id=None, **ids)) is None


def test_choices_that_are_shown_with_letters_are_candidates_too(loaded):
    items = [PLAIN[0], ask("A dog is an", "犬", "猫")]
    scorer = CausalScorer(*loaded("slow"), prompt=Prompt(PromptOptions(letters=True)))
    assert list(scorer.encode(items).set_aside) == [1]


def test_such_items_are_no_examples(loaded):
    examples = [ask("A bus </s> is a", "vehicle", "toy"), ask("A cat is an", "animal", "toy")]
    options = CausalOptions(shots=1)
    more = ask("A truck is a", "vehicle", "toy")
    scorer = CausalScorer.from_inputs(
        ScorerInputs(*loaded("llama"), options, [*examples, more], seed=0)
    )
    shown = {scorer.render(ask(f"{n} is", "x", "y"))[0][0].context for n in range(20)}
    assert not any("</s>" in text for text in shown)
    assert any("A cat" in text for text in shown)


def test_a_text_to_classify_is_read_as_it_is(tmp_path):
    config = tiny.make("Bert").config
    config.id2label = {0: "unacceptable", 1: "acceptable"}
    model = transformers.BertForSequenceClassification(config).eval()
    scorer = ClassifierScorer(model, tiny.make_tokenizer("Bert"))
    labels = ("unacceptable", "acceptable")
    items = [Item(text, "acceptability", text, labels, 0) for text in ("A dog.", "A [MASK].", "犬")]
    encoded = scorer.encode(items)
    assert list(encoded.set_aside) == [1]
    assert "'[MASK]'" in encoded.set_aside[1]


def test_a_gap_is_the_model_s_own_mask_once(loaded):
    _, tokenizer = loaded("bert-uncased")
    special = SpecialTexts(tokenizer)
    assert special.obstacle(cloze("A [MASK] is.", "a", "b")) is None
    assert special.obstacle(cloze("[MA[MASK]SK] is.", "a", "b")) is None
    assert special.obstacle(cloze("A [MASK] is.", "a", "b [MASK]")) is not None


def test_white_space_is_text_whatever_a_tokenizer_makes_of_it():
    tokenizer = SimpleNamespace(
        added_tokens_decoder={},
        all_special_tokens=["\n", "", "<eod>"],
        unk_token_id=None,
        convert_tokens_to_ids=lambda _token: None,
    )
    special = SpecialTexts(tokenizer)
    assert special.obstacle(ask("One.\nTwo.", "a", "b")) is None
    assert special.obstacle(ask("One.<eod>Two.", "a", "b")) is not None


@pytest.mark.parametrize("learner", ["frozen", "linear"])
def test_heads_set_them_aside_and_count_them(tmp_path, monkeypatch, learner):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    tiny_masked.write("bert-uncased", tmp_path / "bert")
    rows = [cloze(f"A dog {n} is an [MASK].", "animal", "rodent") for n in range(12)]
    odd = [
        cloze(f"A {n} is an [MASK].", *choices)
        for n in (1, 2)
        for choices in (("animal", "[SEP]"), ("犬", "rodent"))
    ]
    probe = jsonl_probe.write(
        tmp_path / "probe", {"train": [*rows[:6], *odd[:2]], "test": [*rows[6:], *odd[2:]]}
    )
    model = str(tmp_path / "bert")
    done = evaluation.evaluate(str(probe), model, learner=learner, train=6, epochs=1, facts=False)
    assert done.results.metrics.set_aside == {
        "a text that holds a special token of the model": 1,
        "a candidate with characters unknown to the tokenizer": 1,
    }
    assert done.results.scoring.notes["train_set_aside"] == 2
    predicted = done.predictions["prediction"].to_pylist()
    assert [answer is None for answer in predicted] == [False] * 6 + [True] * 2


def test_a_choice_that_leaves_no_room_ends_no_run_of_heads(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    tiny_masked.write("bert-uncased", tmp_path / "bert")
    long = " ".join(["a dog is an animal and"] * 20)
    rows = [ask(f"A dog {n} is an", "animal", "rodent") for n in range(12)]
    splits = {
        "train": [*rows[:6], ask("A cat is", "an animal", long)],
        "test": [*rows[6:], ask("A dog is", "an animal", long)],
    }
    probe = jsonl_probe.write(tmp_path / "probe", splits)
    options = {"train": 6, "epochs": 1, "facts": False}
    for learner in ("frozen", "full"):
        model = str(tmp_path / "bert")
        done = evaluation.evaluate(str(probe), model, learner=learner, **options).results
        assert done.metrics.set_aside == {"a choice that leaves no room for its question": 1}
        assert done.metrics.scored == 6
