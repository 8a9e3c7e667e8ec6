"""Cross-validation of labels: each fold of a probe is scored by learners fitted on the others.

The probes, and the table of accuracies, are those of Kim et al. (2019), Figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean, stdev
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from evaluation.items.folds import folds_of, names_folds, open_rows
from evaluation.items.sources import WHOLE, ProbeSource, UnknownSplit
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import HeadLearner, LearnerEntry
from evaluation.learners.entries import MAJORITY
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL, Checkpoint
from evaluation.options import SELECTING, TRAINING
from evaluation.results.analyses.vocabulary import CAPTION, HEAD, Slope, measure_folds, table_of
from evaluation.results.intervals import TwoWayBootstrap
from evaluation.results.types import Estimate, Model
from evaluation.results.words import last_name, name_or_count, percent, short
from evaluation.runs.spec import RunSpec
from evaluation.scorers.classifier import CLASSIFIER, classes_of
from evaluation.scorers.entry import ScorerEntry
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import count_clusters, group_by, train_overlap
from evaluation.studies.entries import (
    open_model,
    refuse_idle_options,
    with_options_of,
    zero_shot_scorer,
)
from evaluation.studies.records import Record
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.setups import LABELLED_SETUPS, SPLITS
from kbprobe.options import Options


class CrossvalOptions(Options):
    """What is cross-validated, and how often."""

    learners: tuple[str, ...] = Field(
        ("pooled",),
        min_length=1,
        description="Learners to cross-validate: pooled (a classifier on the frozen encoder), "
        "full_labels (the whole encoder), or others that apply to the rows.",
    )
    seeds: int = Field(1, ge=1, description="Repetitions of every fold with different seeds.")
    random_init: int = Field(
        0,
        ge=0,
        description="Also cross-validate this many randomly initialised encoders of the same "
        "architecture, frozen (Kim et al. 2019 use five).",
    )

    @field_validator("learners")
    @classmethod
    def _are_learners(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            LEARNERS.get(name)
        return tuple(dict.fromkeys(names))


Kind = Literal["majority", "random", "learner", "zero_shot"]


class CrossvalRow(Model):
    """A model on a probe: every row of the probe is evaluated once in each repetition."""

    kind: Kind = Field(
        description="majority (of the rows fitted on), random (a learner on randomly initialised "
        "encoders), learner, or zero_shot (the model as it is)."
    )
    model: str = Field(description="The checkpoint, as it was given; none: no model.")
    learner: str | None = Field(description="Learner that was fitted; null if none.")
    accuracy: Estimate = Field(
        description="Mean test accuracy over all rows of all folds. The interval resamples "
        "clusters, and repetitions where there are several."
    )
    folds: list[float] = Field(
        description="Test accuracy in each fold, in the order of their numbers: means over "
        "repetitions."
    )
    fold_mean: float = Field(description="Mean of these.")
    fold_sd: float = Field(description="Their standard deviation.")
    repetitions: list[float] = Field(
        description="Accuracy over all folds of each repetition: a seed, a random initialisation."
    )
    repetition_sd: float | None = Field(
        description="Standard deviation of these; null if there is only one."
    )
    vocabulary: list[Slope] = Field(
        default_factory=list,
        description="Accuracy and the words that rows share with their premises, and with the "
        "other folds: of the predictions of all folds and repetitions.",
    )


class ProbeCrossval(Record):
    """One probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="The probe, as it was given.")
    split: str = Field(description="Split whose folds are used; all: all splits together.")
    setup: str = Field(description="The setup of its rows.")
    rows: int = Field(description="Rows of all folds.")
    clusters: int = Field(description="Clusters of rows.")
    folds: dict[int, int] = Field(description="How many rows each fold has.")
    train: int = Field(description="Rows of the other folds that each classifier is fitted on.")
    chance: float = Field(description="Mean of one over the number of choices.")
    human: Estimate | None = Field(
        description="Share of people's votes for the intended answer; null if the probe has no "
        "annotations."
    )
    results: list[CrossvalRow] = Field(description="Models and baselines.")
    notes: list[str] = Field(description="Caveats for the reader.")


class CrossvalSummary(Model):
    """All of ``crossval.json``."""

    schema_version: str = "1.1"
    probes: list[ProbeCrossval] = Field(description="Each probe.")


