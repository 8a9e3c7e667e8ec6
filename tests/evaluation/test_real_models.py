"""Real checkpoints on real probes: SmolLM2-135M (a causal LM) and all-MiniLM-L6-v2 (an encoder)."""

import pytest

import builders
import evaluation
from benchmarks.naive_causal import score_choices
from builders.wordnet.likeness import table_of
from evaluation.models import handle
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import load_model, load_tokenizer
from kbprobe.errors import UsageError
from tests.evaluation.real_models import minilm, smollm2

pytestmark = [pytest.mark.real_data, pytest.mark.usefixtures("own_cache")]


@pytest.fixture(scope="module")
def causal():
    return smollm2()


@pytest.fixture(scope="module")
def encoder():
    return minilm()


@pytest.fixture(scope="module")
def definitions(tmp_path_factory, open_wordnet):
    """A small real probe with long answers; tests name their model first, to skip without it."""
    folder = tmp_path_factory.mktemp("probes") / "wordnet_definitions"
    builders.build(
        "wordnet_definitions", output=folder, wordnet=open_wordnet(), limit=600, audit=True
    )
    return folder


def test_a_causal_lm_on_definitions(causal, definitions, tmp_path, monkeypatch):
    opened = []  # once: each look at a file of GGUF takes ten seconds
    for loads in (load_tokenizer, load_model):
        monkeypatch.setattr(
            handle, loads.__name__, lambda *a, loads=loads: opened.append(loads(*a)) or opened[-1]
        )
    done = evaluation.evaluate(definitions, causal, limit=2, output=tmp_path / "out")
    metrics = done.results.metrics
    assert set(metrics.accuracies) == {"acc", "acc_norm", "acc_bytes", "acc_tokens"}
    assert metrics.normalization == "char"
    assert metrics.baselines, "the probe's audit stands beside the score"
    assert done.results.model.parameters == pytest.approx(135e6, rel=0.01)
    assert done.results.model.architecture == "LlamaForCausalLM"

    tokenizer, model = opened
    for row in done.predictions.to_pylist()[:1]:
        continuations = [f" {choice}" for choice in row["choices"]]
        expected = score_choices(model, tokenizer, row["question"], continuations)
        assert row["scores"] == pytest.approx(expected, abs=1e-3, rel=1e-5)


def test_an_encoder_is_refused_until_it_is_trained(encoder, definitions, tmp_path):
    with pytest.raises(UsageError, match="--train N"):
        evaluation.evaluate(definitions, encoder)
    with pytest.raises(UsageError, match="no masked-LM head"):
        evaluation.evaluate(definitions, encoder, scorer="masked_lm", limit=10)
    kept = tmp_path / "trained"
    done = evaluation.evaluate(
        definitions, encoder, limit=40, train=32, epochs=1, keep_checkpoint=str(kept)
    )
    assert done.results.scoring.scorer == "multiple_choice"
    asked = {"learner": "full", "train": 32, "learning_rate": 2e-5, "epochs": 1}
    assert asked.items() <= done.results.model.finetuning.items()
    again = evaluation.evaluate(definitions, kept, limit=40)
    assert again.results.scoring.key != done.results.scoring.key
    columns = ["scores", "prediction", "correct"]
    assert again.predictions.select(columns).equals(done.predictions.select(columns))


def test_results_of_an_encoder_that_tables_are_of_are_recognised() -> None:
    """Tables name the weights as results do, so that a report says that a model is one of them."""
    (own, *_) = table_of("contexts").encoders
    assert own.sha256 == open_checkpoint(str(minilm())).weights_sha256
