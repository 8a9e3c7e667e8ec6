"""How much runs will compute, training included, and about how long they take on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from evaluation.items.types import Item
from evaluation.learners.base import HeadLearner
from evaluation.learners.registry import LEARNERS
from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.types import RESULTS, Results
from evaluation.results.words import duration
from evaluation.runs.executor import execute
from evaluation.runs.reading import SplitReader, read_facts
from evaluation.runs.spec import RunSpec
from evaluation.scorers.registry import SCORERS
from evaluation.workers import Session
from kbprobe.errors import KbprobeError
from kbprobe.terminal.progress import Progress, silent

SAMPLE = 16
"""Rows of the run that is timed for each model."""

_STEP = 3
"""Forward passes that a training step takes as long as: one forward and one backward."""

_TRIES = 3
"""Runs that are tried to time a model, should the first of them fail."""

_HEADS = 8
"""How many times as many rows are timed for heads and networks over word vectors, whose training
takes as long for few."""

_FEW = 100
"""Rows whose mean length stands for that of all rows."""


@dataclass
class Cost:
    """The expected cost of a run.

    Attributes:
        finished: whether it has results already: then it costs nothing.
        rows: rows that it evaluates.
        passes: rows that a network reads for it. A row trained on counts three times an epoch;
            one whose frozen vectors are kept, and a training that runs share, counts once.
        length: mean number of characters of a row, with the question repeated for each choice.
        tokens: tokens that the network reads; None: unknown.
        seconds: time of that; None: unknown.
        problem: why it cannot be forecast; "": nothing.
    """

    spec: RunSpec
    finished: bool = False
    rows: int = 0
    passes: int = 0
    length: float = 0
    tokens: int | None = None
    seconds: float | None = None
    problem: str = ""


@dataclass
class Forecast:
    """The expected cost of each run, and the seconds that loading each model takes."""

    costs: list[Cost] = field(default_factory=list)
    loading: dict[str, float] = field(default_factory=dict)

    @property
    def totals(self) -> dict[str, int]:
        """Sums over the runs, and the loading of models."""
        loading = sum(self.loading.values())
        return totals_of(self.costs) | {"seconds": round(_seconds(self.costs) + loading)}

    @property
    def problems(self) -> list[str]:
        """What kept runs from being forecast."""
        return list(dict.fromkeys(cost.problem for cost in self.costs if cost.problem))

    def __str__(self) -> str:
        total = self.totals
        said = (
            f"{total['runs']:,} runs, {total['finished']:,} of them finished; to evaluate: "
            f"{total['rows']:,} rows"
        )
        if total["tokens"]:
            said += (
                f", for which models read {total['tokens']:,} tokens (those trained on, three "
                f"times an epoch): at most about {duration(total['seconds'])} on this machine, "
                "as few rows take longer for each than many"
            )
        unknown = f" The time of {total['unknown']:,} runs is not known." * bool(total["unknown"])
        return f"{said}.{unknown}"


def totals_of(costs: Sequence[Cost]) -> dict[str, int]:
    """Return sums over some runs; ``unknown`` counts those whose time is not known."""
    return {
        "runs": len(costs),
        "finished": sum(cost.finished for cost in costs),
        "unknown": sum(cost.seconds is None for cost in costs),
        "rows": sum(cost.rows for cost in costs),
        "tokens": sum(cost.tokens or 0 for cost in costs),
        "seconds": round(_seconds(costs)),
    }


def _seconds(costs: Sequence[Cost]) -> float:
    return sum(cost.seconds or 0 for cost in costs)


def forecast(
    specs: Iterable[RunSpec], sample: int = SAMPLE, progress: Progress = silent
) -> Forecast:
    """Count what runs compute, and time a sample of rows with each model.

    Without a sample, tokens and seconds are not known.

    Rows are timed without the cache, with the options of one of the model's runs: one without
    training, if there is one. Tokens and seconds of all its runs are scaled by the number of rows
    and the length of their texts. Those of a model behind an endpoint are not known.
    """
    counter, waiting = _Counter(), dict[object, list[Cost]]()
    found = Forecast([counter.cost(spec) for spec in specs])
    for cost in found.costs:
        # Nothing is sent to an endpoint, which may charge for it, before the run itself.
        if cost.length and sample and cost.spec.run.endpoint is None:
            waiting.setdefault(_pace(cost.spec), []).append(cost)
    for done, costs in enumerate(waiting.values()):
        progress("timing samples", done, len(waiting))
        tried: dict[str, Cost] = {}
        for cost in sorted(costs, key=lambda cost: cost.spec.run.train is not None):
            tried.setdefault(cost.spec.probe_name, cost)
        for one in list(tried.values())[:_TRIES]:
            try:
                pace = _timed(one.spec, sample)
            except KbprobeError as error:
                one.problem = str(error)
                continue
            found.loading[one.spec.model] = pace.load
            for cost in costs:
                amount = cost.passes * cost.length / one.length
                cost.tokens = round(amount * pace.tokens)
                cost.seconds = amount * pace.seconds + pace.around
            break
    return found


def _pace(spec: RunSpec) -> object:
    """Return what runs share that take as long for the same text."""
    ours = {name for entry in SCORERS for name in entry.options.model_fields}
    options = sorted((name, str(spec.options[name])) for name in ours & {*spec.options})
    # Networks over word vectors, which need no model, differ more than those of one model.
    learner = spec.run.learner if spec.model == NO_MODEL else None
    return spec.model, spec.run.device, spec.run.dtype, spec.run.scorer, learner, str(options)


class _Counter:
    """Counts the rows that a network reads; what is read or trained once is counted once."""

    def __init__(self) -> None:
        self._reader = SplitReader()
        self._read: dict[object, int] = {}
        self._facts_of: dict[str, int] = {}

    def cost(self, spec: RunSpec) -> Cost:
        """Return the cost of a run, without its time."""
        if spec.folder is not None and (spec.folder / RESULTS).is_file():
            return Cost(spec, finished=True, tokens=0, seconds=0)
        try:
            items = self._reader.rows(spec.probe, spec.run).items
        except KbprobeError as error:  # It fails in the same way when it is run.
            return Cost(spec, problem=str(error))
        return Cost(spec, False, len(items), self._passes(spec, len(items)), _length(items))

    def _passes(self, spec: RunSpec, rows: int) -> int:
        """Return the rows that a run reads, without what an earlier run has read for it."""
        run = spec.run
        rows = self._further(repr(replace(spec, folder=None)), rows)  # the cache has the scores
        if run.train is None:
            return rows
        about = (spec.model, run.config, run.fold, run.inputs, run.random_weights)
        learner = LEARNERS.get(run.learner or "full")
        if isinstance(learner, HeadLearner):
            # In cross-validation, the rows to train on are those of the other folds.
            fitted = 0 if run.fold is not None else run.train
            read = self._further((*about, spec.probe, run.split), rows)
            return read + self._further((*about, run.train_on or spec.probe, "train"), fitted)
        options = spec.plugin_options(learner.options)
        epochs, rate = getattr(options, "epochs", 1), getattr(options, "learning_rate", None)
        if getattr(options, "facts_first", False):
            # Once for all draws of rows, sizes and controls.
            facts = (spec.model, "facts", spec.probe, run.seed, rate, epochs)
            rows += self._further(facts, _STEP * epochs * self._facts(spec))
        trained = (*about, run.train_on or spec.probe, run.train, run.train_seed, rate, epochs)
        return rows + self._further(trained, _STEP * epochs * (run.train + (run.mix_rows or 0)))

    def _facts(self, spec: RunSpec) -> int:
        """Return how many single facts are learnt before the rows."""
        if spec.probe_name not in self._facts_of:
            facts = read_facts(spec.probe, self._reader.rows(spec.probe, spec.run))
            self._facts_of[spec.probe_name] = len(facts)
        return self._facts_of[spec.probe_name]

    def _further(self, key: object, count: int) -> int:
        """Return by how much a count exceeds the largest one so far of the same key."""
        known = self._read.get(key, 0)
        self._read[key] = max(known, count)
        return self._read[key] - known


def _length(items: Sequence[Item]) -> float:
    some = items[:_FEW]
    lengths = (
        len(text) + len(item.question) + len(item.premise) for item in some for text in item.choices
    )
    return sum(lengths) / max(1, len(some)) or 1.0


class _Timed(NamedTuple):
    """How long a sample of rows took.

    Attributes:
        load: seconds of loading the model.
        tokens, seconds: of a row that it reads.
        around: seconds that a run takes whatever it reads: opening it, metrics, intervals.
    """

    load: float
    tokens: float
    seconds: float
    around: float


def _timed(spec: RunSpec, sample: int) -> _Timed:
    """Time a run on a sample of rows, and on another.

    Raises:
        KbprobeError: the rows could not be evaluated.
    """
    passes, learner = 0, None
    changes: dict[str, Any] = {"limit_by": "rows", "cache": False, "facts": False}
    if spec.run.train is not None:
        learner = LEARNERS.get(spec.run.learner or "full")
        if isinstance(learner, HeadLearner) or spec.model == NO_MODEL:
            sample *= _HEADS
        few = changes["train"] = min(spec.run.train, sample)
        passes = few if isinstance(learner, HeadLearner) else _STEP * few
        if "epochs" in learner.options.model_fields:
            changes["epochs"] = 1
        if "facts_first" in learner.options.model_fields:
            changes["facts_first"] = False
    seeds = (spec.run.seed, spec.run.seed + 1)
    samples = [
        replace(spec.vary(limit=sample, seed=seed, **changes), folder=None) for seed in seeds
    ]
    ended = [time.perf_counter()]
    found: list[Results] = []
    for outcome in execute(samples, Session(reports=False)):
        found.append(outcome.or_raise().results)
        ended.append(time.perf_counter())
    first, second = (later - earlier for earlier, later in pairwise(ended))
    both = [run.timings.train + run.timings.encode + run.timings.score for run in found]
    # The first is also of what is read or tried out once, such as word vectors.
    busy, around = min(both), max(0.0, second - both[1])
    rows = max(1, found[0].metrics.items)
    load = max(0.0, first - busy - around)
    if isinstance(learner, HeadLearner):
        # Vectors are computed before the run that the timings are of, for both of them.
        load = found[0].timings.load
        busy = max(0.0, first - load - around) / len(samples)
    return _Timed(load, found[0].timings.tokens / rows, busy / (rows + passes), around)
