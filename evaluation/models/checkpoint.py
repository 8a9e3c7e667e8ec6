"""Finding and identifying checkpoints and their adapters.

A checkpoint's capabilities are determined by its architecture, never by its name. It is opened
without its weights, which suffices to look up its scores in the cache.

An adapter is a folder with ``adapter_config.json``, which names the base model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.content import installed_version
from evaluation.models.architecture import architecture_of, config_of
from evaluation.models.capabilities import CLASSIFIER, ENCODER, Capability, Head
from kbprobe.checkpoint_files import (
    ADAPTER,
    CONFIG,
    digest_of_files,
    find_checkpoint,
    is_adapter,
    tokenizer_files,
    weights_digest,
    weights_entry,
)
from kbprobe.checkpoints import reading
from kbprobe.errors import KbprobeError, UsageError, require
from kbprobe.parsing import read_json

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel


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
    """Identify the adapter in a folder; None if it holds a complete model.

    Raises:
        UsageError: it holds both, or an adapter that does not change weights.
        KbprobeError: it cannot be read, or ``peft`` is not installed.
    """
    if model.endswith(".gguf") or not is_adapter(folder):
        return None
    if weights_entry(folder, {}) is not None:
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
    """Apply an adapter to its base model: merged, unless the weights are quantized.

    With quantized weights, the adapter is kept separate, as in training: merging would round it.
    Where it was trained with another number of tokens, the embeddings are resized to that first.

    Returns:
        The model, of its own class, and the names of parameters that the adapter holds whole.

    Raises:
        UsageError: it does not fit, or cannot be merged.
    """
    from peft import PeftModel

    fixed = {name for name, _ in model.named_parameters()}
    what = f"the adapter {adapter.model} cannot be put into its base model {adapter.base}"
    with reading(what, adapter.folder, ADAPTER):
        _resize_embeddings(adapter, model)
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


def _resize_embeddings(adapter: Adapter, model: PreTrainedModel) -> None:
    """Give a base model as many token embeddings as its adapter was trained with.

    Raises:
        UsageError: the adapter holds embeddings of other tokens, but no head that predicts them.
    """
    from peft.utils import load_peft_weights

    weights = load_peft_weights(str(adapter.folder), device="cpu")

    def rows(layer: torch.nn.Module | None) -> int | None:
        """Return for how many tokens the adapter holds a whole layer; None: it does not."""
        of_layer = tuple(
            f"base_model.model.{name}." for name, part in model.named_modules() if part is layer
        )
        whole = (
            tensor
            for name, tensor in weights.items()
            if of_layer and name.startswith(of_layer) and name.endswith("weight")
        )
        return next((len(tensor) for tensor in whole if tensor.dim() == 2), None)

    known, head = model.get_input_embeddings(), model.get_output_embeddings()
    wanted, embedded = rows(known), known.num_embeddings
    if wanted is None or wanted == embedded:
        return
    tied = head is None or head.weight is known.weight
    if not tied and rows(head) != wanted:
        raise UsageError(
            f"the adapter {adapter.model} holds embeddings of {wanted:,} tokens, its base model "
            f"{embedded:,}, and the adapter no language-model head for the others. Save "
            "it with save_pretrained(DIR, save_embedding_layers=True) from the model that it was "
            'trained in, with the head in modules_to_save (such as "lm_head").'
        )
    model.resize_token_embeddings(wanted, mean_resizing=False)


NO_MODEL = "none"
"""Represents the model if the scorer needs none."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was found, identified and not yet loaded.

    Attributes:
        id: as the user wrote it.
        revision: the commit that a Hub checkpoint resolved to.
        head: the head that its architecture names; :data:`ENCODER` where it names none that is
            known here.
        architecture: the class that wrote the weights, such as ``RobertaForMaskedLM``.
        encoder_decoder: whether it has an encoder and a decoder.
        read_config: reads its configuration; None where there is none here.
        weights_sha256: hash of weights and configuration; of random weights, of all that they
            depend on.
        loading: further arguments of ``from_pretrained``.
        random_weights: the seed that all weights are drawn with; None: they are those stored.
        adapter: what changes the weights in ``folder``; its hash is part of ``weights_sha256``.
        base: the checkpoint that an adapter changes, as it is without it.
        once: a unique text for a model in memory whose code is not known, so that no cached
            scores are used for it; None for all other models.
    """

    id: str
    folder: Path = Path()
    revision: str | None = None
    head: Head
    capabilities: Capability
    architecture: str
    encoder_decoder: bool = False
    read_config: Callable[[], PretrainedConfig] | None = field(default=None, repr=False)
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    loading: Mapping[str, Any] = field(default_factory=dict)
    random_weights: int | None = None
    adapter: Adapter | None = None
    base: Checkpoint | None = None
    once: str | None = None

    @cached_property
    def config(self) -> PretrainedConfig | None:
        """Its configuration, read when first asked for: finding its scores needs none."""
        return None if self.read_config is None else self.read_config()

    @property
    def tokenizer_folder(self) -> Path:
        """The folder that holds the tokenizer: the adapter's, if it has one."""
        own = self.adapter is not None and tokenizer_files(self.adapter.folder)
        return self.adapter.folder if self.adapter is not None and own else self.folder


def no_checkpoint() -> Checkpoint:
    """Return a placeholder for the checkpoint if the scorer needs no model."""
    return Checkpoint(
        id=NO_MODEL, head=ENCODER, capabilities=Capability.NOTHING, architecture=NO_MODEL
    )


