"""Causal LMs in vLLM, for which a module of its interface stands in: vLLM itself needs a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import evaluation
from kbprobe.errors import MissingDependencyError, UsageError
from tests.evaluation import jsonl_probe, tiny_causal, tiny_masked
from tests.evaluation.test_architectures import ITEMS

STAND_IN = """
from types import SimpleNamespace
import torch, transformers

def SamplingParams(**given):
    assert given == {"max_tokens": 1, "temperature": 0, "prompt_logprobs": 0, "detokenize": False}
    return given

class LLM:
    made = []

    def __init__(self, model, tokenizer, dtype, seed, trust_remote_code, **further):
        self.made.append(further)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=dtype).eval()

    @torch.inference_mode()
    def generate(self, prompts, asked, use_tqdm):
        outputs = []
        for prompt in prompts:
            ids = prompt["prompt_token_ids"]
            assert len(ids) < self.model.config.max_position_embeddings
            logits = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
            own = logits[range(len(ids) - 1), ids[1:]].tolist()
            said = [{b: SimpleNamespace(logprob=one)} for b, one in zip(ids[1:], own)]
            outputs.append(SimpleNamespace(prompt_logprobs=[None, *said]))
        return outputs
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe") / "probe"
    jsonl_probe.write(folder, {"test": ITEMS})
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal.write("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "vllm.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import vllm

    yield vllm
    del sys.modules["vllm"]


@pytest.mark.parametrize("options", [{}, {"letters": True}])
def test_scores_are_those_of_transformers(
    options: dict[str, Any], vllm: Any, probe: Path, model: Path
) -> None:
    ours = evaluation.evaluate(probe, model, **options)
    theirs = evaluation.evaluate(
        probe, model, backend="vllm", model_args="tensor_parallel_size=2", **options
    )
    for one, other in zip(
        *(x.predictions["scores"].to_pylist() for x in (ours, theirs)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert ours.predictions["tokens"].equals(theirs.predictions["tokens"])
    results = theirs.results
    assert (results.model.device, results.scoring.options["backend"]) == ("vllm", "vllm")
    assert results.scoring.notes == ours.results.scoring.notes
    assert vllm.LLM.made == [{"tensor_parallel_size": 2}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scorer": "generate"}, "is for the scorer causal_lm"),
        ({"train": 4}, "--backend vllm is for scoring"),
        ({"device": "cpu"}, "leave --device out"),
        ({"device_map": "auto"}, "leave --device-map out"),
        ({"random_weights": 1}, "leave --random-weights out"),
    ],
)
def test_what_it_does_not_do_is_refused(
    options: dict[str, Any], said: str, probe: Path, model: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        evaluation.evaluate(probe, model, backend="vllm", **options)


def test_other_models_are_refused(vllm: Any, probe: Path, tmp_path: Path) -> None:
    masked = tiny_masked.write("bert-uncased", tmp_path / "bert")
    with pytest.raises(UsageError, match=r"scores causal LMs .* BertForMaskedLM"):
        evaluation.evaluate(probe, masked, backend="vllm")


def test_what_is_missing_is_named(
    probe: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match="vllm"):
        evaluation.evaluate(probe, model, backend="vllm")
