"""The runs of the study: each model as it is, all settings, and the best ones on the test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import SCORED_SETUPS, ProbeSplit, setups_of
from evaluation.models.capabilities import MULTIPLE_CHOICE
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.entries import with_options_of
from evaluation.studies.inoculate.options import TIMES, InoculateOptions
from evaluation.studies.inoculate.selection import (
    HELD_OUT,
    SELECTION,
    Runs,
    Setting,
    best_settings,
    best_size,
)
from evaluation.studies.models import open_model
from kbprobe.errors import UsageError

FIXED = (
    *("split", "fold", "config", "scorer", "learner", "train", "train_seed", "train_on", "mix_in"),
    *("mix_rows", "inputs", "labels", "facts", "random_weights", "learning_rate", "epochs"),
)
"""Options of runs that the study sets itself."""

LEARNER = "full"


@dataclass(frozen=True)
class Tasks:
    """The probes and the original task, read before anything is trained.

    Attributes:
        probes: folders, files or Hub ids, as given.
        sizes: numbers of rows to train on, for each probe.
        original: the original task, likewise.
    """

    probes: list[str]
    sizes: list[list[int]]
    original: str


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs that settings are chosen by, those of one model after each other.

    Raises:
        UsageError: there is no original task, or it cannot be read; a probe lacks a split or has
            too few rows; a model has no multiple-choice head that was trained.
    """
    options: InoculateOptions = request.options
    tasks = _open_tasks(request)
    for model in request.models:
        _require_head(request, model, tasks.original)
    specs = []
    for model in request.models:
        specs.append(_untrained(request, model, tasks.original, SELECTION))
        for probe in tasks.probes:
            specs += [_untrained(request, model, probe, split) for split in (SELECTION, HELD_OUT)]
        for probe, sizes in zip(tasks.probes, tasks.sizes, strict=True):
            for size, rate, seed in product(sizes, options.learning_rates, range(options.seeds)):
                # More epochs follow fewer: with a constant rate they go on from them.
                for epochs in options.epoch_counts:
                    setting = Setting(model, probe, size, rate, epochs)
                    for task in (probe, tasks.original):
                        specs.append(_trained(request, setting, seed, task, SELECTION))
    return specs


def follow(request: StudyRequest, finished: Sequence[Finished]) -> list[RunSpec]:
    """Return the runs on the test split: each size's best setting on the probe trained on.

    The best size of all is tested on the other probes as well.
    """
    options: InoculateOptions = request.options
    runs, original = Runs(finished), options.original or ""
    probes = [str(probe) for probe in request.probes]
    specs = []
    for model, probe in product(request.models, probes):
        chosen = best_settings(runs, model, probe, original)
        best = best_size(runs, chosen, original)
        for size, setting in chosen.items():
            others = [other for other in probes if other != probe] if size == best else []
            for seed in range(options.seeds):
                specs += [
                    _trained(request, setting, seed, task, HELD_OUT) for task in (probe, *others)
                ]
    return specs


def _open_tasks(request: StudyRequest) -> Tasks:
    options: InoculateOptions = request.options
    if options.original is None:
        raise UsageError(
            "inoculate measures what training on a probe costs on the task that the models were "
            "trained for before: name it with --original TASK (a folder, a file or a Hub id)"
        )
    if odd := [probe for probe in request.probes if not isinstance(probe, str)]:
        raise UsageError(
            f"inoculate needs probes by name, and got a dataset in memory ({type(odd[0]).__name__}"
            "): save it, and name its folder"
        )
    probes = list(dict.fromkeys(map(str, request.probes)))
    if options.original in probes:
        raise UsageError(f"{options.original} is the original task: name another probe")
    _open(options.original, SELECTION)
    sizes = []
    for probe in probes:
        train = _open(probe, "train")
        for split in (SELECTION, HELD_OUT):
            _open(probe, split)
        sizes.append(_possible_sizes(options, probe, len(train.items)))
    if times := TIMES[options.add_original]:
        most, rows = times * max(map(max, sizes)), len(_open(options.original, "train").items)
        if most > rows:
            raise UsageError(
                f"--add-original {options.add_original} needs {most:,} rows of "
                f"{options.original}, whose train split has {rows:,}: name --sizes up to "
                f"{rows // times:,}"
            )
    return Tasks(probes, sizes, options.original)


