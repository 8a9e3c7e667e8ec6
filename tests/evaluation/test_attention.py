"""Attention over a frozen encoder: what is read, the forward pass, and that it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import evaluation
from evaluation.items.folds import open_rows
from evaluation.items.types import Item
from evaluation.learners.attention import AttentionNetwork, AttentionScorer, trained
from evaluation.learners.entries import NetworkOptions
from evaluation.learners.words.networks import Padded
from evaluation.scorers.encoder import EncoderRunner
from evaluation.scorers.readable import SpecialTexts
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from tests.evaluation import folded_probe
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)

LABELS = SETUPS[NLI].labels
UNITS = 5


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.write(tmp_path_factory.mktemp("attention") / "bert", "Bert", "Model"))


def scorer_of(bert: str, seed: int = 0, batch_tokens: int = 64) -> AttentionScorer:
    model = transformers.AutoModel.from_pretrained(bert)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    torch.manual_seed(seed)
    network = AttentionNetwork(model.config.hidden_size, UNITS, 0.1).eval()
    runner = EncoderRunner(model, tokenizer)
    return AttentionScorer(network, runner, SpecialTexts(tokenizer), batch_tokens)


def lstm(layer: nn.LSTM, inputs: list[torch.Tensor], direction: str) -> list[torch.Tensor]:
    """Run one direction of an LSTM, step by step."""
    weights = {
        name: getattr(layer, f"{name}_l0{direction}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    state = cell = torch.zeros(layer.hidden_size)
    found = []
    for one in inputs:
        gates = weights["weight_ih"] @ one + weights["bias_ih"]
        gates = gates + weights["weight_hh"] @ state + weights["bias_hh"]
        enter, forget, candidate, leave = gates.chunk(4)
        cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
        state = leave.sigmoid() * cell.tanh()
        found.append(state)
    return found


def plain(network: AttentionNetwork, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the logits of one pair, token by token."""
    both = [[network.project(token) for token in text] for text in (first, second)]
    pooled = []
    for own, other in (both, both[::-1]):
        compared = []
        for token in own:
            weights = torch.stack([token @ one for one in other]).softmax(0)
            aligned = sum(weight * one for weight, one in zip(weights, other, strict=True))
            parts = [token, aligned, token - aligned, token * aligned]
            compared.append(network.compare.project(torch.cat(parts)))
        layer = network.compare.compose.lstm
        forward = lstm(layer, compared, "")
        backward = lstm(layer, compared[::-1], "_reverse")[::-1]
        states = torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])
        pooled += [states.mean(0), states.amax(0)]
    logits: torch.Tensor = network.labels(torch.cat(pooled))
    return logits


@torch.no_grad()
def test_the_forward_pass_is_that_of_single_pairs_token_by_token() -> None:
    torch.manual_seed(3)
    network = AttentionNetwork(7, UNITS, 0.3).eval()
    texts = [[torch.randn(length, 7) for length in lengths] for lengths in ((4, 1, 3), (2, 5, 1))]
    sides = [
        Padded(
            nn.utils.rnn.pad_sequence(side, batch_first=True, padding_value=9.0),
            torch.tensor([len(text) for text in side]),
        )
        for side in texts
    ]
    expected = torch.stack([plain(network, *pair) for pair in zip(*texts, strict=True)])
    torch.testing.assert_close(network(*sides), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_scores_are_of_the_encoders_states_whatever_the_batch(bert: str, tmp_path: Path) -> None:
    scorer = scorer_of(bert)
    rows = open_rows(folded_probe.write(tmp_path / "probe", NLI, 6), "all").items
    turned = [
        Item(str(at), NLI, item.question, LABELS[::-1], 0, item.premise)
        for at, item in enumerate(rows)
    ]
    model = transformers.AutoModel.from_pretrained(bert).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)

    def states(text: str) -> torch.Tensor:
        found: torch.Tensor = model(**tokenizer(text, return_tensors="pt"))[0][0]
        return found

    expected = [
        plain(scorer.model, states(item.premise), states(item.question)).tolist() for item in rows
    ]
    encoded = scorer.encode(rows)
    assert len(encoded.starts) - 1 == len({text for i in rows for text in (i.premise, i.question)})
    found = scorer.score(encoded, np.arange(len(rows)))
    assert found.reshape(-1, 3) == pytest.approx(np.array(expected), abs=1e-4)
    one_by_one = scorer_of(bert, batch_tokens=1).encode(turned)
    order = np.arange(len(rows))[::-1].copy()
    again = scorer.score(one_by_one, order).reshape(-1, 3)
    assert again[::-1, ::-1] == pytest.approx(np.array(expected), abs=1e-4)


