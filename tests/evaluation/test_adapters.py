"""Adapters of PEFT: found with their base model, merged, and named in results."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import evaluation
from evaluation.items.types import Item
from evaluation.models.capabilities import CLASSIFIER, Capability
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import load_model, load_tokenizer
from evaluation.runs.checks import check_model
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import jsonl_probe, tiny_causal

CPU = torch.device("cpu")
TOKENS = torch.tensor([[1, 5, 9, 20, 7]])


pytestmark = pytest.mark.usefixtures("own_cache")


def write_adapter(folder: Path, model: Any, base: str, **options: Any) -> Any:
    """Save a LoRA adapter with seeded weights, and return the model that it makes."""
    import peft

    torch.manual_seed(5)
    config = peft.LoraConfig(r=4, init_lora_weights=False, **options)
    wrapped = peft.get_peft_model(model, config)
    wrapped.save_pretrained(folder)
    described = json.loads((folder / "adapter_config.json").read_text())
    described["base_model_name_or_path"] = base
    (folder / "adapter_config.json").write_text(json.dumps(described))
    return wrapped.eval()


@pytest.fixture
def adapter(tmp_path: Path) -> tuple[Path, Path, Any]:
    """A base model, an adapter of it, and the model that both make."""
    base = tiny_causal.write("gpt2", tmp_path / "base")
    folder = tmp_path / "adapter"
    model, _ = tiny_causal.load("gpt2", base)
    targets = ["c_attn", "c_fc"]
    made = write_adapter(folder, model, str(base), target_modules=targets, fan_in_fan_out=True)
    return folder, base, made


@pytest.mark.slow
@pytest.mark.needs("peft")
def test_an_adapter_is_merged_into_its_base_model(adapter: tuple[Path, Path, Any]) -> None:
    folder, base, made = adapter
    check_model(str(folder), None)
    found, alone = open_checkpoint(str(folder)), open_checkpoint(str(base))
    assert (found.id, found.head, found.architecture) == (
        str(folder),
        alone.head,
        alone.architecture,
    )
    assert found.weights_sha256 != alone.weights_sha256
    assert found.tokenizer_sha256 == alone.tokenizer_sha256
    model = load_model(found, CPU, torch.float32)
    assert type(model).__name__ == "GPT2LMHeadModel"
    assert all(parameter.requires_grad for parameter in model.parameters())
    with torch.no_grad():
        expected = made(TOKENS).logits
        torch.testing.assert_close(model(TOKENS).logits, expected, atol=1e-4, rtol=0)
        plain = load_model(alone, CPU, torch.float32)(TOKENS).logits
    assert (plain - expected).abs().max() > 0.1
    assert len(load_tokenizer(found)) == len(load_tokenizer(alone))


@pytest.mark.slow
@pytest.mark.needs("peft")
def test_results_name_base_and_adapter(adapter: tuple[Path, Path, Any], tmp_path: Path) -> None:
    folder, base, _ = adapter
    items = [Item(str(row), "mc_qa", "A dog is", ("an animal", "a bus"), 0) for row in range(3)]
    probe = jsonl_probe.write(tmp_path / "probe", {"test": items})
    done = evaluation.evaluate(probe, str(folder), output=tmp_path / "out")
    results = evaluation.load(tmp_path / "out").results
    assert results.model == done.results.model
    named = results.model.adapter
    assert named is not None
    found = open_checkpoint(str(folder))
    assert (named.base, named.base_revision) == (str(base), None)
    assert named.base_weights_sha256 == open_checkpoint(str(base)).weights_sha256
    assert found.adapter is not None
    assert named.sha256 == found.adapter.sha256
    assert results.model.weights_sha256 == found.weights_sha256


@pytest.mark.slow
@pytest.mark.needs("peft")
def test_a_classifier_may_lie_in_the_adapter(tmp_path: Path) -> None:
    base = tiny_causal.write("gpt2", tmp_path / "base")
    torch.manual_seed(1)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base, pad_token_id=0)
    made = write_adapter(
        tmp_path / "adapter", model, str(base), task_type="SEQ_CLS", fan_in_fan_out=True,
        target_modules=["c_attn"],
    )  # fmt: skip
    found = open_checkpoint(str(tmp_path / "adapter"))
    assert found.head is CLASSIFIER
    assert Capability.CLASS_SCORES in found.capabilities
    model = load_model(found, CPU, torch.float32)
    with torch.no_grad():
        scores = model(TOKENS[:1, :1]).logits
        np.testing.assert_allclose(scores, made(TOKENS[:1, :1]).logits, atol=1e-4)


@pytest.mark.slow
@pytest.mark.needs("peft")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_model_name_or_path": None}, "of an unknown base model: give it as"),
        ({"base_model_name_or_path": "/nowhere/at/all"}, "change base_model_name_or_path in"),
        ({"base_model_name_or_path": "../adapter"}, "is an adapter, too"),
        ({"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 4}, "cannot be scored"),
        ({"r": 8}, "cannot be put into its base model"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    adapter: tuple[Path, Path, Any], changes: dict[str, Any], message: str
) -> None:
    folder, _, _ = adapter
    described = json.loads((folder / "adapter_config.json").read_text()) | changes
    (folder / "adapter_config.json").write_text(json.dumps(described))
    with pytest.raises(KbprobeError, match=message):
        load_model(open_checkpoint(str(folder)), CPU, torch.float32)


@pytest.mark.slow
@pytest.mark.needs("peft")
def test_random_weights_and_whole_models_beside_are_refused(
    adapter: tuple[Path, Path, Any],
) -> None:
    folder, base, _ = adapter
    with pytest.raises(UsageError, match="Name its base model"):
        open_checkpoint(str(folder), random_weights=0)
    shutil.copy(base / "model.safetensors", folder)
    with pytest.raises(UsageError, match="both a whole model and an adapter"):
        open_checkpoint(str(folder))


@pytest.mark.skipif(find_spec("peft") is not None, reason="peft is installed")
def test_without_peft_the_message_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "gpt2"}')
    with pytest.raises(KbprobeError, match=r"is an adapter .*pip install '\.\[peft\]'"):
        open_checkpoint(str(tmp_path))


@pytest.mark.needs("peft")
def test_an_adapter_with_further_tokens_resizes_its_base_model(tmp_path: Path) -> None:
    base = tiny_causal.write("gpt2", tmp_path / "base")
    model, tokenizer = tiny_causal.load("gpt2", base)
    tokenizer.add_tokens(["zorbish", "quuxly"])
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    made = write_adapter(
        tmp_path / "adapter", model, str(base), target_modules=["c_attn"], fan_in_fan_out=True
    )
    tokens = torch.tensor([[1, 400, 5, 401, 7]])
    loaded = load_model(open_checkpoint(str(tmp_path / "adapter")), CPU, torch.float32)
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, made(tokens).logits, atol=1e-4, rtol=0)
