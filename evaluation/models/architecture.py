"""What a checkpoint's configuration says: its architecture, and the head that it names.

Reading a configuration imports transformers, and parses a GGUF file, which takes seconds. What
identifying a checkpoint needs of it is therefore noted in the cache, by the content of the file
that holds it: an evaluation whose scores are cached needs neither.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.content import content_hash, installed_version
from evaluation.models.capabilities import ENCODER, HEADS, Head, is_encoder_decoder
from evaluation.models.gguf_files import parsed_once
from kbprobe.checkpoint_files import CONFIG, file_digest, not_of_weights
from kbprobe.checkpoints import reading
from kbprobe.errors import KbprobeError, UsageError, require
from kbprobe.files import file_state
from kbprobe.files.cache import cache_dir, read_note, write_note

if TYPE_CHECKING:
    from transformers import PretrainedConfig

NOTES = "architectures"
"""The folder of notes, in kbprobe's cache."""


@dataclass(frozen=True)
class Architecture:
    """What a configuration says of the weights.

    Attributes:
        name: the class that wrote them, such as ``RobertaForMaskedLM``.
        head: the head that it names; :data:`ENCODER` where it names none that is known here.
        encoder_decoder: whether it has an encoder and a decoder.
        quantized: whether the weights are quantized.
    """

    name: str
    head: Head
    encoder_decoder: bool
    quantized: bool


def architecture_of(
    folder: Path, loading: Mapping[str, Any], read: Callable[[], PretrainedConfig]
) -> Architecture:
    """Return what a checkpoint's configuration says, from the cache or by reading it.

    Args:
        folder: of the checkpoint.
        loading: the arguments of ``from_pretrained``.
        read: reads the configuration.

    Raises:
        UsageError: there is no checkpoint.
        KbprobeError: the configuration cannot be read.
    """
    note = _note(folder, loading)
    told = None if note is None else read_note(note)
    if told is not None:
        return Architecture(**{**told, "head": HEADS.get(told["head"])})
    config = read()
    name, head = _named(config, loading)
    quantized = getattr(config, "quantization_config", None) is not None
    found = Architecture(name, head, is_encoder_decoder(config), quantized)
    if note is not None:
        write_note(note, {**vars(found), "head": head.name})
    return found


def _note(folder: Path, loading: Mapping[str, Any]) -> Path | None:
    """Return the file for notes on a configuration; None where its content does not decide all.

    Code that a checkpoint brings, and heads of other packages, may decide otherwise another time.
    """
    file = folder / loading.get("gguf_file", CONFIG)
    if loading["trust_remote_code"] or HEADS.others() or not file.is_file():
        return None
    content = {
        "configuration": file_digest(file),
        "gguf": "gguf_file" in loading,
        "versions": {name: installed_version(name) for name in ("kbprobe", "transformers")},
    }
    return cache_dir() / NOTES / content_hash(content)


def config_of(model: str, folder: Path, loading: Mapping[str, Any]) -> PretrainedConfig:
    """Read a checkpoint's configuration.

    Raises:
        UsageError: there is no checkpoint.
        KbprobeError: the configuration cannot be read.
    """
    from transformers import AutoConfig

    if "gguf_file" in loading:
        require("gguf", "gguf", f"reading {model}")
    elif not (folder / CONFIG).is_file():
        raise UsageError(f"{model} holds no checkpoint (no {CONFIG}): name another one")
    what = f"the configuration of {model} cannot be read"
    with reading(what, folder, CONFIG):
        try:
            if "gguf_file" in loading:
                state = file_state((folder / loading["gguf_file"]).stat())
                config = copy.deepcopy(_gguf_config(folder, loading["gguf_file"], state))
            else:
                config = AutoConfig.from_pretrained(folder, **not_of_weights(loading))
        except ValueError as error:
            if "trust_remote_code" not in str(error):
                raise
            raise KbprobeError(
                f"{what}: it brings code of its own, which runs with your rights. Read it, then "
                "allow it with --trust-remote-code"
            ) from error
        named = config.architectures or []
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise ValueError(f"architectures is {named!r:.60}, not a list of names")
    return config


@lru_cache(maxsize=8)
def _gguf_config(folder: Path, name: str, _state: tuple[int, ...]) -> PretrainedConfig:
    """Read the configuration in a GGUF file: parsing one takes seconds, and studies reopen it."""
    from transformers import AutoConfig

    with parsed_once():
        config: PretrainedConfig = AutoConfig.from_pretrained(folder, gguf_file=name)
    return config


def _named(config: PretrainedConfig, loading: Mapping[str, Any]) -> tuple[str, Head]:
    """Return a configuration's architecture, and the head that it names."""
    if "gguf_file" in loading:
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        # The file names no class; it holds a causal LM if its model type can be one.
        kind = config.model_type
        architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind, kind)]
    else:
        unstated = f"{config.model_type} of no stated architecture"
        architectures = config.architectures or [unstated]
    for architecture in architectures:
        for head in HEADS:
            if head.fits(architecture, config):
                return architecture, head
    remote = getattr(config, "auto_map", None) or {}
    named = (head for head in HEADS if head.auto_class in remote and head is not ENCODER)
    return architectures[0], next(named, ENCODER)
