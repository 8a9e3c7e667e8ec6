"""The model under evaluation: identified at once, loaded when scores are not in the cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evaluation.models.capabilities import Head
from evaluation.models.checkpoint import NO_MODEL, no_checkpoint, open_checkpoint
from evaluation.models.loading import choose_device, choose_dtype, load_model, load_tokenizer
from evaluation.options import ModelOptions
from kbprobe.errors import require

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]

IDENTITY = {"revision", "model_args", "trust_remote_code", "random_weights"}
"""Options that say which model it is."""

BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 4096}
"""Default budgets: padded tokens in a batch, by type of device."""


def default_batch(device: torch.device) -> int:
    """Return the default budget of a device."""
    return BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"])


def require_packages() -> None:
    """Raise an error that says how to install what evaluating models needs, unless it is there."""
    for package in ("torch", "transformers", "matplotlib"):
        require(package, "eval", "evaluating models")


class ModelHandle:
    """One checkpoint on one device, for any number of runs.

    ``seconds`` and ``training_seconds`` were spent on loading and on fine-tuning so far.
    """

    seconds = training_seconds = 0.0

    def __init__(self, model: str, options: ModelOptions) -> None:
        """Open the checkpoint; its weights are loaded later.

        Raises:
            UsageError: there is no such checkpoint, device or dtype.
            KbprobeError: its files cannot be fetched or read, or torch is not installed.
        """
        require_packages()
        given = options.model_dump(include=IDENTITY)
        none = model == NO_MODEL
        self.checkpoint = no_checkpoint() if none else open_checkpoint(model, **given)
        self.device = choose_device(options.device)
        self.dtype = choose_dtype(options.dtype, self.device)
        self.batch_tokens = options.batch_tokens or default_batch(self.device)
        self._loaded: tuple[Head, Loaded] | None = None

    @property
    def device_name(self) -> str:
        """The device's type: ``cpu``, ``cuda``."""
        return self.device.type

    @property
    def dtype_name(self) -> str:
        """The weights' type without torch's prefix: ``float32``."""
        return str(self.dtype).removeprefix("torch.")

    def load(self, head: Head) -> Loaded:
        """Return model and tokenizer, loading them unless they are the ones loaded last.

        Raises:
            UsageError: the checkpoint holds no trained head of this kind.
            KbprobeError: the weights cannot be read.
        """
        if self._loaded is None or self._loaded[0] is not head:
            self._loaded = None  # Two models need not be in memory at once.
            began = time.perf_counter()
            tokenizer = load_tokenizer(self.checkpoint)
            model = load_model(self.checkpoint, self.device, self.dtype, head)
            self._loaded = head, (model, tokenizer)
            self.seconds += time.perf_counter() - began
        return self._loaded[1]
