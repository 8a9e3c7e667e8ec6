"""The runs of the study: every revision of each model, on each probe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from evaluation.models.revisions import Revision, find_revisions
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from kbprobe.errors import UsageError
from kbprobe.options import Options

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource

FIXED = ("revision", "random_weights")
"""Options of runs that the study sets itself."""


class RevisionsOptions(Options):
    """Which revisions are evaluated."""

    revisions: tuple[str, ...] = Field(
        (),
        description="Names of revisions, and patterns: 'step*' for the branches and tags on the "
        "Hub that match it, 'checkpoint-*' for the checkpoints in a folder. Required.",
    )

    @model_validator(mode="after")
    def _names_some(self) -> RevisionsOptions:
        if not self.revisions:
            raise ValueError(
                "name the revisions with --revisions, such as --revisions step1000,step2000 or "
                "--revisions 'step*' on the Hub, or --revisions 'checkpoint-*' of a folder with "
                "checkpoints in it"
            )
        return self


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, those of one revision after each other.

    Raises:
        UsageError: a model has none of the revisions, or only one.
        KbprobeError: the Hub cannot be asked what revisions there are.
    """
    options: RevisionsOptions = request.options
    specs = []
    for model in request.models:
        found = find_revisions(model, options.revisions)
        if len(found) < 2:
            raise UsageError(
                f"--revisions {','.join(options.revisions)} stands for a single revision of "
                f"{model} ({found[0].name}): name two or more. A single one is evaluated by "
                f"evaluate-probe PROBE --model {found[0].model}"
                + ("" if found[0].revision is None else f" --revision {found[0].revision}")
            )
        specs += [_spec(request, probe, model, one) for one in found for probe in request.probes]
    return specs


def revision_of(request: StudyRequest, spec: RunSpec) -> tuple[str, Revision]:
    """Return the model, as it was given, and its revision that a run of the study evaluates."""
    if spec.run.revision is not None:
        return spec.model, Revision(spec.run.revision, spec.model, spec.run.revision)
    path = Path(spec.model)
    within = [model for model in request.models if path.is_relative_to(model)]
    model = max(within, key=lambda one: len(Path(one).parts))
    return model, Revision(path.relative_to(model).as_posix(), spec.model, None)


def _spec(request: StudyRequest, probe: ProbeSource, model: str, one: Revision) -> RunSpec:
    """Return a run; the folder of its results is within that of the model."""
    named = request.spec(probe, model, revision=one.name)
    if one.revision is not None:
        return named
    return replace(request.spec(probe, one.model), folder=named.folder, former=None)
