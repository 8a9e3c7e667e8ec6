"""Fine-tuning of whole masked LMs over the candidates at the mask."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
import transformers

import evaluation
from evaluation.items.types import Item, choice_starts
from evaluation.learners.entries import RECORD, FinetuneOptions
from evaluation.learners.finetune.kept import keep
from evaluation.learners.finetune.training import CANDIDATES, ChoiceTraining, finetune
from evaluation.models.loading import fresh_parameters
from evaluation.scorers.masked import head as masked_head
from evaluation.scorers.masked.scorer import CandidateScorer, MaskedScorer
from kbprobe.errors import UsageError
from tests.evaluation import jsonl_probe, tiny_masked

torch.set_num_threads(1)

ADJECTIVES = ("red", "small", "large", "domestic")
QUICK = FinetuneOptions(training={"train_batch": 8}, epochs=1, learning_rate=1e-3)
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def planted(count, first=0, answers=("older", "larger")):
    """Clozes whose answer one word decides, in either order of the candidates."""
    rows = []
    for number in range(first, first + count):
        gold, adjective = number % 2, ADJECTIVES[number // 2 % 4]
        text = f"The {('dog', 'car')[gold]} is [MASK] than a {adjective} house."
        turned = number // 3 % 2
        choices = answers[::-1] if turned else answers
        rows.append(Item(f"row-{number}", "mc_mlm", text, choices, gold ^ turned))
    return rows


TRAIN, TEST = planted(48), planted(40, first=1000)
SEVERAL = ("grand piano", "larger")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("full-mlm")


@pytest.fixture(scope="module")
def families(folder):
    """Checkpoints of all families, each written once."""
    written = {}

    def get(name):
        if name not in written:
            written[name] = tiny_masked.write(name, folder / name)
        return written[name]

    return get


@pytest.fixture(scope="module")
def bert(families):
    return families("bert-uncased")


@pytest.fixture(scope="module")
def calm(bert, folder):
    """The same checkpoint without dropout, which drowns what so small a network computes."""
    copied = shutil.copytree(bert, folder / "calm")
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | CALM))
    return copied


def load(folder, **changes):
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder, **changes)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def trained(folder, items=TRAIN, options=QUICK, seed=0, **changes):
    model, tokenizer = load(folder, **changes)
    report = finetune(model, tokenizer, items, options, seed, network=CANDIDATES)
    return model, tokenizer, report


def scores(scorer, items):
    encoded = scorer.encode(items)
    found = np.zeros(int(choice_starts(items)[-1]))
    sequences = np.arange(len(encoded.lengths))
    np.add.at(found, encoded.slot_choice, scorer.score(encoded, sequences))
    return found


def accuracy(scorer, items):
    rows = np.split(scores(scorer, items), choice_starts(items)[1:-1])
    return np.mean([row.argmax() == item.answer for row, item in zip(rows, items, strict=True)])


def weights(model):
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())


# Scores


@pytest.mark.parametrize("family", list(tiny_masked.FAMILIES))
def test_single_pieces_have_the_masked_scorer_s_logits(family, families):
    model, tokenizer = load(families(family))
    items = [
        Item("a", "mc_mlm", "A dog is a kind of [MASK].", ("animal", "rodent", "dog"), 0),
        Item("b", "mc_mlm", "A dog is a kind of [MASK].", ("mouse", "animal"), 0),
        Item("c", "mc_mlm", "The robin [MASK] swims well .", ("never", "always", "often"), 0),
    ]
    expected = MaskedScorer(model, tokenizer, multi_piece="skip")
    np.testing.assert_array_equal(
        scores(CandidateScorer(model, tokenizer), items), scores(expected, items)
    )
    assert not expected.encode(items).set_aside


@pytest.mark.parametrize("family", ["bert-uncased", "roberta", "xlm-roberta", "albert"])
def test_several_pieces_have_the_mean_of_their_logits(family, families):
    model, tokenizer = load(families(family))
    items = planted(3, answers=SEVERAL)
    scorer = CandidateScorer(model, tokenizer)
    encoded = scorer.encode(items)
    assert encoded.notes["several_pieces"] == 3
    found = scores(scorer, items)
    for choice, text in enumerate(text for item in items for text in item.choices):
        pieces = encoded.pieces[encoded.piece_starts[choice] : encoded.piece_starts[choice + 1]]
        assert tokenizer.decode(pieces).strip() == text
        assert encoded.choice_tokens[choice] == len(pieces)
        marked = items[choice // 2].question.replace("[MASK]", tokenizer.mask_token)
        inputs = tokenizer(marked, return_tensors="pt")
        at = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            logits = model(**inputs).logits[0, at]
        assert found[choice] == pytest.approx(float(logits[pieces].mean()), abs=1e-4)


def test_texts_are_read_once_and_batches_change_nothing(bert):
    model, tokenizer = load(bert)
    scorer = CandidateScorer(model, tokenizer)
    items = planted(40, answers=SEVERAL)
    encoded = scorer.encode(items)
    assert len(encoded.lengths) == len({item.question for item in items}) == 8
    alone = np.concatenate([scorer.score(encoded, np.array([at])) for at in range(8)])
    np.testing.assert_allclose(scorer.score(encoded, np.arange(8)), alone, atol=1e-5)


def test_a_candidate_that_is_unknown_sets_the_row_aside(bert):
    model, tokenizer = load(bert)
    items = [*TRAIN[:2], Item("x", "mc_mlm", "A [MASK].", ("犬", "dog"), 1)]
    assert list(CandidateScorer(model, tokenizer).encode(items).set_aside) == [2]
    _, _, report = trained(bert, items)
    assert report["notes"] == {"train_set_aside": 1}
    with pytest.raises(UsageError, match="none of the 1 rows to train on can be scored"):
        trained(bert, items[2:])


# Training


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert-uncased", "roberta"])
@pytest.mark.parametrize("answers", [("older", "larger"), SEVERAL], ids=["single", "several"])
def test_it_learns_what_can_be_learnt(family, answers, families):
    train, test = planted(48, answers=answers), planted(40, 1000, answers)
    options = FinetuneOptions(training={"train_batch": 8}, epochs=8, learning_rate=2e-3)
    model, tokenizer, report = trained(families(family), train, options, **CALM)
    assert accuracy(CandidateScorer(model, tokenizer), test) == 1
    assert report["learner"] == "full_mlm"
    assert not model.training


@pytest.mark.slow
@pytest.mark.parametrize("family", list(tiny_masked.FAMILIES))
@pytest.mark.parametrize("answers", [("older", "larger"), SEVERAL], ids=["single", "several"])
def test_gradients_are_those_of_the_plain_model(family, answers, families):
    """The plain model: transformers' forward pass, all positions and the whole vocabulary."""
    model, tokenizer = load(families(family))
    items = planted(6, answers=answers)
    scorer = CandidateScorer(model, tokenizer)
    encoded = scorer.encode(items)
    training = ChoiceTraining(scorer, encoded, items, QUICK, 0, 1e-3)
    loss = training._backward(np.arange(6), 0)
    found = {name: weight.grad for name, weight in model.named_parameters()}
    model, _ = load(families(family))

    # Batches of rows are read as they were encoded: how texts become tokens is tested elsewhere.
    rows, answer = [], torch.tensor([item.answer for item in items])
    for number in range(6):
        choices = range(2 * number, 2 * number + 2)
        logits = []
        for choice in choices:
            [slot] = np.flatnonzero(encoded.slot_choice == choice)
            text = int(np.searchsorted(encoded.slot_starts, slot, side="right") - 1)
            ids = encoded.padded(np.array([text]), encoded.tokens, 0)
            every = model(input_ids=torch.from_numpy(ids)).logits
            at = slice(encoded.piece_starts[choice], encoded.piece_starts[choice + 1])
            pieces = torch.from_numpy(encoded.pieces[at])
            logits.append(every[0, encoded.position[text]][pieces].mean())
        rows.append(torch.stack(logits))
    expected = torch.nn.functional.cross_entropy(torch.stack(rows), answer)
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), abs=1e-4)
    largest = max(
        float(weight.grad.abs().max()) for weight in model.parameters() if weight.grad is not None
    )
    for name, weight in model.named_parameters():
        assert (found[name] is None) == (weight.grad is None), name
        if weight.grad is not None:
            difference = float((found[name] - weight.grad).abs().max())
            assert difference <= 1e-4 * max(1.0, largest), name


