"""Loading a checkpoint's tokenizer and weights onto a device."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evaluation.content import installed_version
from evaluation.models.capabilities import ENCODER, Head
from evaluation.models.checkpoint import Checkpoint, apply
from kbprobe.checkpoint_files import CONFIG, first_line, not_of_weights
from kbprobe.checkpoints import reading
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.plugins import deferred

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TokenIds = Sequence[int] | npt.NDArray[np.integer[Any]]
"""Ids of tokens."""

_QUANTIZERS = {
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "gptq": "gptqmodel",
    "hqq": "hqq",
    "quanto": "optimum-quanto",
    "torchao": "torchao",
}
"""Packages that read quantized weights, by the method that config.json names."""

_SHOWN = 4
"""Maximum number of missing parameters that a message names."""


def load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """Load the checkpoint's tokenizer: a fast one where it has one (:func:`require_fast`).

    Raises:
        KbprobeError: it cannot be read.
    """
    from transformers import AutoTokenizer

    what, folder = f"the tokenizer of {checkpoint.id} cannot be loaded", checkpoint.tokenizer_folder
    with reading(what, folder, "tokenizer.json and tokenizer_config.json"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, **not_of_weights(checkpoint.loading)
        )
        longest = tokenizer.model_max_length
        if not isinstance(longest, int | float):
            raise ValueError(f"model_max_length is {longest!r:.60}, not a number")
    return without_dropout(tokenizer)


def without_dropout(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Turn off a fast tokenizer's dropout of merges (BPE-dropout), and return it.

    It is for training: the same text would be read in another way each time.
    """
    model: Any = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if model is not None and getattr(model, "dropout", None):
        model.dropout = None
    return tokenizer


def require_fast(tokenizer: PreTrainedTokenizerBase, user: str) -> None:
    """Refuse a slow tokenizer: its user needs the positions of tokens in a text.

    Raises:
        UsageError: it is a slow one.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            f"{user} needs a fast tokenizer, which tells where tokens stand in a text, and "
            f"{tokenizer.name_or_path!r} has a slow one ({type(tokenizer).__name__}). Name a "
            "checkpoint with a tokenizer.json. Causal LMs and sequence classifiers are scored "
            "with slow tokenizers, too."
        )


def load_model(
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype,
    head: Head | None = None,
    device_map: str | None = None,
) -> PreTrainedModel:
    """Load the weights, in evaluation mode, onto a device, or spread by a ``device_map``.

    It is loaded with the head that its architecture names, unless another one is given.

    Raises:
        UsageError: weights of the head are missing: scores would be noise.
        KbprobeError: the weights cannot be read.
    """
    head = head or checkpoint.head
    model, fresh = _load(checkpoint, dtype, head, device_map)
    refuse_fresh_head(checkpoint.id, fresh, head)
    if head is ENCODER and any(map(_is_pooler, fresh)) and hasattr(model, "pooler"):
        # It was never trained: its output would be noise.
        setattr(model, "pooler", None)  # noqa: B010
    if device_map is None:
        model.to(device)  # type: ignore[arg-type]
    model.eval()
    return model


def load_for_training(
    checkpoint: Checkpoint, device: torch.device, head: Head
) -> tuple[PreTrainedModel, list[str]]:
    """Load the weights in float32, and return the names of parameters missing in the checkpoint.

    The head may be missing, since it is trained next.

    Raises:
        UsageError: the checkpoint lacks the encoder.
        KbprobeError: the weights cannot be read.
    """
    import torch

    model, fresh = _load(checkpoint, torch.float32, head)
    refuse_fresh_encoder(checkpoint.id, fresh, model)
    return model.to(device), fresh  # type: ignore[arg-type]


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the maximum number of tokens that an encoder reads, including special tokens."""
    # A tokenizer without a limit states an immense one, a configuration none, or -1.
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    limits += usable_positions(model)
    return int(min(limit for limit in limits if limit is not None and limit > 0))


def usable_positions(network: torch.nn.Module) -> list[int]:
    """Return how many tokens each table of positions in a network holds.

    RoBERTa and models like it count positions from the padding token's, so their tables hold fewer
    tokens than entries.
    """
    from torch import nn

    return [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in network.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]