def test_rows_with_special_tokens_are_set_aside_and_long_ones_cut(bert: str) -> None:
    items = [
        Item("0", NLI, "It is [SEP] red.", LABELS, 0, "A dog."),
        Item("1", NLI, "A dog " * 600, LABELS, 0, "A cat."),
        Item("2", NLI, "A dog.", LABELS, 0, "A cat."),
    ]
    encoded = scorer_of(bert).encode(items)
    assert list(encoded.set_aside) == [0]
    assert encoded.notes == {"truncated": 1}


def test_training_is_decided_by_the_seed_and_leaves_the_encoder(bert: str, tmp_path: Path) -> None:
    items = open_rows(folded_probe.write(tmp_path / "probe", NLI, 10), "all").items
    options = NetworkOptions(epochs=2, learning_rate=1e-3, training={"train_batch": 4})

    def weights(seed: int) -> dict[str, torch.Tensor]:
        scorer = scorer_of(bert, seed)
        before = {n: w.clone() for n, w in scorer._runner.model.state_dict().items()}
        torch.manual_seed(99 + seed)
        drawn = torch.get_rng_state()
        done = trained(scorer, items, options, seed).state_dict()
        assert torch.equal(torch.get_rng_state(), drawn)
        after = scorer._runner.model.state_dict()
        assert all(torch.equal(after[name], weight) for name, weight in before.items())
        assert not scorer.model.training
        return done

    first, again, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["labels.1.weight"], other["labels.1.weight"])


def test_a_run_trains_on_one_set_and_scores_another(bert: str, tmp_path: Path) -> None:
    mnli = folded_probe.write(tmp_path / "mnli", NLI, 30)
    other = folded_probe.write(tmp_path / "other", NLI, 8)
    options = {
        "learner": "attention",
        "train": 20,
        "epochs": 1,
        "training": {"hidden_units": UNITS},
        "train_on": mnli,
    }
    done = evaluation.evaluate(other, bert, split="validation", **options)
    scoring = done.results.scoring
    assert (scoring.scorer, scoring.score) == ("attention", "logit")
    assert scoring.options["hidden_units"] == UNITS
    assert done.results.metrics.scored == len(done.predictions)
    model = transformers.AutoModel.from_pretrained(bert)
    assert done.results.model.parameters > model.num_parameters()
    again = evaluation.evaluate(other, bert, split="validation", **options, cache=False)
    assert again.predictions["scores"] == done.predictions["scores"]
    sentences = folded_probe.write(tmp_path / "sentences", ACCEPTABILITY)
    with pytest.raises(UsageError, match="attention takes only nli"):
        evaluation.evaluate(sentences, bert, learner="attention", train=30)


@pytest.mark.slow
def test_it_is_transferred_between_probes(bert: str, tmp_path: Path) -> None:
    probes = [folded_probe.write(tmp_path / name, NLI, 20) for name in ("one", "two")]
    options = {"learner": "attention", "train": 8, "epochs": 1, "seeds": 1}
    done = evaluation.study("transfer", probes, bert, **options)
    assert [(row["trained_on"], row["tested_on"]) for row in done.tables["runs"]] == [
        (a, b) for a in ("one", "two") for b in ("one", "two")
    ]