def test_only_candidates_go_through_the_vocabulary(bert, monkeypatch):
    """Products with the output vectors of other words are not even computed."""
    model, tokenizer = load(bert)
    shapes = []
    linear = torch.nn.functional.linear

    def watched(states, weight, bias=None):
        shapes.append((*states.shape[:-1], len(weight)))
        return linear(states, weight, bias)

    scorer = CandidateScorer(model, tokenizer)
    encoded = scorer.encode(TRAIN[:4])
    monkeypatch.setattr(masked_head.nn.functional, "linear", watched)
    scorer.slot_logits(encoded, np.arange(len(encoded.slot_choice)))
    # One position of each of four texts, and two candidates.
    assert shapes[-1] == (4, 1, 2)
    assert tokenizer.vocab_size not in {shape[-1] for shape in shapes}


# Keeping, and runs


def test_a_kept_checkpoint_loads_as_a_masked_lm_with_the_same_scores(bert, tmp_path):
    model, tokenizer, report = trained(bert)
    keep(model, tokenizer, tmp_path / "kept", report, {"id": "my/encoder"})
    again, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "kept", output_loading_info=True
    )
    assert fresh_parameters(info) == []
    assert weights(again) == weights(model)
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight
    reread = transformers.AutoTokenizer.from_pretrained(tmp_path / "kept")
    np.testing.assert_allclose(
        scores(CandidateScorer(again, reread), TEST),
        scores(CandidateScorer(model, tokenizer), TEST),
        atol=1e-5,
    )


