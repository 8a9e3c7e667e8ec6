"""A causal model in vLLM, in this process: it gives the log-probabilities of prompts' tokens.

vLLM divides batches and GPUs itself; its arguments, such as ``tensor_parallel_size``, are given
with ``--model-args``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from evaluation.models.capabilities import CAUSAL_LM, Head
from evaluation.models.handle import ModelHandle
from evaluation.models.loading import load_tokenizer
from kbprobe.errors import KbprobeError, UsageError, require

if TYPE_CHECKING:
    from evaluation.models.checkpoint import Checkpoint
    from evaluation.models.handle import Loaded
    from evaluation.options import ModelOptions

_BATCH_TOKENS = 1 << 17
"""Tokens of the prompts that vLLM is given at a time, and divides into batches itself."""


class VllmModel:
    """A checkpoint that vLLM has loaded; ``config`` is that of transformers."""

    def __init__(self, checkpoint: Checkpoint, dtype: str) -> None:
        """Load the weights.

        Raises:
            KbprobeError: vLLM cannot load them.
        """
        import vllm

        self._vllm: Any = vllm
        self.config: Any = checkpoint.config
        try:
            self._engine = self._vllm.LLM(
                model=str(checkpoint.folder),
                tokenizer=str(checkpoint.tokenizer_folder),
                dtype=dtype,
                seed=0,
                **checkpoint.loading,
            )
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise KbprobeError(f"vLLM cannot load {checkpoint.id}: {error}") from error

    def num_parameters(self) -> int:
        """Return 0: vLLM does not tell."""
        return 0

    def token_log_probs(self, prompts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the log-probability (nats) of each token after the first of each prompt."""
        asked = self._vllm.SamplingParams(
            max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False
        )
        outputs = self._engine.generate(
            [{"prompt_token_ids": list(tokens)} for tokens in prompts], asked, use_tqdm=False
        )
        return [
            [found[token].logprob for token, found in zip(tokens[1:], rest, strict=True)]
            for tokens, (_, *rest) in zip(
                prompts, (output.prompt_logprobs for output in outputs), strict=True
            )
        ]


class VllmHandle(ModelHandle):
    """A checkpoint that vLLM loads, for any number of runs."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        """Open the checkpoint; its weights are loaded later.

        Raises:
            UsageError: there is no such checkpoint, or it is not one that vLLM scores here.
            MissingDependencyError: vLLM is not installed.
        """
        require("vllm", "vllm", "--backend vllm")
        super().__init__(model, options)
        checkpoint = self.checkpoint
        if checkpoint.head is not CAUSAL_LM or checkpoint.adapter is not None:
            raise UsageError(
                f"--backend vllm scores causal LMs without an adapter, and {model} is "
                f"{checkpoint.architecture}: leave --backend out"
            )
        if "gguf_file" in checkpoint.loading:
            raise UsageError(
                "--backend vllm takes the files of transformers: leave it out for a .gguf"
            )
        self.batch_tokens = options.batch_tokens or _BATCH_TOKENS
        self._engine: Loaded | None = None

    @property
    def device_name(self) -> str:
        """Return ``vllm``, so that results tell what computed them."""
        return "vllm"

    def load(self, head: Head) -> Loaded:
        """Return the engine and the tokenizer.

        Raises:
            KbprobeError: vLLM cannot load the weights.
        """
        if self._engine is None:
            began = time.perf_counter()
            loaded: Any = VllmModel(self.checkpoint, self.dtype_name)
            self._engine = cast("Loaded", (loaded, load_tokenizer(self.checkpoint)))
            self.seconds += time.perf_counter() - began
        return self._engine
