"""Runs of a model that the caller has loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.loaded import ACCEPTED, LoadedModel
from evaluation.models.memory import leaving_no_trace, without_autocast
from evaluation.runs.checks import check_names
from evaluation.runs.spec import RunSpec
from kbprobe.arguments import path_argument, wrong_argument
from kbprobe.errors import UsageError


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
    loaded = LoadedModel(model, tokenizer, spec.run.batch_tokens)
    run = spec.run.model_copy(update={"cache": spec.run.cache and loaded.repeatable})
    with leaving_no_trace(model), without_autocast(model):
        try:
            yield replace(spec, model=loaded.checkpoint.id, run=run, loaded=loaded)
        except IndexError as error:
            entries = model.get_input_embeddings().weight.shape[0]
            if len(tokenizer) <= entries:
                raise
            raise UsageError(
                f"evaluate(tokenizer=...): it has {len(tokenizer):,} tokens, and the model's "
                f"embeddings {entries:,} entries: give the tokenizer that the model was trained "
                "with"
            ) from error


def _named(spec: RunSpec, model: str | os.PathLike[str] | None) -> str:
    """Return the name of a model that is not loaded, or of none where that suffices."""
    if model is not None:
        return str(path_argument("evaluate(model=...)", model, ACCEPTED))
    try:
        check_names(NO_MODEL, spec.run)
    except UsageError:
        raise wrong_argument("evaluate(model=...)", model, ACCEPTED) from None
    return NO_MODEL