@dataclass(frozen=True)
class _Folds:
    """A probe's rows, divided into folds.

    Attributes:
        rows: all rows.
        sizes: the number of rows in each fold.
        train: the number of rows of the other folds that learners are fitted on.
    """

    rows: ProbeSplit
    sizes: dict[int, int]
    train: int

    @property
    def setups(self) -> frozenset[str]:
        """The setups of the rows."""
        return setups_of(self.rows.items)


def _open_folds(request: StudyRequest, probe: ProbeSource) -> _Folds:
    """Read a probe and its folds.

    All folds have the same number of training rows, that of the smallest training set, unless
    ``--train`` asks for fewer. The heads of all folds can then be trained side by side.
    """
    run = _divided(request).defaults.run
    rows = open_rows(probe, run.split, run.config, run.label_names)
    sizes = folds_of(rows)
    most = len(rows.items) - max(sizes.values())
    if run.train is not None and run.train > most:
        raise UsageError(
            f"--train {run.train:,} asks for more rows than {rows.source} has outside its largest "
            f"fold ({most:,}). Use --train {most} or less."
        )
    return _Folds(rows, sizes, run.train or most)


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by model."""
    request = _divided(request)
    divided = [(probe, _open_folds(request, probe)) for probe in request.probes]
    options: CrossvalOptions = request.options
    learners = [LEARNERS.get(name) for name in options.learners]
    models = [model for model in request.models if model != NO_MODEL]
    checkpoints = [open_model(request, model) for model in models]
    _check_learners(learners, [own for _, own in divided], checkpoints)
    frozen = [entry for entry in learners if isinstance(entry, HeadLearner) and entry.needs]
    if options.random_init and models and not frozen:
        raise UsageError(
            "--random-init is for learners on a frozen encoder: add pooled to --learners, or leave "
            "it out"
        )
    specs: list[RunSpec] = []
    for probe, own in divided:
        specs += _runs(request, probe, NO_MODEL, own, MAJORITY, 1)
    for model, checkpoint in zip(models, checkpoints, strict=True):
        for probe, own in divided:
            scorer = _scorer_as_it_is(request, checkpoint, own.setups)
            if scorer is not None:
                specs += _zero_shot(request, probe, model, own, scorer)
            for entry in learners:
                specs += _runs(request, probe, model, own, entry, options.seeds)
        for number, (probe, own), entry in product(range(options.random_init), divided, frozen):
            specs += _runs(request, probe, model, own, entry, 1, random_weights=number)
    refuse_idle_options(request, specs)
    return specs


def _scorer_as_it_is(
    request: StudyRequest, checkpoint: Checkpoint, setups: frozenset[str]
) -> ScorerEntry | None:
    """Return the scorer for a model without training; None if there is none.

    A classifier is used only if its classes are the labels of the rows.
    """
    scorer = zero_shot_scorer(checkpoint.capabilities, setups)
    if scorer is CLASSIFIER:
        names = getattr(checkpoint.config, "id2label", None) or {}
        stated = request.defaults.options.get("class_labels", ())
        try:
            for setup in setups & set(LABELLED_SETUPS):
                classes_of(setup, {int(n): str(v) for n, v in names.items()}, stated, checkpoint.id)
        except UsageError:
            return None
    return scorer


def _divided(request: StudyRequest) -> StudyRequest:
    """Divide the rows of all splits combined, unless a split is named."""
    return replace(request, values={"split": WHOLE, **request.values})


def _runs(
    request: StudyRequest,
    probe: ProbeSource,
    model: str,
    own: _Folds,
    entry: LearnerEntry,
    seeds: int,
    **variant: Any,
) -> Iterator[RunSpec]:
    """Yield the runs of a learner on all folds."""
    trained = with_options_of(request, entry, entry.scorer)
    first = request.defaults.run.seed
    for fold, seed in product(own.sizes, range(first, first + seeds)):
        changes = {**variant, "learner": entry.name, "fold": fold, "train": own.train}
        yield trained.spec(probe, model, **changes, train_seed=seed, facts=False)


def _zero_shot(
    request: StudyRequest, probe: ProbeSource, model: str, own: _Folds, scorer: ScorerEntry
) -> Iterator[RunSpec]:
    values = {name: value for name, value in request.values.items() if name != "train"}
    untrained = with_options_of(replace(request, values=values), scorer)
    for fold in own.sizes:
        spec = untrained.spec(probe, model, fold=fold, facts=False)
        yield replace(spec, folder=spec.folder and spec.folder / "zero-shot")


def _check_learners(
    learners: Sequence[LearnerEntry], folds: Sequence[_Folds], checkpoints: Sequence[Checkpoint]
) -> None:
    """Refuse learners that cannot handle the rows, or cannot be fitted on the models."""
    for own, entry in product(folds, learners):
        if others := sorted(setup for setup in own.setups if not entry.takes(setup)):
            raise UsageError(
                f"{own.rows.source} has rows of the setup {', '.join(others)}, and {entry.name} is "
                f"fitted only on {', '.join(entry.setups)}: name other --learners"
            )
    for entry in learners:
        if not entry.needs:
            remedy = (
                f"Evaluate it on one fold at a time: --model {NO_MODEL} --learner {entry.name} "
                "--train N --fold 0"
            )
            if entry.name == MAJORITY.name:
                remedy = "It is always shown: leave it out"
            raise UsageError(
                f"--learners {entry.name} reads no model, and models are compared. {remedy}"
            )
    for checkpoint, entry in product(checkpoints, learners):
        if entry.needs not in checkpoint.capabilities:
            raise UsageError(
                f"{entry.name} cannot be fitted on {checkpoint.id} ({checkpoint.architecture}): "
                "name other --learners, or another --model"
            )


class _Row(NamedTuple):
    """What identifies a row of the table."""

    kind: Kind
    model: str
    learner: str | None


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> CrossvalSummary:
    """Summarise the runs of all folds."""
    return CrossvalSummary(probes=[_probe(request, probe, finished) for probe in request.probes])


def _probe(
    request: StudyRequest, probe: ProbeSource, finished: Sequence[Finished]
) -> ProbeCrossval:
    own = _open_folds(request, probe)
    groups = group_by((run for run in finished if run.asks(probe)), _row_of)
    seed = request.defaults.run.seed
    # In the paper's order: the majority label, random encoders, models.
    order = sorted(groups, key=lambda row: {"majority": 0, "random": 1}.get(row.kind, 2))
    return ProbeCrossval.of(
        next(iter(groups.values()))[0],
        source=own.rows.source,
        split=own.rows.split,
        setup=own.rows.items[0].setup,
        rows=len(own.rows.items),
        clusters=len(set(own.rows.about["cluster"].to_pylist())),
        folds=own.sizes,
        train=own.train,
        chance=float(np.mean(1 / np.diff(own.rows.items.starts))),
        human=_human(request, probe),
        results=[_summary(row, groups[row], seed) for row in order],
        notes=_notes(request, own, groups),
    )


def _row_of(run: Finished) -> _Row:
    """Return the row of the table that a run belongs to."""
    model, learner = run.results.model, run.learnt.get("learner")
    if model.id == NO_MODEL:
        return _Row("majority", model.id, MAJORITY.name)
    if learner is None:
        return _Row("zero_shot", model.id, None)
    return _Row("learner" if model.random_weights is None else "random", model.id, str(learner))


def _summary(row: _Row, runs: Sequence[Finished], seed: int) -> CrossvalRow:
    """Average over folds and repetitions; clusters and repetitions are resampled."""
    folds = [run.results.scoring.options["fold"] for run in runs]
    names = [(run.results.model.random_weights, run.learnt.get("train_seed")) for run in runs]
    repetitions = list(dict.fromkeys(names))
    counts, tables = count_clusters(runs), [run.predictions for run in runs]
    # The counts of each repetition, summed over its folds.
    member = np.array([[name == one for one in repetitions] for name in names], dtype=np.int64)
    right, scored = counts.right @ member, counts.scored @ member
    bootstrap = TwoWayBootstrap(right, scored, seed=seed)
    average = bootstrap.average({number: number for number in range(len(repetitions))})
    of_runs = counts.right.sum(axis=0) / counts.scored.sum(axis=0)
    of_folds = [
        float(mean(of_runs[at] for at, own in enumerate(folds) if own == fold))
        for fold in sorted(set(folds))
    ]
    each = bootstrap.accuracies.tolist()
    return CrossvalRow(
        **row._asdict(),
        accuracy=average.estimate(),
        folds=of_folds,
        fold_mean=mean(of_folds),
        fold_sd=stdev(of_folds),
        repetitions=each,
        repetition_sd=stdev(each) if len(each) > 1 else None,
        vocabulary=measure_folds(tables, folds, fitted=row.kind in ("learner", "random")),
    )


def _human(request: StudyRequest, probe: ProbeSource) -> Estimate | None:
    """Return the accuracy of human votes, from the first split with annotations."""
    run = request.defaults.run
    for split in SPLITS:
        with suppress(UnknownSplit):
            manifest = open_rows(probe, split, run.config, run.label_names).manifest
            annotation = manifest and manifest.annotation
            if annotation and annotation.vote_accuracy:
                return annotation.vote_accuracy
    return None


def _notes(request: StudyRequest, own: _Folds, groups: dict[_Row, list[Finished]]) -> list[str]:
    notes = []
    if not names_folds(own.rows):
        notes.append(
            f"The rows have no folds: their clusters were divided into {len(own.sizes)} by a hash "
            "of their names."
        )
    for model in [one for one in request.models if one != NO_MODEL]:
        if _scorer_as_it_is(request, open_model(request, model), own.setups) is None:
            notes.append(
                f"{last_name(model)} cannot be evaluated without training: it does not score "
                "these labels."
            )
    if train_overlap(run for runs in groups.values() for run in runs):
        notes.append(
            "Clusters are in several folds: rows evaluated are related to rows fitted on, so "
            "accuracies are too high."
        )
    return notes


def _document(summary: CrossvalSummary) -> doc.Document:
    """Return the document: a section for each probe."""
    title = name_or_count([one.probe for one in summary.probes], "probes")
    return doc.Document("Cross-validation", title, [_section(one) for one in summary.probes])


def _section(one: ProbeCrossval) -> doc.Section:
    return doc.Section(
        f"{one.probe} ({one.split})",
        [
            doc.Text(
                f"{one.rows:,} rows of the setup {one.setup}, in {one.clusters:,} clusters and "
                f"{len(one.folds)} folds. Each fold is evaluated once, by a classifier fitted on "
                f"{one.train:,} rows of the other folds. Chance is {percent(one.chance)}."
            ),
            doc.Caveats(one.notes),
            _dots(one),
            _accuracies(one),
            doc.Table(
                ("model", *(f"fold {fold}" for fold in one.folds)),
                [(_name(row), *row.folds) for row in one.results],
                "Test accuracy in each fold, mean over repetitions",
                fold="Each fold",
            ),
            doc.Table(
                ("model: words", *HEAD[1:]),
                [
                    (f"{_name(row)}: {words}", *numbers)
                    for row in one.results
                    for words, *numbers in table_of(row.vocabulary)
                ],
                CAPTION,
            ),
        ],
        link=one.probe,
    )


def _dots(one: ProbeCrossval) -> doc.Dots:
    """Return the figure of accuracies, with a small dot for each fold."""
    levels = [doc.Level("chance", one.chance)]
    if one.human is not None:
        levels.append(doc.Level("people", one.human.value, dash="solid"))
    return doc.Dots(
        f"Cross-validated test accuracy on {one.probe} of each model and baseline.",
        [
            doc.Dot(
                _name(row, figure=True),
                row.accuracy,
                row.kind in ("majority", "random"),
                row.folds,
            )
            for row in one.results
        ],
        levels,
        parts="a fold",
    )


def _accuracies(one: ProbeCrossval) -> doc.Table:
    rows: list[doc.Row] = [
        (_name(row), row.accuracy, row.fold_mean, row.fold_sd, row.repetition_sd)
        for row in one.results
    ]
    if one.human is not None:
        rows.append(("people", one.human, None, None, None))
    return doc.Table(
        ("model", "accuracy", "mean of folds", "sd of folds", "sd of repetitions"),
        rows,
        "Test accuracy over all folds, with its 95% interval",
    )


def _name(row: CrossvalRow, *, figure: bool = False) -> str:
    """Return a row's name: ``sentence-transformers/all-MiniLM-L6-v2, pooled``.

    In a ``figure``, which has less room, it is ``all-MiniLM-L6-v2, pooled``.
    """
    model = last_name(row.model)
    if figure:
        model = short(model.rpartition("/")[2], 20)
    if row.kind == "majority":
        return "majority label"
    if row.kind == "zero_shot":
        return f"{model}, without training"
    if row.kind == "learner":
        return f"{model}, {row.learner}"
    number = len(row.repetitions)
    encoders = "random encoder" if number == 1 else f"{number} random encoders"
    return f"{model}, {encoders}, {row.learner}"


CROSSVAL = Study(
    name="crossval",
    help="Cross-validation: fit label classifiers on all folds of a probe but one, evaluate them "
    "on that fold, and compare with the majority label and randomly initialised encoders.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    options=CrossvalOptions,
    fixed=TRAINING - {"train"} | {*SELECTING, "facts", "scorer", "random_weights"},
    modelless=True,
)
"""The study."""
