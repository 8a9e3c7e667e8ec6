"""Loading a checkpoint's tokenizer and weights onto a device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evaluation.models.capabilities import Head
from evaluation.models.checkpoint import Checkpoint
from evaluation.models.files import first_line
from evaluation.models.fresh_parameters import (
    fresh_parameters,
    refuse_fresh_encoder,
    refuse_fresh_head,
)
from kbprobe.errors import KbprobeError, UsageError, did_you_mean

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

DTYPES = ("auto", "float32", "bfloat16", "float16")


def load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerFast:
    """Load the checkpoint's (fast) tokenizer.

    Raises:
        KbprobeError: it has none, or only a slow one, which tells no character offsets.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    wanted = {"gguf_file", "trust_remote_code"}
    loading = {name: value for name, value in checkpoint.loading.items() if name in wanted}
    try:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder, **loading)
    except (OSError, ValueError, ImportError) as error:
        raise KbprobeError(
            f"the tokenizer of {checkpoint.id} cannot be loaded: {first_line(error)}"
        ) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise KbprobeError(
            f"{checkpoint.id} has a slow tokenizer ({type(tokenizer).__name__}); scoring needs a "
            "fast one. Convert it with tokenizer.save_pretrained after loading it with "
            "AutoTokenizer where a conversion exists."
        )
    return tokenizer


def load_model(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, head: Head | None = None
) -> PreTrainedModel:
    """Load the weights, in evaluation mode, onto a device.

    Args:
        checkpoint: what to load.
        device: where to.
        dtype: the weights' type.
        head: the head to load it with; None: the one that its architecture names.

    Raises:
        UsageError: weights of the head are missing: scores would be noise.
        KbprobeError: the weights cannot be read.
    """
    head = head or checkpoint.head
    model, fresh = _load(checkpoint, dtype, head)
    refuse_fresh_head(checkpoint.id, fresh, head)
    return _moved(model.eval(), device)


def load_for_training(
    checkpoint: Checkpoint, device: torch.device, head: Head
) -> tuple[PreTrainedModel, list[str]]:
    """Load the weights in float32; the head may be missing, since it is trained next.

    Returns:
        The model, and the names of the parameters that the checkpoint does not hold.

    Raises:
        UsageError: the checkpoint lacks the encoder.
        KbprobeError: the weights cannot be read.
    """
    import torch

    model, fresh = _load(checkpoint, torch.float32, head)
    refuse_fresh_encoder(checkpoint.id, fresh, model)
    return _moved(model, device), fresh


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the most tokens that an encoder reads, special tokens included.

    RoBERTa and models like it count positions from the padding token's, so their tables hold fewer
    tokens than entries.
    """
    from torch import nn

    # A tokenizer without a limit states an immense one, a configuration none, or -1.
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - unused)
    return int(min(limit for limit in limits if limit is not None and limit > 0))


def _load(
    checkpoint: Checkpoint, dtype: torch.dtype, head: Head
) -> tuple[PreTrainedModel, list[str]]:
    import transformers
    from safetensors import SafetensorError

    arguments = {"dtype": dtype, **checkpoint.loading}
    if "gguf_file" not in checkpoint.loading:
        arguments["config"] = checkpoint.config
    try:
        with quiet_transformers():
            model, info = getattr(transformers, head.auto_class).from_pretrained(
                checkpoint.folder, output_loading_info=True, **arguments
            )
    except TypeError as error:
        given = ", ".join(sorted(set(checkpoint.loading) - {"trust_remote_code", "gguf_file"}))
        if not given:
            raise
        raise UsageError(
            f"--model-args: {checkpoint.id} does not take all of {given}: {first_line(error)}"
        ) from error
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise KbprobeError(
            f"{checkpoint.id} cannot be loaded as a {head.label}: {first_line(error)}"
        ) from error
    return model, fresh_parameters(info)


def _moved(model: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    # transformers wraps this method in a way that hides its signature.
    moved: PreTrainedModel = model.to(device)  # type: ignore[arg-type]
    return moved


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' bars and its report of missing weights: we say it better."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def choose_device(name: str) -> torch.device:
    """Return the device for ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.

    Raises:
        UsageError: there is no such device here.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            # Under a launcher of several processes each takes its own.
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"no device {name!r} here: {first_line(error)}") from error
    if device.type == "meta":
        raise UsageError("the device 'meta' computes nothing: use cpu, cuda or mps")
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the type for ``auto`` (bfloat16 on a GPU that has it, else float32) or by name.

    Raises:
        UsageError: an unknown name.
    """
    import torch

    if name not in DTYPES:
        raise UsageError(
            f"no dtype {name!r}.{did_you_mean(name, DTYPES)} There are: {', '.join(DTYPES)}."
        )
    if name == "auto":
        reduced = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if reduced else torch.float32
    return getattr(torch, name)  # type: ignore[no-any-return]
