"""Lookups for studies before anything runs: checkpoints, scorers, learners and their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evaluation.learners.base import LearnerEntry, has_setting
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL, Checkpoint, no_checkpoint, open_checkpoint
from evaluation.models.handle import IDENTITY
from evaluation.options import ModelOptions
from evaluation.runs.spec import RunSpec, plugins
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.registry import SCORERS, choose_scorer, suitable_scorer
from evaluation.studies.base import StudyRequest
from kbprobe.errors import UsageError
from kbprobe.options import option_name


def open_model(request: StudyRequest, model: str, **variant: Any) -> Checkpoint:
    """Open a model's checkpoint without its weights, with options that the study varies.

    Raises:
        UsageError: there is no such checkpoint.
        KbprobeError: its files cannot be read or fetched.
    """
    if model == NO_MODEL:
        return no_checkpoint()
    if request.loaded is not None:
        return request.loaded.checkpoint
    given = {**request.values, **variant}
    if given.get("endpoint") is not None:
        raise UsageError(
            f"{request.study.name} fits models, or looks into them, and an endpoint gives scores "
            "alone: leave --endpoint out, and name a checkpoint with --model"
        )
    own = {name: given[name] for name in ModelOptions.model_fields if name in given}
    identity = ModelOptions.parse(own, request.study.name).model_dump(include=IDENTITY)
    return open_checkpoint(model, **identity)


def require_scorer_options(
    request: StudyRequest, model: str, names: Sequence[str], does: str
) -> ScorerEntry:
    """Return the scorer of a model, and check that it has the options that a study varies.

    ``does`` is what a scorer with these options does, for messages.

    Raises:
        UsageError: the scorer lacks an option, or there is no such checkpoint.
    """
    chosen = choose_scorer(open_model(request, model), request.defaults.run.scorer)
    if set(names) <= set(chosen.options.model_fields):
        return chosen
    able = [entry.name for entry in SCORERS if set(names) <= set(entry.options.model_fields)]
    raise UsageError(
        f"{request.study.name} takes a model whose scorer {does}, and {model} is scored as a "
        f"{chosen.label}. Name a model that {' or '.join(able)} scores, or one of these with "
        "--scorer"
    )


def with_options_of(request: StudyRequest, *entries: ScorerEntry | LearnerEntry) -> StudyRequest:
    """Return the request without the options of scorers and learners other than ``entries``."""
    theirs = {name for entry in plugins() for name in entry.options.model_fields}
    theirs -= {name for entry in entries for name in entry.options.model_fields}
    values = {name: v for name, v in request.values.items() if name not in theirs}
    if "training" in values:
        given = request.defaults.options["training"]
        values["training"] = {
            key: value
            for key, value in given.items()
            if any(has_setting(entry.options, key) for entry in entries)
        }
    return replace(request, values=values)


def refuse_idle_options(request: StudyRequest, specs: Sequence[RunSpec]) -> None:
    """Refuse options of scorers and learners that no run uses."""
    taken = {name for spec in specs for name in spec.options}
    settings = {key for spec in specs for key in spec.options.get("training", {})}
    for key in request.defaults.options.get("training", {}):
        if key not in settings:
            raise UsageError(
                f"--training {key} is for networks with LSTMs, which none of these runs "
                "uses: leave it out"
            )
    for name in request.values:
        owners = [entry.label for entry in plugins() if name in entry.options.model_fields]
        if owners and name not in taken:
            raise UsageError(
                f"{option_name(name)} is for {' or '.join(dict.fromkeys(owners))}, which none of "
                "these runs uses: leave it out"
            )


def zero_shot_scorer(able: Capability, setups: frozenset[str]) -> ScorerEntry | None:
    """Return the scorer for a model without training; None if it needs training first."""
    entry = suitable_scorer(able)
    return entry if entry is not None and all(map(entry.takes, setups)) else None
