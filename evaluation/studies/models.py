"""What a study must know of its models before anything runs: their checkpoints, unloaded."""

from __future__ import annotations

from typing import Any

from evaluation.models.checkpoint import NO_MODEL, Checkpoint, no_checkpoint, open_checkpoint
from evaluation.models.handle import IDENTITY
from evaluation.options import ModelOptions
from evaluation.studies.base import StudyRequest
from kbprobe.errors import UsageError


def open_model(request: StudyRequest, model: str, **variant: Any) -> Checkpoint:
    """Open a model's checkpoint without its weights, as the request's options say.

    Args:
        request: of the study.
        model: a folder, a file or a Hub id; or ``none``.
        variant: options that the study changes, such as ``revision``.

    Raises:
        UsageError: there is no such checkpoint.
        KbprobeError: its files cannot be read or fetched.
    """
    if model == NO_MODEL:
        return no_checkpoint()
    given = {**request.values, **variant}
    if given.get("endpoint") is not None:
        raise UsageError(
            f"{request.study.name} fits models, or looks into them, and an endpoint gives scores "
            "alone: leave --endpoint out, and name a checkpoint with --model"
        )
    own = {name: given[name] for name in ModelOptions.model_fields if name in given}
    identity = ModelOptions.parse(own, request.study.name).model_dump(include=IDENTITY)
    return open_checkpoint(model, **identity)
