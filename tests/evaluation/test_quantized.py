"""Quantized checkpoints are scored as transformers loads them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import load_model, load_tokenizer
from evaluation.scorers.causal.scorer import CausalScorer
from tests.evaluation import tiny_causal
from tests.evaluation.scored import questions, score
from tests.evaluation.test_causal import WORDS, reference


def torchao_int8() -> Any:
    from torchao.quantization import Int8WeightOnlyConfig

    return transformers.TorchAoConfig(Int8WeightOnlyConfig())


def bitsandbytes_int8() -> Any:
    return transformers.BitsAndBytesConfig(load_in_8bit=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "method", "tolerance"),
    [
        ("torchao", torchao_int8, 1e-4),
        # Its layers round what they read to 8 bits, each row by its largest number.
        ("bitsandbytes", bitsandbytes_int8, 0.5),
    ],
)
def test_quantized_weights_are_scored_as_plain_passes_do(
    tmp_path: Path, package: str, method: Any, tolerance: float
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    plain, folder = tiny_causal.write("llama", tmp_path / "plain"), tmp_path / "quantized"
    quantized = transformers.AutoModelForCausalLM.from_pretrained(
        plain, dtype=torch.float32, quantization_config=method()
    )
    quantized.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(plain).save_pretrained(folder)
    found = open_checkpoint(str(folder))
    assert Capability.TRAINABLE not in found.capabilities
    model = load_model(found, torch.device("cpu"), torch.float32)
    tokenizer = load_tokenizer(found)
    items = questions(WORDS, 8)
    scores, _ = score(CausalScorer(model, tokenizer), items)
    expected = reference(model, tokenizer, items)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    full = load_model(open_checkpoint(str(plain)), torch.device("cpu"), torch.float32)
    assert np.abs(scores - reference(full, tokenizer, items)).max() > 1e-3
