"""Which run is which, and the settings that do best for each number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished

SELECTION, HELD_OUT = "validation", "test"
"""The split that settings are chosen on, and the one that the chosen ones are tested on."""


class Setting(NamedTuple):
    """What is trained: everything but the seed.

    Attributes:
        model: the checkpoint.
        probe: the probe whose rows are fitted on.
        size: how many rows.
        learning_rate: its peak.
        epochs: passes over the rows.
    """

    model: str
    probe: str
    size: int
    learning_rate: float
    epochs: int


@dataclass(frozen=True)
class Scored:
    """What a run is: a setting and a seed (None: the model as it is), and the rows evaluated."""

    model: str
    setting: Setting | None
    seed: int
    task: str
    split: str

    @classmethod
    def of(cls, spec: RunSpec) -> Scored:
        """Read off a run of the study what it is."""
        run, options = spec.run, spec.options
        setting = None
        if run.train is not None and run.train_on is not None:
            rate, epochs = options["learning_rate"], options["epochs"]
            setting = Setting(spec.model, run.train_on, run.train, rate, epochs)
        return cls(spec.model, setting, run.train_seed or 0, str(spec.probe), run.split)


class Runs:
    """The finished runs of the study, by what they are."""

    def __init__(self, finished: Sequence[Finished]) -> None:
        self._held = {Scored.of(run.spec): run for run in finished if run.spec is not None}

    def get(self, scored: Scored) -> Finished:
        """Return a run."""
        return self._held[scored]

    def seeds(self, setting: Setting | None, model: str, task: str, split: str) -> list[Finished]:
        """Return the runs of a setting on one task, in the order of their seeds."""
        found = [
            (scored.seed, run)
            for scored, run in self._held.items()
            if (scored.setting, scored.model) == (setting, model)
            and (scored.task, scored.split) == (task, split)
        ]
        return [run for _, run in sorted(found, key=lambda one: one[0])]

    def accuracy(self, setting: Setting, task: str) -> float:
        """Return a setting's mean accuracy over the seeds, on the split that selects."""
        runs = self.seeds(setting, setting.model, task, SELECTION)
        return fmean(run.evaluation.results.metrics.accuracy.value for run in runs)

    def settings(self, model: str, probe: str) -> dict[int, list[Setting]]:
        """Return all settings of a model trained on a probe, by the number of rows."""
        by_size: dict[int, dict[Setting, None]] = {}
        for scored in self._held:
            one = scored.setting
            if one is not None and (one.model, one.probe) == (model, probe):
                by_size.setdefault(one.size, {})[one] = None
        return {size: sorted(held) for size, held in sorted(by_size.items())}


def best_settings(runs: Runs, model: str, probe: str, original: str) -> dict[int, Setting]:
    """Return the best setting of each size: that of the highest mean of probe and original task.

    Of equal ones the first is taken: the lowest rate, then the fewest epochs ([W], section 5.2).
    """

    def mean(setting: Setting) -> float:
        return (runs.accuracy(setting, probe) + runs.accuracy(setting, original)) / 2

    settings = runs.settings(model, probe)
    return {
        size: max(held, key=lambda one: (mean(one), -held.index(one)))
        for size, held in settings.items()
    }


def best_size(runs: Runs, chosen: dict[int, Setting], original: str) -> int:
    """Return the size whose best setting has the highest mean; the smallest of equal ones."""
    return max(
        chosen,
        key=lambda size: (
            runs.accuracy(chosen[size], chosen[size].probe) + runs.accuracy(chosen[size], original),
            -size,
        ),
    )