def _open(source: str, split: str) -> ProbeSplit:
    """Read a split of a probe or task; it is closed again, and read anew when it is needed."""
    try:
        opened = open_probe(source, split=split)
    except UnknownSplit as error:
        raise UsageError(
            f"inoculate trains on train rows, chooses settings on {SELECTION} rows and tests them "
            f"on {HELD_OUT} rows (of the original task: only {SELECTION}). {error}"
        ) from error
    if odd := sorted(setups_of(opened.items) - set(SCORED_SETUPS)):
        raise UsageError(
            f"{source} has rows of the setup {odd[0]}: inoculate trains multiple-choice models, "
            f"which read {' and '.join(SCORED_SETUPS)}. For labels: evaluate-probe crossval"
        )
    return opened


def _possible_sizes(options: InoculateOptions, probe: str, rows: int) -> list[int]:
    """Return the sizes that a probe has the rows for; those that were asked for must all be."""
    possible = [size for size in options.sizes if size <= rows]
    asked = "sizes" in options.model_fields_set
    if not possible or (asked and len(possible) < len(options.sizes)):
        too_many = next(size for size in options.sizes if size > rows)
        some = ",".join(map(str, possible or [max(1, rows // 4), rows]))
        raise UsageError(
            f"--sizes {too_many:,} asks for more rows than the train split of {probe} has "
            f"({rows:,}): name --sizes {some}, or build it with more: build-probe NAME "
            f"--train-rows {too_many}"
        )
    return possible


def _require_head(request: StudyRequest, model: str, original: str) -> None:
    checkpoint = open_model(request, model)
    if checkpoint.head is not MULTIPLE_CHOICE:
        rows = len(_open(original, "train").items)
        raise UsageError(
            f"{model} ({checkpoint.architecture}) has no multiple-choice head, so it was not "
            "trained for the original task. Train one first, and give its folder with --model: "
            f"evaluate-probe {original} --split {SELECTION} --model {model} --learner {LEARNER} "
            f"--train {rows} --keep-checkpoint DIR"
        )


def _untrained(request: StudyRequest, model: str, task: str, split: str) -> RunSpec:
    spec = with_options_of(request).spec(task, model, split=split, facts=False)
    return _in_folder(request, spec, model, "untrained", task, split)


def _trained(request: StudyRequest, setting: Setting, seed: int, task: str, split: str) -> RunSpec:
    options: InoculateOptions = request.options
    changes: dict[str, Any] = {
        "split": split,
        "facts": False,
        "learner": LEARNER,
        "train": setting.size,
        "train_on": setting.probe,
        "train_seed": seed,
        "learning_rate": setting.learning_rate,
        "epochs": setting.epochs,
        "schedule": request.values.get("schedule", "constant"),
    }
    if times := TIMES[options.add_original]:
        changes |= {"mix_in": options.original, "mix_rows": times * setting.size}
    spec = request.spec(task, setting.model, **changes)
    parts = (
        request.probe_folder(setting.probe),
        *(f"rows-{setting.size}", f"rate-{setting.learning_rate:g}", f"epochs-{setting.epochs}"),
        f"seed-{seed}",
    )
    return _in_folder(request, spec, setting.model, *parts, task, split)


def _in_folder(request: StudyRequest, spec: RunSpec, model: str, *parts: str) -> RunSpec:
    """Give a run its folder: of the model, the training, and the task evaluated."""
    if request.output is None:
        return spec
    *training, task, split = parts
    name = f"{request.probe_folder(task)}-{split}"
    folder = request.output.joinpath(request.model_folder(model), *training, name)
    return replace(spec, folder=folder)
