"""The runs of the study: every fold of each probe, for each model, baseline and repetition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.items.folds import folds_of, open_rows
from evaluation.items.sources import WHOLE, ProbeSource
from evaluation.items.types import LABELLED_SETUPS, ProbeSplit, setups_of
from evaluation.learners.base import HeadLearner, LearnerEntry
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL, Checkpoint
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.studies.base import StudyRequest
from evaluation.studies.crossval.options import CrossvalOptions
from evaluation.studies.entries import refuse_idle_options, with_options_of, zero_shot_scorer
from evaluation.studies.models import open_model
from kbprobe.errors import UsageError

FIXED = (
    *("fold", "learner", "train_seed", "train_on", "mix_in", "mix_rows", "random_weights"),
    *("scorer", "facts", "labels", "limit"),
)
"""Options of runs that the study sets itself."""

MAJORITY = "majority"


@dataclass(frozen=True)
class Folds:
    """A probe's rows, divided.

    Attributes:
        rows: all of them.
        sizes: how many rows each fold has.
        train: how many rows of the other folds each fit is made on.
    """

    rows: ProbeSplit
    sizes: dict[int, int]
    train: int

    @property
    def setups(self) -> frozenset[str]:
        """The setups of the rows."""
        return setups_of(self.rows.items)


def open_folds(request: StudyRequest, probe: ProbeSource) -> Folds:
    """Read a probe and its folds.

    Every fold is fitted on as many rows, those of the smallest training set, unless ``--train``
    says fewer: so the heads of all folds are trained side by side.

    Raises:
        UsageError: only some rows name a fold, or there are fewer than ``--train``.
    """
    run = _divided(request).defaults.run
    rows = open_rows(probe, run.split, run.config)
    sizes = folds_of(rows)
    most = len(rows.items) - max(sizes.values())
    if run.train is not None and run.train > most:
        raise UsageError(
            f"--train {run.train:,} asks for more rows than {rows.source} has outside its largest "
            f"fold ({most:,}). Use --train {most} or less."
        )
    return Folds(rows, sizes, run.train or most)


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, those of one model after each other.

    Raises:
        UsageError: a probe has rows that a learner does not take; a model lacks what
            a learner needs.
    """
    request = _divided(request)
    probes = request.probes
    folds = [open_folds(request, probe) for probe in probes]
    options: CrossvalOptions = request.options
    learners = [LEARNERS.get(name) for name in options.learners]
    models = [model for model in request.models if model != NO_MODEL]
    checkpoints = [open_model(request, model) for model in models]
    for own in folds:
        for entry in learners:
            _require_setups(own, entry)
    for entry in learners:
        _require_model(entry)
    for checkpoint in checkpoints:
        for entry in learners:
            _require_capabilities(checkpoint, entry)
    frozen = [entry for entry in learners if isinstance(entry, HeadLearner) and entry.needs]
    if options.random_init and models and not frozen:
        raise UsageError(
            "--random-init is for learners on a frozen encoder: add pooled to --learners, or leave "
            "it out"
        )
    specs: list[RunSpec] = []
    majority = LEARNERS.get(MAJORITY)
    for probe, own in zip(probes, folds, strict=True):
        specs += _runs(request, probe, NO_MODEL, own, majority, 1)
    for model, checkpoint in zip(models, checkpoints, strict=True):
        for probe, own in zip(probes, folds, strict=True):
            scorer = scorer_as_it_is(request, checkpoint, own.setups)
            if scorer is not None:
                specs += _zero_shot(request, probe, model, own, scorer)
            for entry in learners:
                specs += _runs(request, probe, model, own, entry, options.seeds)
        for number in range(options.random_init):
            for probe, own in zip(probes, folds, strict=True):
                for entry in frozen:
                    variant = {"random_weights": number}
                    specs += _runs(request, probe, model, own, entry, 1, **variant)
    refuse_idle_options(request, specs)
    return specs


def scorer_as_it_is(
    request: StudyRequest, checkpoint: Checkpoint, setups: frozenset[str]
) -> ScorerEntry | None:
    """Return what scores a model without training; None: it cannot be asked.

    A classifier is asked where its classes are the labels of the rows.
    """
    from evaluation.scorers.classifier import CLASSIFIER
    from evaluation.scorers.classifier.labels import classes_of

    scorer = zero_shot_scorer(checkpoint.capabilities, setups)
    if scorer is CLASSIFIER:
        config = checkpoint.config
        names = getattr(config, "id2label", None) or {}
        stated = request.defaults.options.get("class_labels", ())
        try:
            for setup in setups & set(LABELLED_SETUPS):
                classes_of(setup, {int(n): str(v) for n, v in names.items()}, stated, checkpoint.id)
        except UsageError:
            return None
    return scorer


def _divided(request: StudyRequest) -> StudyRequest:
    """Have all splits divided together, unless another split is named."""
    return replace(request, values={"split": WHOLE, **request.values})


def _runs(
    request: StudyRequest,
    probe: ProbeSource,
    model: str,
    own: Folds,
    entry: LearnerEntry,
    seeds: int,
    **variant: Any,
) -> Iterator[RunSpec]:
    """Yield the runs of a learner on all folds."""
    trained = with_options_of(request, entry, entry.scorer)
    first = request.defaults.run.seed
    for fold in own.sizes:
        for seed in range(first, first + seeds):
            changes = {**variant, "learner": entry.name, "fold": fold, "train": own.train}
            yield trained.spec(probe, model, **changes, train_seed=seed, facts=False)


def _zero_shot(
    request: StudyRequest, probe: ProbeSource, model: str, own: Folds, scorer: ScorerEntry
) -> Iterator[RunSpec]:
    untrained = with_options_of(request, scorer)
    values = {name: value for name, value in untrained.values.items() if name != "train"}
    untrained = replace(untrained, values=values)
    for fold in own.sizes:
        spec = untrained.spec(probe, model, fold=fold, facts=False)
        yield replace(spec, folder=spec.folder and spec.folder / "zero-shot")


def _require_setups(own: Folds, entry: LearnerEntry) -> None:
    others: Sequence[str] = sorted(setup for setup in own.setups if not entry.takes(setup))
    if others:
        raise UsageError(
            f"{own.rows.source} has rows of the setup {', '.join(others)}, and {entry.name} is "
            f"fitted only on {', '.join(entry.setups)}: name other --learners"
        )


def _require_model(entry: LearnerEntry) -> None:
    if entry.needs:
        return
    remedy = (
        f"Evaluate it on one fold at a time: --model {NO_MODEL} --learner {entry.name} --train N "
        "--fold 0"
    )
    if entry.name == MAJORITY:
        remedy = "It is always shown: leave it out"
    raise UsageError(f"--learners {entry.name} reads no model, and models are compared. {remedy}")


def _require_capabilities(checkpoint: Checkpoint, entry: LearnerEntry) -> None:
    if entry.needs not in checkpoint.capabilities:
        raise UsageError(
            f"{entry.name} cannot be fitted on {checkpoint.id} ({checkpoint.architecture}): name "
            "other --learners, or another --model"
        )
