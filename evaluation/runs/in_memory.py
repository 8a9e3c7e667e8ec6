"""Runs of a model that the caller has loaded, which is checked and identified first."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from evaluation.models.capabilities import ENCODER, HEADS, Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.handle import ModelInMemory, leaving_no_trace, without_autocast
from evaluation.runs.checks import check_names
from evaluation.runs.spec import RunSpec
from evaluation.scorers.registry import SCORERS
from kbprobe.checkpoint_files import tokenizer_files
from kbprobe.errors import KbprobeError, UsageError, path_argument, wrong_argument
from kbprobe.files import scratch_folder

if TYPE_CHECKING:
    import torch


ACCEPTED = (
    "a checkpoint's folder, a .gguf file or a Hub id, or a loaded transformers model with its "
    "tokenizer: evaluate(PROBE, model, tokenizer=tokenizer). Several models are evaluated one "
    "after another"
)
_KNOWN_CODE = ("torch", "transformers")
"""Packages whose modules are known, so that a digest identifies models made only of them."""


class LoadedModel(ModelInMemory):
    """A model that the caller has loaded, and that is not trained meanwhile.

    Attributes:
        repeatable: whether its digest stands for all that its scores depend on. Hooks, replaced
            ``forward`` methods and modules of other packages decide about them as well: such a
            model is scored anew each time.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        batch_tokens: int | None = None,
        reads_vectors: bool = False,
    ) -> None:
        """Identify a model and its tokenizer; as :class:`ModelInMemory`.

        With ``reads_vectors``, the scorer reads hidden states, for which no head is needed.

        Raises:
            UsageError: it is no model of transformers, or not with a tokenizer.
            KbprobeError: its weights cannot be read.
        """
        _check(model, tokenizer)
        super().__init__(model, tokenizer, batch_tokens=batch_tokens)
        if self.checkpoint.head is ENCODER and not reads_vectors:
            classes = ", ".join(head.auto_class for head in HEADS if head is not ENCODER)
            raise UsageError(
                f"evaluate(model=...): a {self.checkpoint.architecture} has no head that is "
                f"scored: load the checkpoint with one of transformers' {classes}"
            )
        self.repeatable = _is_repeatable(model)
        self.checkpoint = replace(
            self.checkpoint,
            id=_name(model),
            weights_sha256=digest_of_model(model),
            tokenizer_sha256=digest_of_tokenizer(tokenizer),
            once=None if self.repeatable else uuid.uuid4().hex,
        )


def _name(model: Any) -> str:
    """Return what results call the model: where it was loaded from, as far as it tells."""
    source = getattr(model.config, "name_or_path", "") or type(model).__name__
    return f"{source} (in memory)"


