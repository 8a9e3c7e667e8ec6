"""Logging accuracies to TensorBoard and Weights & Biases, through accelerate's trackers.

Metrics have the names that :class:`evaluation.callback.ProbeCallback` gives them in these tools, so
that what was logged during a training and what was evaluated later share their charts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from kbprobe.errors import KbprobeError, MissingDependencyError, require
from kbprobe.options import RARE, Metavar, Options

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

    from evaluation.results.types import Estimate, Results

Number = str | int | float | bool


class TrackingOptions(Options):
    """Where accuracies are logged, in addition to the results."""

    log_to: Annotated[tuple[Literal["tensorboard", "wandb"], ...], RARE] = Field(
        (), description="Also log accuracies to these tools when all runs have finished."
    )
    log_dir: Annotated[Path, Metavar("DIR"), RARE] = Field(
        Path("runs"), description="Folder of the logs, with a subfolder for each model."
    )


def take_tracking(values: dict[str, Any], owner: str) -> TrackingOptions:
    """Remove the options of logging from options given by name, since no run depends on them.

    Raises:
        UsageError: a value is impossible.
    """
    own = {name: values.pop(name) for name in TrackingOptions.model_fields if name in values}
    return TrackingOptions.parse(own, owner)


@dataclass
class Tracked:
    """What is logged as one run of a tracker: a model, with metrics by step.

    Attributes:
        name: of the run.
        about: what a reader must know of it, by name.
        points: metrics by name, by step.
    """

    name: str
    about: Mapping[str, Number] = field(default_factory=dict)
    points: dict[int, dict[str, float]] = field(default_factory=dict)

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add metrics to a step; those whose names are taken there are numbered."""
        held = self.points.setdefault(step, {})
        for name, value in metrics.items():
            free, number = name, 1
            while free in held:
                number += 1
                free = f"{name}_{number}"
            held[free] = value


def logged_name(probe: str) -> str:
    """Return a probe's name as used in metric names: letters, digits and ``_``.

    >>> logged_name("age_comparison-no_language")
    'age_comparison_no_language'
    """
    return re.sub(r"\W+", "_", probe).strip("_")


def metrics_of(probe: str, **numbers: float | Estimate | None) -> dict[str, float]:
    """Name numbers of a probe; the ends of intervals are separate numbers.

    >>> metrics_of("ages", chance=0.5, accuracy=None)
    {'eval/ages_chance': 0.5}
    """
    from evaluation.results.types import Estimate

    metrics: dict[str, float] = {}
    for name, number in numbers.items():
        # Transformers' reporters show "eval_NAME_accuracy" so.
        key = f"eval/{logged_name(probe)}_{name}"
        if isinstance(number, Estimate):
            ends = {f"{key}_low": number.low, f"{key}_high": number.high}
            metrics |= {key: number.value, **ends}
        elif number is not None:
            metrics[key] = number
    return metrics


def describe(results: Results) -> dict[str, Number]:
    """Return what was evaluated, and how; free options, which may hold anything, are left out."""
    model = results.model
    learnt = model.finetuning or {}
    known: dict[str, Any] = {
        "model": model.id,
        "revision": model.revision,
        "architecture": model.architecture,
        "parameters": model.parameters,
        "random_weights": model.random_weights,
        "learner": learnt.get("learner"),
        "train": learnt.get("train"),
        "dtype": model.dtype,
        "scorer": results.scoring.scorer,
        "split": results.probe.split,
        "seed": results.seed,
        "kbprobe": results.versions.get("kbprobe"),
    }
    return {name: value for name, value in known.items() if value is not None}


def check_trackers(options: TrackingOptions) -> None:
    """Check that all trackers are installed, before anything is evaluated.

    Raises:
        MissingDependencyError: it is not.
    """
    if options.log_to:
        require("accelerate", "eval", "--log-to")
    if "wandb" in options.log_to:
        require("wandb", "tracking", "--log-to wandb")
    if "tensorboard" in options.log_to:
        from accelerate.utils import is_tensorboard_available

        if not is_tensorboard_available():
            raise MissingDependencyError("tensorboard", "tracking", "--log-to tensorboard")


def log_runs(runs: Iterable[Tracked], options: TrackingOptions) -> None:
    """Log runs separately, each with its points in the order of steps.

    Raises:
        KbprobeError: a tracker refuses, or its files cannot be written.
    """
    if options.log_to:
        from accelerate import PartialState

        PartialState()  # The trackers ask it which process they are in.
    for run in runs:
        for name in options.log_to:
            with _refusals(name, options.log_dir):
                options.log_dir.mkdir(parents=True, exist_ok=True)
                _log(run, _tracker(name, run.name, options))


def _tracker(name: str, run: str, options: TrackingOptions) -> GeneralTracker:
    from accelerate.tracking import TensorBoardTracker, WandBTracker

    if name == "wandb":
        return WandBTracker(
            os.environ.get("WANDB_PROJECT", "kbprobe"), name=run, dir=str(options.log_dir)
        )
    return TensorBoardTracker(_unused(options.log_dir, run), logging_dir=str(options.log_dir))


def _log(run: Tracked, tracker: GeneralTracker) -> None:
    tracker.start()
    try:
        tracker.store_init_configuration(dict(run.about))
        for step in sorted(run.points):
            tracker.log(run.points[step], step=step)
    finally:
        tracker.finish()


def _unused(parent: Path, name: str) -> str:
    """Return a folder that does not exist yet: TensorBoard would merge two runs in one folder."""
    safe = re.sub(r"[^\w.,=@+-]+", "--", name).strip(".-") or "model"
    number, free = 1, safe
    while (parent / free).exists():
        number += 1
        free = f"{safe}-{number}"
    return free


@contextmanager
def _refusals(tracker: str, folder: Path) -> Iterator[None]:
    """Explain in plain words why a tracker refuses what is logged."""
    known: tuple[type[Exception], ...] = (OSError,)
    remedy = "name another folder with --log-dir"
    if tracker == "wandb":
        import wandb

        known = (OSError, wandb.Error)
        remedy = (
            "log in with `wandb login`; or set WANDB_MODE=offline, and send the logs later with "
            "`wandb sync`"
        )
    try:
        yield
    except known as error:
        raise KbprobeError(
            f"--log-to {tracker}, --log-dir {folder}: {error}. Results are kept, and the same "
            f"command logs them without evaluating them again: {remedy}."
        ) from error