def refuse_unembedded(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    read: Sequence[TokenIds],
    predicted: Sequence[TokenIds] = (),
) -> None:
    """Refuse tokens that a model has no embedding for, such as words added to its tokenizer.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        read: tokens that the model is given.
        predicted: tokens whose logits are read.

    Raises:
        UsageError: there is one.
    """
    known, head = _entries(model.get_input_embeddings()), None
    if predicted:
        head = _entries(model.get_output_embeddings())
    # Some models name another layer of their head, which may be smaller.
    rows = max(filter(None, (known, head)), default=None)
    for entries, parts in ((known, read), (rows, predicted)):
        highest = max((int(np.max(part)) for part in parts if len(part)), default=0)
        if entries is not None and highest >= entries:
            size = len(tokenizer)
            raise UsageError(
                f"the tokenizer of {tokenizer.name_or_path!r} has {size:,} tokens, and the "
                f"model {entries:,} embeddings: {str(tokenizer.convert_ids_to_tokens(highest))!r} "
                f"(token {highest:,}) has none. Give the tokenizer that the model was trained "
                f"with; or, if words were added to it, call model.resize_token_embeddings({size}), "
                "train the model, and save both."
            )


def padding_token(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return a token to pad with that the model has an embedding for; it is masked."""
    token, entries = tokenizer.pad_token_id, _entries(model.get_input_embeddings())
    return 0 if token is None or (entries is not None and token >= entries) else int(token)


def _entries(layer: torch.nn.Module | None) -> int | None:
    """Return for how many tokens an embedding or a language-model head has a row, if it says so."""
    sizes = (getattr(layer, name, None) for name in ("num_embeddings", "out_features"))
    return next((size for size in sizes if isinstance(size, int)), None)


def _load(
    checkpoint: Checkpoint, dtype: torch.dtype, head: Head, device_map: str | None = None
) -> tuple[PreTrainedModel, list[str]]:
    import transformers

    auto_class = getattr(transformers, head.auto_class)
    arguments = {"dtype": dtype, **checkpoint.loading, "config": checkpoint.config}
    if device_map is not None:
        arguments["device_map"] = device_map
    names = {path.name for path in checkpoint.folder.glob("*model.*")}  # with the index of shards
    files = " and ".join([CONFIG, *sorted(names)])
    with reading(f"{checkpoint.id} cannot be loaded as a {head.label}", checkpoint.folder, files):
        try:
            # Its loss of object detection, imported with any model, needs a part of scipy's.
            with quiet_transformers(), deferred("scipy.optimize", "linear_sum_assignment"):
                if checkpoint.random_weights is not None:
                    drawn = _draw_weights(auto_class, checkpoint, checkpoint.random_weights, dtype)
                    return drawn, []
                model, info = auto_class.from_pretrained(
                    checkpoint.folder, output_loading_info=True, **arguments
                )
        except TypeError as error:
            given = ", ".join(sorted(set(checkpoint.loading) - {"trust_remote_code", "gguf_file"}))
            if not given:
                raise
            raise UsageError(
                f"--model-args: {checkpoint.id} does not take all of {given}: {first_line(error)}"
            ) from error
        except (ImportError, NotImplementedError) as error:
            raise KbprobeError(_cannot_run(checkpoint, error)) from error
    fresh = fresh_parameters(info)
    if checkpoint.adapter is not None:
        model, held = apply(checkpoint.adapter, model)
        fresh = [name for name in fresh if name not in held]
    return model, fresh


def _cannot_run(checkpoint: Checkpoint, error: Exception) -> str:
    """Say that loading a checkpoint needs a package, or a device, that is not here."""
    described = getattr(checkpoint.config, "quantization_config", None)
    if described is None:
        return (
            f"{checkpoint.id} needs something to be loaded that is not installed here: "
            f"{first_line(error)}"
        )
    # It is a dictionary, or an object that transformers has made of it.
    method = described.get("quant_method") if isinstance(described, dict) else None
    method = str(getattr(described, "quant_method", method) or "an unnamed method")
    package = _QUANTIZERS.get(method)
    remedy = "Install what is missing"
    if package is not None and not _is_installed(package):
        remedy = f"Install it with: pip install {package}"
    return (
        f"{checkpoint.id} is quantized ({method}), and such weights cannot be loaded here: "
        f"{first_line(error).rstrip('.')}. {remedy}, or name the checkpoint that was quantized."
    )


def _is_installed(package: str) -> bool:
    try:
        installed_version(package)
    except PackageNotFoundError:
        return False
    return True


def _draw_weights(
    auto_class: Any, checkpoint: Checkpoint, seed: int, dtype: torch.dtype
) -> PreTrainedModel:
    """Make a model whose weights are drawn as its architecture's own code draws them.

    On the CPU, in float32 and from the seed alone: the same on every device and, to rounding, in
    every dtype. torch's global generator is unchanged. No part counts as missing, since such a
    model is supposed to know nothing.
    """
    import torch

    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        # A copy, since the dtype is noted in it.
        model: PreTrainedModel = auto_class.from_config(
            copy.deepcopy(checkpoint.config), dtype=torch.float32, **checkpoint.loading
        )
    return model.to(dtype)  # type: ignore[arg-type,no-any-return]


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and its report of missing weights, which we replace."""
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


_ACCELERATORS = ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg")
"""Names in /dev of GPUs that torch could compute on: NVIDIA's, AMD's, and those of WSL."""


def is_cpu(name: str) -> bool:
    """Return whether a device's name surely means the CPU, without asking torch.

    ``auto`` does under Linux where the system knows no GPU.
    """
    if name != "auto":
        return name == "cpu"
    named = (Path("/dev").glob(pattern) for pattern in _ACCELERATORS)
    return sys.platform == "linux" and not any(map(any, named))


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
    """Return the type for ``auto`` (bfloat16 on a GPU that has it, else float32) or by name."""
    import torch

    if name == "auto":
        reduced = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if reduced else torch.float32
    return getattr(torch, name)  # type: ignore[no-any-return]


def fresh_parameters(loading_info: Mapping[str, Any]) -> list[str]:
    """Name the parameters that loading a checkpoint filled with random numbers.

    They are those missing from the checkpoint, and those that it holds in another shape.

    Args:
        loading_info: the second result of ``from_pretrained(..., output_loading_info=True)``.
            Its ``missing_keys`` leave out tied weights of which the other end was found, buffers
            that are never stored, and what the architecture itself declares optional.
    """
    mismatched = {name for name, *_ in loading_info.get("mismatched_keys", ())}
    return sorted({*loading_info["missing_keys"], *mismatched})


def refuse_fresh_head(model_id: str, fresh: Sequence[str], head: Head) -> None:
    """Refuse to score with parameters of a head that were never trained.

    ``from_pretrained`` fills what is missing with random numbers and merely warns. Scores of a
    model with such a head are noise, and look like any other scores.

    Raises:
        UsageError: there are such parameters; it names some, and the remedy.
    """
    used = [name for name in fresh if head.uses_pooler or not _is_pooler(name)]
    if used:
        raise UsageError(
            f"{model_id} has no {head.missing}: {_listed(used)} not in the checkpoint, so scores "
            f"would be noise. {head.remedy}."
        )


def refuse_fresh_encoder(model_id: str, fresh: Sequence[str], model: PreTrainedModel) -> None:
    """Refuse to fine-tune a network whose encoder, not just its head, is not in the checkpoint.

    Raises:
        UsageError: there are such parameters.
    """
    encoder = f"{model.base_model_prefix}."
    missing = [name for name in fresh if name.startswith(encoder) and not _is_pooler(name)]
    if missing:
        raise UsageError(
            f"{model_id} does not hold the encoder that its configuration describes: "
            f"{_listed(missing)} not in the checkpoint. Check that config.json and the weights "
            "belong together."
        )


def draw_fresh(model: PreTrainedModel, fresh: Sequence[str], seed: int) -> None:
    """Draw parameters of a model again, in place, so that they depend on the seed alone.

    ``from_pretrained`` draws them from torch's global generator, whatever its state. Here
    matrices are normal with the standard deviation that the configuration gives
    (``initializer_range``, 0.02 where it gives none), norms' weights are one, and biases zero, as
    in BERT. Drawn on the CPU, in order of name: equal on every device.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    # Some configurations hold None, and Funnel a name of a scheme of its own.
    deviation = getattr(model.config, "initializer_range", None) or 0.02
    with torch.no_grad():
        for name in sorted(fresh):
            parameter = model.get_parameter(name)
            if parameter.dim() > 1:
                drawn = torch.empty(parameter.shape).normal_(0, deviation, generator=generator)
                parameter.copy_(drawn)
            else:
                parameter.fill_(1.0 if name.endswith(".weight") else 0.0)


def _is_pooler(name: str) -> bool:
    return "pooler" in name.split(".")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    more = f" and {rest:,} more" if rest > 0 else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names[:_SHOWN])}{more} {verb}"
