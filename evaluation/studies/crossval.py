"""Cross-validate label classifiers, with baselines.

Listed under: Commands to train models.

Label classifiers are fitted on all folds of a probe but one, evaluated on that fold, and compared
with the majority label and randomly initialised encoders (Kim et al. 2019, Figure 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean, stdev
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from evaluation.items.folds import folds_of, names_folds, open_rows
from evaluation.items.sources import WHOLE, ProbeSource, UnknownSplit
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import HeadLearner, LearnerEntry
from evaluation.learners.entries import MAJORITY
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL, Checkpoint
from evaluation.names import model_name
from evaluation.options import SELECTING, TRAINING
from evaluation.report import cells
from evaluation.results.analyses.vocabulary import CAPTION, HEAD, Slope, measure_folds
from evaluation.results.intervals import TwoWayBootstrap
from evaluation.results.types import Estimate
from evaluation.results.words import interval, p_value, percent
from evaluation.runs.spec import RunSpec
from evaluation.scorers.classifier import CLASSIFIER, classes_of
from evaluation.scorers.entry import ScorerEntry
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import count_clusters, train_overlap
from evaluation.studies.entries import (
    open_model,
    refuse_idle_options,
    with_options_of,
    zero_shot_scorer,
)
from evaluation.studies.table import (
    Column,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    fields,
    run_rows,
    summary_of,
)
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


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of all folds."""
    sections = [
        _section(request, probe, [run for run in finished if run.asks(probe)])
        for probe in request.probes
    ]
    return summary_of("crossval", "Cross-validation", sections, "probes")


AXES: dict[str, Column[Finished]] = {
    "kind": Column(
        "majority (of the rows fitted on), random (a learner on randomly initialised encoders), "
        "learner, or zero_shot (the model as it is).",
        lambda run: _kind(run),
    ),
    "model": Column(
        "The checkpoint, as it was given; none: no model.", lambda run: run.results.model.id
    ),
    "learner": Column(
        "Learner that was fitted; null if none.", lambda run: run.learnt.get("learner")
    ),
}
_RUNS = fields(
    {
        "name": "The model or baseline, in short.",
        **{name: axis.about for name, axis in AXES.items()},
        "accuracy": "Mean test accuracy over all rows of all folds. The interval resamples "
        "clusters, and repetitions where there are several.",
        "folds": "Test accuracy in each fold, in the order of their numbers: means over "
        "repetitions.",
        "fold_mean": "Mean of these.",
        "fold_sd": "Their standard deviation.",
        "repetitions": "Accuracy over all folds of each repetition: a seed, a random "
        "initialisation.",
        "repetition_sd": "Standard deviation of these; null if there is only one.",
    },
    {
        "name": "model",
        "fold_mean": "mean of folds",
        "fold_sd": "sd of folds",
        "repetition_sd": "sd of repetitions",
    },
    hidden=(*AXES, "folds", "repetitions"),
)
_VOCABULARY: dict[str, Column[tuple[str, Slope]]] = {
    "name": Column("The model or baseline, in short.", lambda pair: pair[0], head="model"),
    "words": Column(
        "Which words, and where they occur as well.", lambda pair: pair[1].what, head=HEAD[0]
    ),
    "mean": Column("Mean share of a row's words that do.", lambda pair: pair[1].mean, head=HEAD[1]),
    "points": Column(
        "Accuracy in points for each 10 points more of that share: the coefficient of a linear "
        "regression over the rows.",
        lambda pair: pair[1].points,
        cells.points,
        HEAD[2],
    ),
    "p_value": Column(
        "Of the hypothesis that it is 0.", lambda pair: pair[1].p_value, p_value, HEAD[4]
    ),
}
_PROBES = fields(
    {
        "source": "The probe, as it was given.",
        "setup": "The setup of its rows.",
        "rows": "Rows of all folds.",
        "clusters": "Clusters of rows.",
        "folds": "How many rows each fold has.",
        "train": "Rows of the other folds that each classifier is fitted on.",
        "chance": "Mean of one over the number of choices.",
        "human": "Share of people's votes for the intended answer; null if the probe has no "
        "annotations.",
    }
)


