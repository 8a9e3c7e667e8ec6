"""Finished runs, by what they are of, as counts of right answers by cluster."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evaluation.results.analyses import fitting
from evaluation.results.analyses.fitting import Fitting
from evaluation.results.intervals import TwoWayBootstrap
from evaluation.results.types import Results
from evaluation.studies.base import Finished
from evaluation.studies.counting import bootstrap_runs
from evaluation.studies.curve.types import PROBE, RANDOM_LABELS
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from evaluation.options import RunOptions


@dataclass(frozen=True)
class Fitted:
    """The runs of one learner on one rendering: their numbers in the group, by size and draw."""

    learner: str
    rendering: str
    sizes: dict[int, dict[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelRuns:
    """All runs of one model on one probe.

    Attributes:
        finished: the runs, in the order of the study.
        zero_shot: the number of the run without training on each rendering.
        fitted: the trained ones.
    """

    finished: list[Finished]
    zero_shot: dict[str, int]
    fitted: list[Fitted]

    @property
    def options(self) -> RunOptions:
        """The options of a run; what tells models apart is the same for all."""
        return run_options(self.finished[0])

    def results(self, number: int) -> Results:
        """Return the results of a run."""
        return self.finished[number].evaluation.results

    @cached_property
    def own(self) -> Results:
        """The results of a run on the probe itself: the first trained one."""
        own = next(one for one in self.fitted if one.rendering == PROBE)
        return self.results(next(iter(next(iter(own.sizes.values())).values())))

    def fitting(self, number: int) -> Fitting | None:
        """Return what a learner reported of its training in a run, if anything."""
        block = self.results(number).analyses.get(fitting.NAME)
        return None if block is None else Fitting.model_validate(block)

    def fit(self, learner: str, rendering: str) -> Fitted | None:
        """Return the runs of a learner on a rendering; None where there are none."""
        named = (one for one in self.fitted if (one.learner, one.rendering) == (learner, rendering))
        return next(named, None)

    @cached_property
    def bootstrap(self) -> TwoWayBootstrap:
        """Resamples of the clusters that all runs were evaluated on."""
        return bootstrap_runs(self.finished, self.own.seed)


def run_options(run: Finished) -> RunOptions:
    """Return the options of a run of the study."""
    if run.spec is None:
        raise UsageError("learning curves are made of runs, not of folders of results")
    return run.spec.run


def group_runs(finished: Sequence[Finished]) -> list[ModelRuns]:
    """Group the runs of a study by probe, model, revision and random weights."""
    groups: dict[tuple[Hashable, ...], list[Finished]] = {}
    for run in finished:
        options, spec = run_options(run), run.spec
        assert spec is not None
        probe = spec.probe if isinstance(spec.probe, str) else id(spec.probe)
        key = (probe, spec.model, options.revision, options.random_weights)
        groups.setdefault(key, []).append(run)
    return [_grouped(runs) for runs in groups.values()]


def _grouped(runs: list[Finished]) -> ModelRuns:
    zero_shot: dict[str, int] = {}
    fitted: dict[tuple[str, str], Fitted] = {}
    for number, run in enumerate(runs):
        options = run_options(run)
        rendering = RANDOM_LABELS if options.labels == "random" else options.config or PROBE
        if options.train is None:
            zero_shot[rendering] = number
            continue
        learner = options.learner or ""
        held = fitted.setdefault((learner, rendering), Fitted(learner, rendering))
        held.sizes.setdefault(options.train, {})[options.train_seed or 0] = number
    return ModelRuns(runs, zero_shot, list(fitted.values()))
