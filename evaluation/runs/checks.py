"""Checks of runs that do not need torch or transformers.

Names of scorers and learners, probes with their configs and splits, folders of models, and where
results are to go. What only a loaded library or the rows themselves can tell comes later.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from evaluation.items.sources import WHOLE, FoundSplit, ProbeSource, UnknownSplit, find_split
from evaluation.learners.base import LearnerEntry
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL, refuse_idle_model
from evaluation.options import RunOptions
from evaluation.runs.folders import refuse_other_folder
from evaluation.runs.identity import refuse_known_differences
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.registry import SCORERS
from kbprobe.checkpoint_files import check_local, is_checkpoint
from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS


def check_runs(specs: Iterable[RunSpec], overwrite: bool) -> None:
    """Check runs as far as is possible without a model.

    Raises:
        UsageError: an unknown scorer or learner; no such probe, config, split or model; or a
            folder that is not to be written to.
    """
    seen: set[object] = set()
    split_of = cache(check_split)  # A study has many runs of few splits.
    for spec in specs:
        check_names(spec.model, spec.run)
        found = None
        if isinstance(spec.probe, str):
            found = split_of(spec.probe, spec.run.split, spec.run.config)
            if _learns_from_own(spec):
                split_of(spec.probe, "train", spec.run.config)
        for probe in filter(None, (spec.run.train_on, spec.run.mix_in)):
            split_of(probe, "train", None)
        in_files = spec.run.endpoint is None and spec.loaded is None
        if in_files and spec.model not in seen:
            check_model(spec.model, spec.run.revision)
            seen.add(spec.model)
        if spec.folder is not None:
            refuse_other_folder(spec.folder)
            if not overwrite:
                refuse_known_differences(spec, found)


def _learns_from_own(spec: RunSpec) -> bool:
    """Return whether a run uses rows or examples from the train split of its own probe."""
    if spec.run.train_on is not None or spec.run.fold is not None:
        return False
    given = (entry for entry in SCORERS if set(entry.options.model_fields) & set(spec.options))
    shots = any(entry.uses_train(spec.plugin_options(entry.options)) for entry in given)
    return spec.run.train is not None or shots


def check_names(model: str, options: RunOptions) -> None:
    """Check the names of scorer and learner, and whether they go with the model, if known.

    Raises:
        UsageError: there is none of that name; there is no model, and nothing that can do
            without; or there is one, and what is named reads none.
    """
    scorer = None if options.scorer is None else SCORERS.get(options.scorer)
    learner = None if options.learner is None else LEARNERS.get(options.learner)
    chosen = scorer if options.train is None else learner
    if model == NO_MODEL and (chosen is None or chosen.needs):
        scorers = [entry.name for entry in SCORERS if not entry.needs]
        learners = [entry.name for entry in LEARNERS if not entry.needs]
        raise UsageError(
            f"--model none: {_needs_one(options, chosen)}. Name a --model, or --scorer "
            f"{' or '.join(scorers)}, or --train N with --learner {' or '.join(learners)}: these "
            "need none."
        )
    if model and chosen is not None and not chosen.needs:
        refuse_idle_model(model, _named(options, chosen))


def _named(options: RunOptions, entry: ScorerEntry | LearnerEntry) -> str:
    """Return the option that names a scorer or learner."""
    if options.train is None:
        return f"--scorer {entry.name}"
    return f"--learner {entry.name} --train N"


def _needs_one(options: RunOptions, entry: ScorerEntry | LearnerEntry | None) -> str:
    if entry is None:
        return "there is no model to score with"
    return f"{_named(options, entry)} needs a model"


def check_split(source: ProbeSource, split: str, config: str | None) -> FoundSplit | None:
    """Check that a probe has a config and a split, and return the files of the split.

    None where that is not known without reading the rows: on the Hub, in memory, all splits.

    Raises:
        UsageError: there is no such probe, config or split.
    """
    if not isinstance(source, str):
        return None
    if is_checkpoint(source):
        raise UsageError(f"{source} holds a model, not a probe: name it with --model")
    try:
        return find_split(source, split=split, config=config)
    except UnknownSplit:
        if split != WHOLE or not any(_has(source, name, config) for name in SPLITS):
            raise
        return None


def _has(source: str, split: str, config: str | None) -> bool:
    try:
        find_split(source, split=split, config=config)
    except UnknownSplit:
        return False
    return True


def check_model(model: str, revision: str | None) -> None:
    """Check that a model's folder or file is there, unless it has to be fetched.

    Raises:
        UsageError: it is not, or it holds no checkpoint.
    """
    if model != NO_MODEL:
        check_local(model, revision)
