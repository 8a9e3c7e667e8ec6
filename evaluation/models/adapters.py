"""PEFT's adapters: small weights that were trained on top of a base model, and merged into it.

An adapter is a folder with ``adapter_config.json``, which names the base model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.models.files import ADAPTER, digest_of_files, is_adapter
from kbprobe.checkpoints import reading
from kbprobe.errors import KbprobeError, UsageError, require
from kbprobe.parsing import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True)
class Adapter:
    """An adapter that was found and identified.

    Attributes:
        model: as the user wrote it.
        folder: with its configuration and weights.
        base: the base model: a folder here, or a Hub id.
        base_revision: the commit or branch of the base model that the adapter was trained on, if
            it says so.
        classifies: whether it holds the head of a sequence classifier.
        sha256: hash of its weights and configuration.
    """

    model: str
    folder: Path
    base: str
    base_revision: str | None
    classifies: bool
    sha256: str


def find_adapter(model: str, folder: Path) -> Adapter | None:
    """Identify the adapter in a folder; None: it holds a model of its own.

    Raises:
        UsageError: it holds both, or an adapter that does not change weights.
        KbprobeError: it cannot be read, or ``peft`` is not installed.
    """
    if model.endswith(".gguf") or not is_adapter(folder):
        return None
    if any(folder.glob("model*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
        raise UsageError(
            f"{model} holds both a whole model and an adapter ({ADAPTER}), and either could be "
            f"meant. Copy it without {ADAPTER}, or without the whole model's weights."
        )
    require("peft", "peft", f"{model} is an adapter (it holds {ADAPTER}); loading it")
    described = read_json(folder / ADAPTER)
    base = described.get("base_model_name_or_path") if isinstance(described, dict) else None
    if not isinstance(base, str) or not base:
        raise KbprobeError(
            f"{model} is an adapter of an unknown base model: give it as "
            f"base_model_name_or_path in {folder / ADAPTER}"
        )
    if "num_virtual_tokens" in described:
        raise UsageError(
            f"{model} is an adapter of the type {described.get('peft_type')}, which puts trained "
            "vectors before each text instead of changing weights. It cannot be scored: give an "
            "adapter that can be merged, such as LoRA."
        )
    weights = [folder / name for name in _WEIGHTS if (folder / name).is_file()][:1]
    if not weights:
        raise KbprobeError(f"{model} holds no weights (no {' or '.join(_WEIGHTS)} in {folder})")
    beside = folder / base
    return Adapter(
        model=model,
        folder=folder,
        base=str(beside) if not Path(base).exists() and beside.is_dir() else base,
        base_revision=described.get("revision"),
        classifies=described.get("task_type") == "SEQ_CLS",
        sha256=digest_of_files([*weights, folder / ADAPTER]),
    )


def apply(adapter: Adapter, model: PreTrainedModel) -> tuple[PreTrainedModel, set[str]]:
    """Put an adapter into its base model: merged, unless the weights are quantized.

    Quantized weights keep the adapter beside them, as in training: merging would round it.

    Returns:
        The model, of its own class, and the names of parameters that the adapter holds whole.

    Raises:
        UsageError: it does not fit, or cannot be merged.
    """
    from peft import PeftModel

    fixed = {name for name, _ in model.named_parameters()}
    what = f"the adapter {adapter.model} cannot be put into its base model {adapter.base}"
    with reading(what, adapter.folder, ADAPTER):
        wrapped: Any = PeftModel.from_pretrained(model, str(adapter.folder))
    held = {name.removeprefix("base_model.model.") for name in wrapped.state_dict()}
    replaced = {
        name.replace(".modules_to_save.default", "") for name in held if "modules_to_save" in name
    }
    if getattr(model, "is_quantized", False):
        return wrapped.get_base_model(), replaced & fixed
    if not hasattr(wrapped.base_model, "merge_and_unload"):
        raise UsageError(
            f"the adapter {adapter.model} is of a type that cannot be merged into weights. Give "
            "one that can, such as LoRA."
        )
    merged: PreTrainedModel = wrapped.merge_and_unload()
    merged.requires_grad_(True)  # PEFT has frozen all but the adapter.
    return merged, replaced & fixed
