"""Models that the caller has loaded: scored as their checkpoints are, identified, left alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from datasets import DatasetDict
from tokenizers.normalizers import Lowercase

import evaluation
import kbprobe
from evaluation.runs.in_memory import digest_of_model
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY
from tests.evaluation import (
    labelled_probe,
    tiny_causal,
    tiny_masked,
    tiny_multiple_choice,
    tiny_seq2seq,
)
from tests.evaluation.test_callback import probe_in_memory
from tests.evaluation.test_classifier import COLA
from tests.evaluation.test_classifier import write as write_classifier


@pytest.fixture(scope="module", autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory) -> Any:
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def probe() -> DatasetDict:
    return probe_in_memory()


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal.write("gpt2", tmp_path_factory.mktemp("causal"))


def load(folder: Path, auto_class: str) -> tuple[Any, Any]:
    model = getattr(transformers, auto_class).from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


KINDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "masked": ("AutoModelForMaskedLM", lambda to: tiny_masked.write("bert-uncased", to)),
    "causal": ("AutoModelForCausalLM", lambda to: tiny_causal.write("llama", to)),
    "encoder-decoder": ("AutoModelForSeq2SeqLM", lambda to: tiny_seq2seq.write("t5", to)),
    "choices": ("AutoModelForMultipleChoice", lambda to: tiny_multiple_choice.write(to, "Bert")),
    "classifier": (
        "AutoModelForSequenceClassification",
        lambda to: write_classifier(to, COLA),
    ),
}


def state_of(model: Any, tokenizer: Any) -> list[object]:
    """Everything of a model and its tokenizer that an evaluation might change."""
    return [
        digest_of_model(model),
        [part.training for part in model.modules()],
        [(weight.requires_grad, weight.dtype, weight.device) for weight in model.parameters()],
        [sorted(vars(part)) for part in model.modules()],
        (tokenizer.padding_side, tokenizer.truncation_side, tokenizer.pad_token),
        tokenizer.backend_tokenizer.to_str(),
        torch.random.get_rng_state().tolist(),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_folder_and_the_model_is_left_as_it_was(
    kind: str, tmp_path: Path, probe: DatasetDict
) -> None:
    auto_class, write = KINDS[kind]
    write(tmp_path / "model")
    source: Any = probe
    if kind == "classifier":
        source = labelled_probe.write(tmp_path / "probe", ACCEPTABILITY)
    expected = kbprobe.evaluate(source, tmp_path / "model", dtype="float32", device="cpu")

    model, tokenizer = load(tmp_path / "model", auto_class)
    model.train()
    model.base_model.eval().requires_grad_(False)
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    tokenizer("A dog", max_length=7, truncation=True)
    before = state_of(model, tokenizer)
    done = kbprobe.evaluate(source, model, tokenizer=tokenizer)
    assert state_of(model, tokenizer) == before

    assert done.predictions.equals(expected.predictions)
    assert done.results.metrics == expected.results.metrics
    told, known = done.results.model, expected.results.model
    assert told.id == f"{tmp_path / 'model'} (in memory)"
    assert (told.architecture, told.parameters) == (type(model).__name__, known.parameters)
    assert (told.dtype, told.device) == ("float32", "cpu")
    assert told.weights_sha256 == digest_of_model(model)


def test_dtype_is_that_of_the_model(causal: Path, probe: DatasetDict) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    done = kbprobe.evaluate(probe, model.to(torch.bfloat16), tokenizer=tokenizer)
    assert (done.results.model.dtype, model.dtype) == ("bfloat16", torch.bfloat16)


def change_a_weight(model: Any) -> None:
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.bias[3] += 1e-3


def change_a_setting(model: Any) -> None:
    model.transformer.h[0].ln_1.eps = 1e-2


def change_the_configuration(model: Any) -> None:
    model.config.scale_attn_by_inverse_layer_idx = True


def cut_the_layers(model: Any) -> None:
    model.transformer.h = model.transformer.h[:1]


@pytest.mark.parametrize(
    "change", [change_a_weight, change_a_setting, change_the_configuration, cut_the_layers]
)
def test_scores_of_a_changed_model_are_not_taken_from_the_cache(
    change: Callable[[Any], None], causal: Path, probe: DatasetDict
) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    first = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
    again = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
    assert again.results.scoring.key == first.results.scoring.key
    assert again.results.timings.scored_sequences == 0
    change(model)
    changed = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
    assert changed.results.timings.scored_sequences > 0
    assert changed.results.model.weights_sha256 != first.results.model.weights_sha256


def steer(model: Any) -> None:
    model.transformer.h[0].register_forward_hook(
        lambda part, args, output: (
            (output[0] + 1.0, *output[1:]) if isinstance(output, tuple) else output + 1.0
        )
    )


def replace_forward(model: Any) -> None:
    own = model.transformer.forward
    model.transformer.forward = lambda *args, **kwargs: own(*args, **kwargs)


class Scaled(torch.nn.Linear):
    """A layer of the user's own, whose code may change under its name."""


def replace_a_layer(model: Any) -> None:
    model.lm_head.__class__ = Scaled