@pytest.fixture
def probe(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    return jsonl_probe.write(tmp_path / "probe", {"train": TRAIN, "test": TEST})


@pytest.mark.slow
def test_runs_of_both_kinds_of_fine_tuning_keep_apart(calm, probe, tmp_path):
    options = {"train": 48, "learning_rate": 2e-3, "training": {"train_batch": 8}, "epochs": 8}
    masked = evaluation.evaluate(
        probe, calm, learner="full_mlm", keep_checkpoint=str(tmp_path / "kept"), **options
    )
    pairs = evaluation.evaluate(probe, calm, learner="full", **options)
    assert masked.results.metrics.accuracy.value == 1
    assert masked.results.scoring.scorer == "candidates"
    assert masked.results.model.finetuning["learner"] == "full_mlm"
    assert pairs.results.scoring.scorer == "multiple_choice"
    record = json.loads((tmp_path / "kept" / RECORD).read_text())
    assert record["learner"] == "full_mlm"
    # What was kept is a masked LM like any other: single pieces are scored by their logits.
    plain = evaluation.evaluate(probe, tmp_path / "kept")
    assert plain.predictions["scores"].to_pylist() == masked.predictions["scores"].to_pylist()
    assert not list((tmp_path / "cache" / "finetuned").glob("*"))


def test_random_weights_can_be_trained_and_are_named(bert, probe, tmp_path):
    options = {"train": 8, "epochs": 1, "learner": "full_mlm", "random_weights": 7}
    kept = tmp_path / "kept"
    found = evaluation.evaluate(probe, bert, keep_checkpoint=str(kept), **options)
    assert found.results.model.random_weights == 7
    assert json.loads((kept / RECORD).read_text())["base"]["random_weights"] == 7


def test_rows_of_questions_and_other_models_are_refused(bert, probe, tmp_path):
    rows = [Item("q", "mc_qa", "What is a dog?", ("an animal", "a house"), 0)]
    asked = jsonl_probe.write(tmp_path / "asked", {"train": rows, "test": rows})
    with pytest.raises(UsageError, match="full_mlm takes only mc_mlm"):
        evaluation.evaluate(asked, bert, learner="full_mlm", train=1)
    encoder = tmp_path / "encoder"
    model, tokenizer = load(bert)
    model.bert.save_pretrained(encoder)
    tokenizer.save_pretrained(encoder)
    with pytest.raises(UsageError, match=r"--learner full_mlm: .*BertModel"):
        evaluation.evaluate(probe, encoder, learner="full_mlm", train=8)
    config = json.loads((encoder / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]
    (encoder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="no masked-LM head"):
        evaluation.evaluate(probe, encoder, learner="full_mlm", train=8)