def _section(request: StudyRequest, probe: ProbeSource, runs: Sequence[Finished]) -> Section:
    """Report the models and baselines on one probe."""
    own, seed = _open_folds(request, probe), request.defaults.run.seed
    # In the paper's order: the majority label, random encoders, models.
    order = {"majority": 0, "random": 1}
    groups = sorted(run_rows(runs, AXES), key=lambda row: order.get(row.axes["kind"], 2))
    rows = [_measure(group, seed) for group in groups]
    human, chance = _human(request, probe), float(np.mean(1 / np.diff(own.rows.items.starts)))
    about = {
        "source": own.rows.source,
        "setup": own.rows.items[0].setup,
        "rows": len(own.rows.items),
        "clusters": len(set(own.rows.about["cluster"].to_pylist())),
        "folds": own.sizes,
        "train": own.train,
        "chance": chance,
        "human": human,
    }
    table = DataTable("runs", rows, _RUNS)
    slopes = [
        (str(row["name"]), slope)
        for row, group in zip(rows, groups, strict=True)
        for slope in _slopes(group)
    ]
    vocabulary = DataTable("vocabulary", slopes, _VOCABULARY)
    levels = [doc.Level("chance", chance)]
    if human is not None:
        levels.append(doc.Level("people", human.value, dash="solid"))
    return Section(
        {"probe": own.rows.name, "split": own.rows.split},
        [table, DataTable("probes", [about], _PROBES), vocabulary],
        [
            doc.Text(
                f"{len(own.rows.items):,} rows of the setup {about['setup']}, in "
                f"{about['clusters']:,} clusters and {len(own.sizes)} folds. Each fold is "
                f"evaluated once, by a classifier fitted on {own.train:,} rows of the other "
                f"folds. Chance is {percent(chance)}."
            ),
            table.dots(
                "Cross-validated test accuracy of each model and baseline.",
                levels,
                reference=lambda row: row["kind"] in order,
                parts="folds",
            ),
            table.shown("Test accuracy over all folds, with its 95% interval"),
            doc.Table(
                ("model", *(f"fold {fold}" for fold in own.sizes)),
                [(row["name"], *row["folds"]) for row in rows],
                "Test accuracy in each fold, mean over repetitions",
                fold="Each fold",
            ),
            vocabulary.shown(CAPTION, names=2),
        ],
        [] if human is None else [f"People: {percent(human.value)} ({interval(human)})."],
        _notes(request, own, runs),
    )


def _kind(run: Finished) -> str:
    model = run.results.model
    if model.id == NO_MODEL:
        return "majority"
    if not run.learnt:
        return "zero_shot"
    return "learner" if model.random_weights is None else "random"


def _measure(row: RunRow, seed: int) -> dict[str, Any]:
    """Average over folds and repetitions; clusters and repetitions are resampled."""
    folds = [run.results.scoring.options["fold"] for run in row.runs]
    drawn = [(run.results.model.random_weights, run.learnt.get("train_seed")) for run in row.runs]
    repetitions = list(dict.fromkeys(drawn))
    counts = count_clusters(row.runs)
    # The counts of each repetition, summed over its folds.
    member = np.array([[draw == other for other in repetitions] for draw in drawn], dtype=np.int64)
    bootstrap = TwoWayBootstrap(counts.right @ member, counts.scored @ member, seed=seed)
    average = bootstrap.average({number: number for number in range(len(repetitions))})
    of_runs = counts.right.sum(axis=0) / counts.scored.sum(axis=0)
    of_folds = [
        float(mean(of_runs[number] for number, own in enumerate(folds) if own == fold))
        for fold in sorted(set(folds))
    ]
    each = bootstrap.accuracies.tolist()
    return {
        **row.axes,
        "name": _name(row, len(repetitions)),
        "accuracy": average.estimate(),
        "folds": of_folds,
        "fold_mean": mean(of_folds),
        "fold_sd": stdev(of_folds),
        "repetitions": each,
        "repetition_sd": stdev(each) if len(each) > 1 else None,
    }


def _slopes(row: RunRow) -> list[Slope]:
    """Relate accuracy to the words that rows share with their premises, and with other folds."""
    folds = [run.results.scoring.options["fold"] for run in row.runs]
    tables = [run.predictions for run in row.runs]
    return measure_folds(tables, folds, fitted=row.axes["kind"] in ("learner", "random"))


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


def _notes(request: StudyRequest, own: _Folds, runs: Sequence[Finished]) -> list[str]:
    notes = []
    if not names_folds(own.rows):
        notes.append(
            f"The rows have no folds: their clusters were divided into {len(own.sizes)} by a hash "
            "of their names."
        )
    for model in [other for other in request.models if other != NO_MODEL]:
        if _scorer_as_it_is(request, open_model(request, model), own.setups) is None:
            notes.append(
                f"{model_name(model)} cannot be evaluated without training: it does not score "
                "these labels."
            )
    if train_overlap(runs):
        notes.append(
            "Clusters are in several folds: rows evaluated are related to rows fitted on, so "
            "accuracies are too high."
        )
    return notes


def _name(row: RunRow, repetitions: int) -> str:
    """Return a row's name: ``sentence-transformers/all-MiniLM-L6-v2, pooled``."""
    model, learner = model_name(row.axes["model"]), row.axes["learner"]
    encoders = "random encoder" if repetitions == 1 else f"{repetitions} random encoders"
    return {
        "majority": "majority label",
        "zero_shot": f"{model}, without training",
        "learner": f"{model}, {learner}",
        "random": f"{model}, {encoders}, {learner}",
    }[row.axes["kind"]]


CROSSVAL = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    options=CrossvalOptions,
    fixed=TRAINING - {"train"} | {*SELECTING, "facts", "scorer", "random_weights"},
    modelless=True,
)
"""The study."""
