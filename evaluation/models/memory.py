"""Models in memory: identified without files, and scored without affecting their training."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.models.capabilities import ENCODER, HEADS, Capability, Head, is_encoder_decoder
from evaluation.models.checkpoint import Checkpoint
from evaluation.models.handle import ModelHandle, default_batch
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from evaluation.models.handle import Loaded


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
            config=model.config,
        )
        self.device, self.dtype = model.device, dtype or model.dtype
        self.batch_tokens = batch_tokens or default_batch(self.device)
        # Scorers reset a tokenizer's truncation and padding: the caller's keeps its own.
        self._both: Loaded = model, copy.deepcopy(tokenizer)

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