def _check(model: Any, tokenizer: Any) -> None:
    """Refuse what is no model of transformers with its tokenizer."""
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    # PEFT's wrappers are no subclasses, and give the model that they wrap.
    unwrap = getattr(model, "get_base_model", None)
    if not isinstance(unwrap() if callable(unwrap) else model, PreTrainedModel):
        raise wrong_argument("evaluate(model=...)", model, ACCEPTED)
    if tokenizer is None:
        raise UsageError(
            f"a loaded model needs its tokenizer: evaluate(PROBE, model, tokenizer=tokenizer), as "
            f"AutoTokenizer.from_pretrained({getattr(model.config, 'name_or_path', '')!r}) loads it"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        accepted = "the model's tokenizer, as AutoTokenizer.from_pretrained loads it"
        raise wrong_argument("evaluate(tokenizer=...)", tokenizer, accepted)


def _is_repeatable(model: torch.nn.Module) -> bool:
    """Return whether the digest of a model stands for all that its scores depend on."""
    from torch.nn.modules import module as hooks

    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks:
        return False
    return all(
        type(part).__module__.partition(".")[0] in _KNOWN_CODE
        and not part._forward_hooks
        and not part._forward_pre_hooks
        and "forward" not in vars(part)
        for part in model.modules()
    )


def digest_of_model(model: Any) -> str:
    """Hash a model's weights, configuration and modules.

    Names are not among it: a model that was loaded from another place has the same digest.

    Raises:
        UsageError: weights are not in memory.
        KbprobeError: weights cannot be read as bytes.
    """
    config = model.config.to_dict()
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    described = {
        "config": config,
        "attention": getattr(model.config, "_attn_implementation", None),
        "modules": {name: _settings(part) for name, part in model.named_modules()},
    }
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    for name, tensor in sorted(_tensors(model)):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(_bytes(name, tensor))
    return digest.hexdigest()


def _settings(part: torch.nn.Module) -> list[Any]:
    """Return a module's class, and what it computes with beside its weights."""
    own = {
        name: value
        for name, value in vars(part).items()
        if isinstance(value, bool | int | float | str) and name[0] != "_" and name != "training"
    }
    return [f"{type(part).__module__}.{type(part).__qualname__}", own]


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Give all weights by name, and buffers that are never saved."""
    import torch

    state = {**dict(model.named_buffers()), **model.state_dict()}
    return ((name, value) for name, value in state.items() if isinstance(value, torch.Tensor))


def _bytes(name: str, tensor: torch.Tensor) -> memoryview:
    import torch

    if tensor.is_meta:
        raise UsageError(
            f"the weights of this model are not all in memory ({name} is on the device meta): load "
            "it without offloading, or give evaluate its folder"
        )
    try:
        flat = tensor.detach().cpu().contiguous().flatten()
        return memoryview(cast(Any, flat.view(torch.uint8).numpy()))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise KbprobeError(
            f"the weights of this model cannot be read ({name}, {type(tensor).__name__}): save it "
            "with save_pretrained(DIR), and evaluate DIR"
        ) from error


def digest_of_tokenizer(tokenizer: Any) -> str:
    """Hash the files that a tokenizer would be saved as.

    What the last call set (truncation, padding) is not among it: every call sets it anew.
    """
    digest = hashlib.sha256()
    with scratch_folder() as folder:
        copy.deepcopy(tokenizer).save_pretrained(folder)
        for path in tokenizer_files(folder):
            content = path.read_bytes()
            if path.name == "tokenizer.json":
                saved = json.loads(content)
                saved.update(truncation=None, padding=None)
                content = json.dumps(saved, sort_keys=True).encode()
            digest.update(f"{path.name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


@contextmanager
def taking_model(spec: RunSpec, model: Any, tokenizer: Any) -> Iterator[RunSpec]:
    """Complete a run with the model that a caller gave; at the end a loaded one is as it was.

    Args:
        spec: the run, without its model.
        model: a folder, a file or a Hub id; None where the scorer needs none; or a loaded model.
        tokenizer: of a loaded model.

    Raises:
        UsageError: it is no model, or lacks its tokenizer; or an option says how it is loaded.
        KbprobeError: its weights cannot be read.
    """
    if model is None or isinstance(model, str | os.PathLike):
        if tokenizer is not None:
            raise UsageError(
                "evaluate(tokenizer=...) is of a loaded model; a folder or Hub id brings its own: "
                "leave tokenizer out"
            )
        yield replace(spec, model=_named(spec, model))
        return
    spec.refuse_for_loaded()
    named = None if spec.run.scorer is None else SCORERS.get(spec.run.scorer)
    vectors = named is not None and Capability.HIDDEN_STATES in named.needs
    loaded = LoadedModel(model, tokenizer, spec.run.batch_tokens, vectors)
    run = spec.run.model_copy(update={"cache": spec.run.cache and loaded.repeatable})
    with leaving_no_trace(model), without_autocast(model):
        yield replace(spec, model=loaded.checkpoint.id, run=run, loaded=loaded)


def _named(spec: RunSpec, model: str | os.PathLike[str] | None) -> str:
    """Return the name of a model that is not loaded, or of none where that suffices."""
    if model is not None:
        return str(path_argument("evaluate(model=...)", model, ACCEPTED))
    try:
        check_names(NO_MODEL, spec.run)
    except UsageError:
        raise wrong_argument("evaluate(model=...)", model, ACCEPTED) from None
    return NO_MODEL
