"""The model under evaluation: identified at once, loaded when scores are not in the cache.

Models in memory are identified without files, and scored without affecting their training.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.models.capabilities import ENCODER, HEADS, Capability, Head, is_encoder_decoder
from evaluation.models.checkpoint import NO_MODEL, Checkpoint, no_checkpoint, open_checkpoint
from evaluation.models.gguf_files import parsed_once
from evaluation.models.loading import (
    choose_device,
    choose_dtype,
    is_cpu,
    load_model,
    load_tokenizer,
    without_dropout,
)
from evaluation.options import ModelOptions
from kbprobe.errors import UsageError, require

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]

IDENTITY = {"revision", "model_args", "trust_remote_code", "random_weights"}
"""Options that say which model it is."""

BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 4096}
"""Default budgets: padded tokens in a batch, by type of device."""


def default_batch(device: str) -> int:
    """Return the default budget of a type of device."""
    return BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"])


def require_packages() -> None:
    """Raise an error that says how to install what evaluating models needs, unless it is there."""
    for package in ("torch", "transformers", "matplotlib"):
        require(package, "eval", "evaluating models")


class ModelHandle:
    """One checkpoint on one device, for any number of runs.

    ``seconds`` and ``training_seconds`` were spent on loading and on fine-tuning so far.
    """

    seconds = training_seconds = _told = 0.0

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
        self._place = options.device, options.dtype
        self._device_map = options.device_map
        budget = default_batch(self.device_name)
        self.batch_tokens = options.batch_tokens or budget
        self._loaded: tuple[Head, Loaded] | None = None

    _place: tuple[str, str]
    """The device and the dtype that were asked for, by name."""

    @cached_property
    def device(self) -> torch.device:
        """The device."""
        return choose_device(self._place[0])

    @cached_property
    def dtype(self) -> torch.dtype:
        """The weights' type."""
        return choose_dtype(self._place[1], self.device)

    # Their names find scores in the cache. Where it is the CPU in any case, torch is not asked:
    # importing it takes seconds.

    @property
    def device_name(self) -> str:
        """The device's type: ``cpu``, ``cuda``."""
        return "cpu" if is_cpu(self._place[0]) else self.device.type

    @property
    def dtype_name(self) -> str:
        """The weights' type without torch's prefix: ``float32``."""
        device, dtype = self._place
        if is_cpu(device):
            return "float32" if dtype == "auto" else dtype
        return str(self.dtype).removeprefix("torch.")

    def loading_seconds(self) -> float:
        """Return the seconds spent on loading since this was last asked, also before a run."""
        since, self._told = self.seconds - self._told, self.seconds
        return since

    def load(self, head: Head) -> Loaded:
        """Return model and tokenizer, loading them unless they are the ones loaded last.

        Raises:
            UsageError: the checkpoint holds no trained head of this kind.
            KbprobeError: the weights cannot be read.
        """
        if self._loaded is None or self._loaded[0] is not head:
            self._loaded = None  # Two models need not be in memory at once.
            began = time.perf_counter()
            gguf = "gguf_file" in self.checkpoint.loading
            with parsed_once(last=True) if gguf else nullcontext():
                tokenizer = load_tokenizer(self.checkpoint)
                model = load_model(self.checkpoint, self.device, self.dtype, head, self._device_map)
            self._loaded = head, (model, tokenizer)
            self.seconds += time.perf_counter() - began
        return self._loaded[1]


class ModelInMemory(ModelHandle):
    """A loaded model, and its tokenizer, as if it had been opened from a checkpoint.

    Its weights may change at any time, so they have no digest, and its scores must not be cached.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        dtype: torch.dtype | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        """Take a model on its device, with the head that its class has.

        Args:
            model: it is neither copied nor changed.
            tokenizer: the model's.
            dtype: what it computes in, where autocast makes that another type than its weights'.
            batch_tokens: padded tokens in a batch; None: by the device.

        Raises:
            UsageError: its weights are spread over several processes.
        """
        _refuse_parts(model)
        # PEFT's wrappers carry the configuration of the network, and a class name of their own.
        unwrap: Any = getattr(model, "get_base_model", None)
        network = model if unwrap is None else unwrap()
        architecture, head = _architecture(network)
        capabilities = head.gives
        if head is ENCODER and is_encoder_decoder(model.config):
            capabilities = Capability.NOTHING
        self.checkpoint = Checkpoint(
            id=str(getattr(model.config, "name_or_path", "") or "the model in memory"),
            head=head,
            capabilities=capabilities,
            architecture=architecture,
            encoder_decoder=is_encoder_decoder(model.config),
            read_config=lambda: model.config,
        )
        self.device, self.dtype = model.device, dtype or model.dtype
        self._place = str(self.device), str(self.dtype).removeprefix("torch.")
        self.batch_tokens = batch_tokens or default_batch(self.device.type)
        # Scorers reset a tokenizer's truncation and padding: the caller's keeps its own.
        self._both: Loaded = model, without_dropout(copy.deepcopy(tokenizer))

    def load(self, head: Head) -> Loaded:
        """Return model and tokenizer.

        Raises:
            UsageError: another head is asked for than the model has.
        """
        if head is not self.checkpoint.head:
            raise UsageError(
                f"{self.checkpoint.id} is a {self.checkpoint.architecture} in memory, and cannot "
                f"be loaded as a {head.label}: leave the option scorer out"
            )
        return self._both


def _architecture(model: PreTrainedModel) -> tuple[str, Head]:
    """Return the first class that the model's derives from whose head is known, and that head."""
    for derived in type(model).__mro__:
        name = derived.__name__
        for head in HEADS:
            # In memory, a class for pre-training gives its scores under other names.
            if head.fits(name, model.config) and not name.endswith("ForPreTraining"):
                return name, head
    return type(model).__name__, ENCODER


def _refuse_parts(model: PreTrainedModel) -> None:
    """Refuse a model of which this process holds a part: FSDP's, ZeRO-3's, tensor-parallel ones.

    One process alone could not run it, and would wait for the others forever.
    """
    from torch.distributed.fsdp import FullyShardedDataParallel

    wrapped = any(isinstance(part, FullyShardedDataParallel) for part in model.modules())
    spread = any(
        hasattr(weight, "ds_id") or hasattr(weight, "device_mesh") for weight in model.parameters()
    )
    if wrapped or spread:
        raise UsageError(
            "the weights of this model are spread over several processes (FSDP, DeepSpeed ZeRO-3 "
            "or tensor parallelism), and probes are evaluated by one. Evaluate the checkpoints "
            "that are saved: evaluate-probe PROBE --model CHECKPOINT"
        )


@contextmanager
def leaving_no_trace(model: PreTrainedModel) -> Iterator[None]:
    """Put a model into evaluation mode, and restore its training modes and all random states.

    Each part gets its own mode back, since frozen parts may be in evaluation mode. Random states
    are those of Python, NumPy and torch, on the CPU and the model's GPU.
    """
    import torch

    modes = [(part, part.training) for part in model.modules()]
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        try:
            model.eval()
            yield
        finally:
            for part, training in modes:
                part.training = training
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


@contextmanager
def without_autocast(model: PreTrainedModel) -> Iterator[None]:
    """Run a model in the type of its weights, where accelerate has wrapped it for autocast."""
    wrapped, plain = vars(model).get("forward"), vars(model).get("_original_forward")
    if wrapped is None or plain is None:
        yield
        return
    model.forward = plain
    try:
        yield
    finally:
        model.forward = wrapped
