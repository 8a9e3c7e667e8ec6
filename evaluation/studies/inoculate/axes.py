"""Axes of inoculation: models x probes x sizes x settings x seeds, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.models.capabilities import MULTIPLE_CHOICE
from evaluation.results.intervals import Resampled, TwoWayBootstrap
from evaluation.results.types import Metrics
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import DrawAverages, bootstrap_runs, group_by
from evaluation.studies.entries import open_model, with_options_of
from kbprobe.errors import UsageError
from kbprobe.format.setups import SCORED_SETUPS
from kbprobe.options import Metavar, Options, option_name

TIMES = {"none": 0, "x1": 1, "x2": 2}
"""Rows of the original task for each row of the probe, by the value of ``--add-original``."""


class InoculateOptions(Options):
    """Which training sets and settings to try, and the original tasks."""

    original: Annotated[tuple[str, ...], Metavar("TASK,...")] = Field(
        (),
        description="The tasks that the models were trained for, in that order: datasets of "
        "questions with choices, each a folder, a file or a Hub id. Required.",
    )
    sizes: tuple[int, ...] = Field(
        (100, 250, 500, 1000, 2000, 3000),
        min_length=1,
        description="Numbers of probe rows to train on; by default, those of these sizes for "
        "which the train split has enough rows.",
    )
    learning_rates: tuple[float, ...] = Field(
        (1e-5, 2e-5, 5e-5), min_length=1, description="Peak learning rates to try for each size."
    )
    epoch_counts: tuple[int, ...] = Field(
        (1, 3), min_length=1, description="Numbers of epochs to try for each size."
    )
    seeds: int = Field(3, ge=1, description="Draws of training rows for each setting.")
    add_original: Literal["none", "x1", "x2"] = Field(
        "none",
        description="Also train on rows of the original task: as many as rows of the probe (x1), "
        "or twice as many (x2).",
    )

    @property
    def settings(self) -> int:
        """How many settings are tried for each size."""
        return len(self.learning_rates) * len(self.epoch_counts)

    @model_validator(mode="after")
    def _numbers_are_possible(self) -> InoculateOptions:
        if len({*self.original}) < len(self.original):
            raise ValueError("--original names a task twice")
        if len(self.original) > 1 and self.add_original != "none":
            raise ValueError(
                "--add-original adds rows of one task: put the rows of several into one file, and "
                "name it as the only --original"
            )
        for name in ("sizes", "learning_rates", "epoch_counts"):
            values = getattr(self, name)
            if min(values) <= 0:
                raise ValueError(f"{option_name(name)} must be positive")
            if list(values) != sorted(set(values)):
                raise ValueError(f"{option_name(name)} must be strictly increasing")
        return self


SELECTION, HELD_OUT = "validation", "test"
"""The split that settings are chosen on, and the one that the chosen ones are tested on."""

LEARNER = "full"


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs for choosing settings, grouped by model."""
    options: InoculateOptions = request.options
    sizes_of = _open_tasks(request)
    for model in request.models:
        _require_head(request, model)
    specs = []
    for model in request.models:
        specs += [_untrained(request, model, task, SELECTION) for task in options.original]
        for probe in sizes_of:
            specs += [_untrained(request, model, probe, split) for split in (SELECTION, HELD_OUT)]
        for probe, sizes in sizes_of.items():
            for size, rate, seed in product(sizes, options.learning_rates, range(options.seeds)):
                # In ascending order: at a constant rate, training continues from fewer epochs.
                for epochs in options.epoch_counts:
                    setting = Setting(probe, size, rate, epochs)
                    for task in (probe, *options.original):
                        specs.append(_trained(request, model, setting, seed, task, SELECTION))
                    if options.settings == 1:
                        specs.append(_trained(request, model, setting, seed, probe, HELD_OUT))
    return specs


def follow(request: StudyRequest, finished: Sequence[Finished]) -> list[RunSpec]:
    """Return the runs on the test split: each size's best setting on the probe trained on.

    The best size of all is tested on the other probes as well. A size's only setting is tested
    where it is trained.
    """
    specs = []
    for model in request.models:
        runs = ModelRuns(request, finished, model)
        for probe in runs.probes:
            best = runs.best_size(probe)
            for size, setting in runs.best(probe).items():
                others = [other for other in runs.probes if other != probe and size == best]
                specs += [
                    _trained(request, model, setting, seed, task, HELD_OUT)
                    for seed in range(request.options.seeds)
                    for task in ([] if request.options.settings == 1 else [probe]) + others
                ]
    return specs


def _open_tasks(request: StudyRequest) -> dict[str, list[int]]:
    """Read the original tasks and the probes; return the sizes for each probe."""
    options: InoculateOptions = request.options
    if not options.original:
        raise UsageError(
            "inoculate measures what training on a probe costs on the tasks that the models were "
            "trained for before: name them with --original TASK (folders, files or Hub ids)"
        )
    probes = request.named_probes()
    for task in options.original:
        if task in probes:
            raise UsageError(f"{task} is an original task: name another probe")
        _open(task, SELECTION)
    sizes = {}
    for probe in probes:
        train, *_ = (_open(probe, split) for split in ("train", SELECTION, HELD_OUT))
        sizes[probe] = _possible_sizes(options, probe, len(train.items))
    if times := TIMES[options.add_original]:
        (task,) = options.original
        rows = len(_open(task, "train").items)
        most = times * max(map(max, sizes.values()))
        if most > rows:
            raise UsageError(
                f"--add-original {options.add_original} needs {most:,} rows of {task}, whose train "
                f"split has {rows:,}: name --sizes up to {rows // times:,}"
            )
    return sizes


