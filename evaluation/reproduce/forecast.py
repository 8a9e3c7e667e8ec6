"""How much a reproduction will compute, and about how long it will take on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.learners.base import HeadLearner
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL
from evaluation.reproduce.frame import Piece
from evaluation.results.types import RESULTS
from evaluation.results.words import duration
from evaluation.runs.executor import execute
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from kbprobe.errors import KbprobeError
from kbprobe.progress import Progress, silent

SAMPLE = 8
"""Rows of the run that is timed for each model."""

_STEP = 3
"""Forward passes that a training step takes as long as: one forward and one backward."""


@dataclass
class Forecast:
    """The expected cost of a reproduction.

    Attributes:
        runs: its runs, without those that a study adds in the end.
        finished: those of them that have results already.
        rows: rows that the others evaluate.
        passes: rows that models read for them; a row that a network is trained on counts three
            times an epoch, and one whose vectors are kept counts once.
        seconds: time of these, and of loading models; None: no model could be timed.
        untimed: why models could not be timed, by model.
    """

    runs: int = 0
    finished: int = 0
    rows: int = 0
    passes: int = 0
    seconds: float | None = None
    untimed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = (
            f"{self.runs:,} runs, {self.finished:,} of them finished; to evaluate: {self.rows:,} "
            f"rows, for which models read {self.passes:,}"
        )
        if self.seconds is not None:
            about = f"about {duration(self.seconds)} on this machine"
            said += f": {about}, without heads, word vectors and intervals"
        return f"{said}."


def forecast(pieces: Sequence[Piece], timed: bool = True, progress: Progress = silent) -> Forecast:
    """Count the runs of a reproduction, and time a few rows with each of its models.

    Args:
        pieces: its studies.
        timed: whether models are loaded to time them.
        progress: told what is being done.
    """
    found, counter = Forecast(), _Counter()
    waiting: dict[str, list[tuple[RunSpec, int]]] = {}
    loads: dict[str, int] = {}
    for piece in pieces:
        models = set()
        for spec in piece.specs:
            found.runs += 1
            if spec.folder is not None and (spec.folder / RESULTS).is_file():
                found.finished += 1
                continue
            try:
                rows, passes = counter.count(spec)
            except KbprobeError:
                continue  # It fails when it is run, and is then left out with the reason.
            found.rows += rows
            found.passes += passes
            if passes:
                waiting.setdefault(spec.model, []).append((spec, passes))
                models.add(spec.model)
        for model in models:
            loads[model] = loads.get(model, 0) + 1
    for model, runs in waiting.items() if timed else ():
        progress(f"timing {model}", 0, 0)
        try:
            # Best as it is: then reading is timed alone.
            load, rate = _timed(
                min((spec for spec, _ in runs), key=lambda one: bool(one.run.train))
            )
        except KbprobeError as error:
            found.untimed[model] = str(error)
            continue
        taken = load * loads[model] + rate * sum(passes for _, passes in runs)
        found.seconds = (found.seconds or 0) + taken
    return found


class _Counter:
    """Counts the rows that a model reads; what is read or trained once is counted once."""

    def __init__(self) -> None:
        self._reader = SplitReader()
        self._read: dict[object, int] = {}

    def count(self, spec: RunSpec) -> tuple[int, int]:
        """Return the rows that a run evaluates, and those that a model reads for it."""
        run = spec.run
        rows = len(self._reader.rows(spec.probe, run).items)
        if spec.model == NO_MODEL:
            return rows, 0
        if run.train is None:
            return rows, rows
        about = (spec.model, run.config, run.fold, run.inputs, run.random_weights)
        learner = LEARNERS.get(run.learner or "full")
        if isinstance(learner, HeadLearner):
            fitted = 0 if run.fold is not None else run.train
            key = (*about, spec.probe, run.split, run.train_on)
            before = self._read.get(key)
            self._read[key] = max(before or 0, fitted)
            return rows, self._read[key] - before if before is not None else rows + fitted
        options = spec.plugin_options(learner.options)
        epochs, rate = getattr(options, "epochs", 1), getattr(options, "learning_rate", None)
        trained = (*about, run.train_on or spec.probe, run.train, run.train_seed, rate, epochs)
        again = trained in self._read
        self._read[trained] = 1
        passes = _STEP * epochs * (run.train + (run.mix_rows or 0))
        return rows, rows + (0 if again else passes)


def _timed(spec: RunSpec) -> tuple[float, float]:
    """Return the seconds of loading a model, and of a row that it reads.

    Raises:
        KbprobeError: the rows could not be evaluated.
    """
    changes: dict[str, Any] = {"limit": SAMPLE, "limit_by": "rows", "cache": False, "facts": False}
    passes, learner = SAMPLE, None
    if spec.run.train is not None:
        learner = LEARNERS.get(spec.run.learner or "full")
        few = min(spec.run.train, SAMPLE)
        changes["train"] = few
        passes += few if isinstance(learner, HeadLearner) else _STEP * few
        if "epochs" in learner.options.model_fields:
            changes["epochs"] = 1
    started = time.perf_counter()
    (outcome,) = execute([replace(spec.vary(**changes), folder=None)], reports=False)
    timings, wall = outcome.or_raise().results.timings, time.perf_counter() - started
    if isinstance(learner, HeadLearner):
        # Vectors are computed before the run that the timings are of.
        return timings.load, (wall - timings.load) / passes
    busy = timings.train + timings.encode + timings.score
    return wall - busy, busy / passes