@pytest.mark.slow
@pytest.mark.parametrize("change", [steer, replace_forward, replace_a_layer])
def test_a_model_with_code_of_the_users_own_is_scored_each_time(
    change: Callable[[Any], None], causal: Path, probe: DatasetDict, tmp_path: Path
) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    plain = kbprobe.evaluate(probe, model, tokenizer=tokenizer, output=tmp_path / "results")
    change(model)
    with pytest.raises(UsageError, match="holds other results"):
        kbprobe.evaluate(probe, model, tokenizer=tokenizer, output=tmp_path / "results")
    for _ in range(2):
        done = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
        assert done.results.timings.scored_sequences > 0
        assert done.results.scoring.key != plain.results.scoring.key
    assert done.predictions.equals(plain.predictions) == (change is not steer)


def test_a_tokenizer_is_part_of_what_scores_are_found_by(causal: Path, probe: DatasetDict) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    first = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
    tokenizer.backend_tokenizer.normalizer = Lowercase()
    other = kbprobe.evaluate(probe, model, tokenizer=tokenizer)
    assert other.results.scoring.key != first.results.scoring.key
    tokenizer.add_tokens(["mouse"])
    with pytest.raises(UsageError, match="Give the tokenizer that the model was trained with"):
        kbprobe.evaluate(probe, model, tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "cpu"}, "leave device out"),
        ({"dtype": "float16"}, "leave dtype out"),
        ({"revision": "main"}, "leave revision out"),
        ({"trust_remote_code": True}, "leave trust_remote_code out"),
        ({"endpoint": "http://localhost"}, "leave endpoint out"),
        ({"train": 10}, "save_pretrained(DIR) and evaluate DIR"),
        ({"tokenizer": None}, "a loaded model needs its tokenizer: evaluate(PROBE, model, token"),
        ({"tokenizer": "gpt2"}, "evaluate(tokenizer=...) does not take a str"),
        ({"scorer": "masked_lm"}, "leave the option scorer out"),
    ],
)
def test_what_does_not_go_with_a_loaded_model_is_refused(
    options: dict[str, Any], said: str, causal: Path, probe: DatasetDict
) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    with pytest.raises(UsageError, match=re.escape(said)):
        kbprobe.evaluate(probe, model, **{"tokenizer": tokenizer, **options})


@pytest.mark.parametrize("auto_class", ["AutoModel", "AutoModelForPreTraining"])
def test_models_without_a_head_that_is_scored_are_refused(
    auto_class: str, tmp_path: Path, probe: DatasetDict
) -> None:
    tiny_masked.write("bert-uncased", tmp_path)
    model, tokenizer = load(tmp_path, auto_class)
    with pytest.raises(UsageError, match=r"has no head that is scored: .*AutoModelForMaskedLM"):
        kbprobe.evaluate(probe, model, tokenizer=tokenizer)


def test_a_loaded_encoder_has_the_vectors_of_its_folder(tmp_path: Path, probe: DatasetDict) -> None:
    tiny_masked.write("bert-uncased", tmp_path)
    model, tokenizer = load(tmp_path, "AutoModel")
    loaded = kbprobe.evaluate(probe, model, tokenizer=tokenizer, scorer="embedding")
    folder = kbprobe.evaluate(probe, tmp_path, scorer="embedding")
    both = zip(loaded.to_pandas().scores, folder.to_pandas().scores, strict=True)
    assert all(ours.tolist() == pytest.approx(theirs.tolist()) for ours, theirs in both)
    compared = kbprobe.compare(folder, loaded)
    assert len(str(compared)) < 500
    assert "+0.0 points" in str(compared)


def test_weights_that_are_not_in_memory_are_refused(causal: Path, probe: DatasetDict) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    with pytest.raises(UsageError, match="on the device meta"):
        kbprobe.evaluate(probe, model.to("meta"), tokenizer=tokenizer)


@pytest.mark.slow
def test_studies_take_a_loaded_model_unless_they_train_it(
    causal: Path, probe: DatasetDict, tmp_path: Path
) -> None:
    model, tokenizer = load(causal, "AutoModelForCausalLM")
    before = state_of(model, tokenizer)
    own: Any = evaluation.study("orders", probe, model, tokenizer=tokenizer, output=tmp_path / "a")
    assert state_of(model, tokenizer) == before
    folder: Any = evaluation.study("orders", probe, causal)
    (table, *_), (same, *_) = own.tables, folder.tables
    assert table == same
    for one, other in zip(own.rows(table), folder.rows(table), strict=True):
        name = one.pop("model")
        assert name == f"{other.pop('model')} (in memory)"
        assert one == other
    with pytest.raises(UsageError, match="--train says how a checkpoint is"):
        evaluation.study("zero_shot", probe, model, tokenizer=tokenizer, train=2)
    with pytest.raises(UsageError, match="a loaded model needs its tokenizer"):
        evaluation.study("orders", probe, model)
    with pytest.raises(UsageError, match="leave tokenizer out"):
        evaluation.study("orders", probe, causal, tokenizer=tokenizer)