def refuse_idle_model(model: str, option: str) -> None:
    """Refuse a model where the option (``--scorer random``) names what reads none.

    Raises:
        UsageError: it is a model.
    """
    if model != NO_MODEL:
        raise UsageError(
            f"{option} reads no model, and the results would be recorded as those of {model}. "
            f"Name none: --model {NO_MODEL} {option}"
        )


def open_checkpoint(
    model: str,
    *,
    revision: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
    random_weights: int | None = None,
) -> Checkpoint:
    """Find a checkpoint (a folder, a ``.gguf`` file or a Hub id) and identify it.

    The arguments are those of :class:`evaluation.options.ModelOptions`.

    Raises:
        UsageError: there is no such checkpoint, or its file says too little to draw weights anew.
        KbprobeError: its files cannot be read or fetched.
    """
    loading: dict[str, Any] = {**(model_args or {}), "trust_remote_code": trust_remote_code}
    folder, commit = find_checkpoint(model, revision, loading)
    if (adapter := find_adapter(model, folder)) is not None:
        if random_weights is not None:
            raise UsageError(
                f"--random-weights draws all weights anew, and {model} is an adapter. Name its "
                f"base model {adapter.base}, or leave the option out."
            )
        return _with_adapter(adapter, commit, loading)
    return _open_whole(model, folder, commit, loading, random_weights)


def _open_whole(
    model: str,
    folder: Path,
    commit: str | None,
    loading: dict[str, Any],
    random_weights: int | None = None,
) -> Checkpoint:
    """Identify a checkpoint that does not depend on another one."""
    if model.endswith(".gguf"):
        if random_weights is not None:
            raise UsageError(
                f"--random-weights draws weights as a config.json describes them, and {model} is "
                "a GGUF file. Name the folder or Hub id that it was made from, or leave the "
                "option out."
            )
        loading["gguf_file"] = Path(model).name
    read_config = partial(config_of, model, folder, loading)
    architecture = architecture_of(folder, loading, read_config)
    head = architecture.head
    capabilities = head.gives
    if "gguf_file" in loading or architecture.quantized or "quantization_config" in loading:
        capabilities &= ~Capability.TRAINABLE
    if head is ENCODER and architecture.encoder_decoder:
        capabilities = Capability.NOTHING
    tokenizer = tokenizer_files(folder)
    if not tokenizer and "gguf_file" not in loading:
        # transformers would make up an empty one, to which every word is unknown.
        raise KbprobeError(
            f"{model} holds no tokenizer (no tokenizer.json or vocabulary in {folder}). Put the "
            "tokenizer that it was trained with next to it, with tokenizer.save_pretrained."
        )
    # Code in the checkpoint affects scores as much as weights do.
    code = sorted(folder.rglob("*.py")) if loading["trust_remote_code"] else []
    if random_weights is None:
        weights_sha256 = weights_digest(model, folder, loading, code)
    else:
        described = digest_of_files([*folder.glob(CONFIG), *code])
        weights_sha256 = _digest_of_random_weights(described, random_weights)
    return Checkpoint(
        id=model,
        folder=folder,
        revision=commit,
        head=head,
        capabilities=capabilities,
        architecture=architecture.name,
        encoder_decoder=architecture.encoder_decoder,
        read_config=read_config,
        weights_sha256=weights_sha256,
        # A GGUF file holds its tokenizer.
        tokenizer_sha256=weights_sha256 if "gguf_file" in loading else digest_of_files(tokenizer),
        loading=loading,
        random_weights=random_weights,
    )


def _with_adapter(adapter: Adapter, commit: str | None, loading: dict[str, Any]) -> Checkpoint:
    """Open the base model of an adapter, and say what both are together."""
    try:
        folder, base_commit = find_checkpoint(adapter.base, adapter.base_revision, loading)
        if is_adapter(folder):
            raise UsageError(
                f"{adapter.base} is an adapter, too. Merge it into its own base model first "
                "(merge_and_unload in PEFT)."
            )
        base = _open_whole(adapter.base, folder, base_commit, loading)
    except KbprobeError as error:
        kind = UsageError if isinstance(error, UsageError) else KbprobeError
        raise kind(
            f"{adapter.model} is an adapter, and its base model cannot be opened: {error} If the "
            f"base model is elsewhere, change base_model_name_or_path in "
            f"{adapter.folder / ADAPTER}."
        ) from error
    head = CLASSIFIER if adapter.classifies else base.head
    tokenizer = tokenizer_files(adapter.folder)
    together = f"{base.weights_sha256}\0{adapter.sha256}"
    return replace(
        base,
        id=adapter.model,
        revision=commit,
        head=head,
        capabilities=head.gives & (base.capabilities | ~Capability.TRAINABLE),
        weights_sha256=hashlib.sha256(together.encode()).hexdigest(),
        tokenizer_sha256=digest_of_files(tokenizer) if tokenizer else base.tokenizer_sha256,
        adapter=adapter,
        base=base,
    )


def _digest_of_random_weights(described: str, seed: int) -> str:
    """Hash what random weights depend on: configuration, seed, and the code that draws them."""
    versions = {name: installed_version(name) for name in ("torch", "transformers")}
    content = {"described": described, "random_weights": seed, "versions": versions}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