def _open(source: str, split: str) -> ProbeSplit:
    """Read a split of a probe or task; it is released again, and reread when needed."""
    try:
        opened = open_probe(source, split=split)
    except UnknownSplit as error:
        raise UsageError(
            f"inoculate trains on train rows, chooses settings on {SELECTION} rows and tests them "
            f"on {HELD_OUT} rows (of original tasks: only {SELECTION}). {error}"
        ) from error
    if odd := sorted(setups_of(opened.items) - set(SCORED_SETUPS)):
        raise UsageError(
            f"{source} has rows of the setup {odd[0]}: inoculate trains multiple-choice models, "
            f"which read {' and '.join(SCORED_SETUPS)}. For labels: evaluate-probe crossval"
        )
    return opened


def _possible_sizes(options: InoculateOptions, probe: str, rows: int) -> list[int]:
    """Return the sizes for which a probe has enough rows; all requested sizes must be."""
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


def _require_head(request: StudyRequest, model: str) -> None:
    checkpoint = open_model(request, model)
    if checkpoint.head is not MULTIPLE_CHOICE:
        commands, folder = [], model
        for number, task in enumerate(request.options.original, 1):
            rows = len(_open(task, "train").items)
            commands.append(
                f"evaluate-probe {task} --split {SELECTION} --model {folder} --learner {LEARNER} "
                f"--train {rows} --keep-checkpoint DIR{number}"
            )
            folder = f"DIR{number}"
        raise UsageError(
            f"{model} ({checkpoint.architecture}) has no multiple-choice head, so it was not "
            f"trained for the original task. Train it first, and give {folder} with --model: "
            f"{'; then '.join(commands)}"
        )


def _untrained(request: StudyRequest, model: str, task: str, split: str) -> RunSpec:
    spec = with_options_of(request).spec(task, model, split=split, facts=False)
    return request.within_model(spec, "untrained", f"{request.probe_folder(task)}-{split}")


def _trained(
    request: StudyRequest, model: str, setting: Setting, seed: int, task: str, split: str
) -> RunSpec:
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
        "training": {"schedule": "constant", **request.defaults.options.get("training", {})},
    }
    if times := TIMES[options.add_original]:
        changes |= {"mix_in": options.original[0], "mix_rows": times * setting.size}
    spec = request.spec(task, model, **changes)
    parts = (
        request.probe_folder(setting.probe),
        *(f"rows-{setting.size}", f"rate-{setting.learning_rate:g}", f"epochs-{setting.epochs}"),
        f"seed-{seed}",
    )
    return request.within_model(spec, *parts, f"{request.probe_folder(task)}-{split}")


class Setting(NamedTuple):
    """A training setting: everything but the seed."""

    probe: str
    size: int
    learning_rate: float
    epochs: int

    @classmethod
    def of(cls, spec: RunSpec) -> Setting | None:
        """Return the setting of a run; None for a run without training."""
        run, options = spec.run, spec.options
        if run.train is None or run.train_on is None:
            return None
        return cls(run.train_on, run.train, options["learning_rate"], options["epochs"])


class ModelRuns:
    """The finished runs of one model, seed by seed: by setting, task and split."""

    def __init__(self, request: StudyRequest, finished: Sequence[Finished], model: str) -> None:
        self.request, self.model = request, model
        self.probes = list(dict.fromkeys(str(probe) for probe in request.probes))
        self.originals: Sequence[str] = request.options.original
        self._runs = group_by(
            (run for run in finished if run.asked.model == model),
            lambda run: (Setting.of(run.asked), str(run.asked.probe), run.asked.run.split),
        )

    def seeds(self, setting: Setting | None, task: str, split: str) -> list[Finished]:
        """Return the runs of a setting on one task, in the order of their seeds."""
        return self._runs[setting, task, split]

    def metrics(self, task: str, split: str) -> Metrics:
        """Return the metrics of the model without training."""
        return self.seeds(None, task, split)[0].results.metrics

    def accuracy(self, setting: Setting, task: str) -> float:
        """Return a setting's mean accuracy over the seeds, on the split used for selection."""
        runs = self.seeds(setting, task, SELECTION)
        return fmean(run.results.metrics.accuracy.value for run in runs)

    def mean(self, setting: Setting) -> float:
        """Return the mean of a setting's accuracies on its probe and on the original tasks.

        Of several original tasks, the mean counts as one.
        """
        return (self.accuracy(setting, setting.probe) + self.original_accuracy(setting)) / 2

    def original_accuracy(self, setting: Setting) -> float:
        """Return a setting's mean accuracy on the original tasks."""
        return fmean(self.accuracy(setting, task) for task in self.originals)

    def settings(self, probe: str) -> dict[int, list[Setting]]:
        """Return all settings trained on a probe, by the number of rows."""
        tried = {setting for setting, _, _ in self._runs if setting and setting.probe == probe}
        return group_by(sorted(tried), lambda setting: setting.size)

    def best(self, probe: str) -> dict[int, Setting]:
        """Return the best setting of each size: the one with the highest mean.

        Ties go to the lowest learning rate, then to the fewest epochs (WordNetQA, section 5.2).
        """
        return {
            size: max(settings, key=self.mean) for size, settings in self.settings(probe).items()
        }

    def best_size(self, probe: str) -> int:
        """Return the size whose best setting has the highest mean; ties go to the smallest size."""
        return max(self.best(probe).values(), key=self.mean).size

    def averages(
        self,
        chosen: Iterable[Setting],
        task: str,
        split: str,
        resample: Callable[[Sequence[Finished], int], TwoWayBootstrap] = bootstrap_runs,
    ) -> dict[Setting | None, Resampled]:
        """Return the mean accuracy of settings on a task over seeds; key None: before training."""
        groups = {setting: self.seeds(setting, task, split) for setting in (None, *chosen)}
        return DrawAverages(groups, self.request.defaults.run.seed, resample).each()
