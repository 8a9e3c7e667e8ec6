"""The summary of the study: the best setting of each size, what it gains and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, product

from evaluation.results import breakdown
from evaluation.results.intervals import Resampled, TwoWayBootstrap
from evaluation.results.types import Cell, Metrics
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import bootstrap_runs, bootstrap_whole_clusters
from evaluation.studies.inoculate.options import InoculateOptions
from evaluation.studies.inoculate.selection import (
    HELD_OUT,
    SELECTION,
    Runs,
    Setting,
    best_settings,
    best_size,
)
from evaluation.studies.inoculate.types import (
    Inoculated,
    InoculateSummary,
    ModelInoculation,
    SizePoint,
    TransferCell,
    Tried,
)


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> InoculateSummary:
    """Summarise the runs of both stages."""
    runs = Runs(finished)
    models = [_Numbers(request, runs, model).summary() for model in request.models]
    return InoculateSummary(models=models)


class _Numbers:
    """The numbers of one model."""

    def __init__(self, request: StudyRequest, runs: Runs, model: str) -> None:
        self._options: InoculateOptions = request.options
        self._schedule = request.values.get("schedule", "constant")
        self._seed = request.defaults.run.seed
        self._runs, self._model = runs, model
        self._original = self._options.original or ""
        self._probes = list(dict.fromkeys(str(probe) for probe in request.probes))
        self._chosen = {
            probe: best_settings(runs, model, probe, self._original) for probe in self._probes
        }
        self._best = {
            probe: best_size(runs, chosen, self._original) for probe, chosen in self._chosen.items()
        }

    def summary(self) -> ModelInoculation:
        """Return all numbers."""
        before = self._metrics(self._original, SELECTION)
        return ModelInoculation(
            model=self._model,
            original=self._original,
            original_rows=before.scored,
            original_chance=before.chance,
            original_before=before.accuracy,
            added=self._options.add_original,
            seeds=self._options.seeds,
            probes=[self._inoculated(probe) for probe in self._probes],
            transfer=self._transfer(),
            notes=self._notes(),
        )

    def _inoculated(self, probe: str) -> Inoculated:
        chosen = self._chosen[probe]
        before, after = (
            self._runs.seeds(setting, self._model, probe, HELD_OUT)
            for setting in (None, chosen[self._best[probe]])
        )
        untrained = before[0].evaluation.results
        test = self._averages(chosen, probe, HELD_OUT)
        validation = self._averages(chosen, probe, SELECTION)
        original = self._averages(chosen, self._original, SELECTION)
        strict = self._strict(chosen, probe)
        metrics = untrained.metrics
        strict_before = None if strict is None else strict[None].estimate()
        points = [
            SizePoint(
                size=size,
                learning_rate=setting.learning_rate,
                epochs=setting.epochs,
                tried=[
                    Tried(
                        learning_rate=one.learning_rate,
                        epochs=one.epochs,
                        probe=self._runs.accuracy(one, probe),
                        original=self._runs.accuracy(one, self._original),
                    )
                    for one in self._runs.settings(self._model, probe)[size]
                ],
                probe=validation[setting].estimate(),
                test=test[setting].estimate(),
                gain=test[setting].less(test[None]).estimate(100),
                original=original[setting].estimate(),
                cost=original[None].less(original[setting]).estimate(100),
                strict=None if strict is None else strict[setting].estimate(),
                strict_difference=None
                if strict is None
                else 100 * (strict[setting].value - test[setting].value),
            )
            for size, setting in chosen.items()
        ]
        return Inoculated(
            probe=untrained.probe.name,
            source=probe,
            rows=metrics.items,
            clusters=metrics.clusters,
            chance=metrics.chance,
            before=self._metrics(probe, SELECTION).accuracy,
            test_before=metrics.accuracy,
            strict_before=strict_before,
            strict_difference_before=None
            if strict is None
            else 100 * (strict[None].value - metrics.accuracy.value),
            points=points,
            best=self._best[probe],
            table_before=untrained.metrics.table,
            table_after=_cells(after),
        )

    def _averages(
        self,
        chosen: Mapping[int, Setting],
        task: str,
        split: str,
        resample: Callable[[Sequence[Finished], int], TwoWayBootstrap] = bootstrap_runs,
    ) -> dict[Setting | None, Resampled]:
        """Return the mean accuracy over seeds of settings on a task; None: before training."""
        wanted: list[Setting | None] = [None, *chosen.values()]
        runs = {one: self._runs.seeds(one, self._model, task, split) for one in wanted}
        bootstrap = resample([run for held in runs.values() for run in held], self._seed)
        numbers = count()
        return {
            one: bootstrap.average({seed: next(numbers) for seed in range(len(held))})
            for one, held in runs.items()
        }

    def _strict(
        self, chosen: Mapping[int, Setting], probe: str
    ) -> dict[Setting | None, Resampled] | None:
        """Return the same of clusters with every question right; None without such clusters."""
        metrics = self._metrics(probe, HELD_OUT)
        if metrics.strict_accuracy is None or metrics.clusters == metrics.scored:
            return None
        return self._averages(chosen, probe, HELD_OUT, bootstrap_whole_clusters)

    def _transfer(self) -> list[TransferCell]:
        if len(self._probes) < 2:
            return []
        names = {
            probe: self._runs.seeds(None, self._model, probe, HELD_OUT)[0].evaluation.results
            for probe in self._probes
        }
        cells = []
        for trained, tested in product(self._probes, self._probes):
            size = self._best[trained]
            setting = self._chosen[trained][size]
            found = self._averages({size: setting}, tested, HELD_OUT)
            cells.append(
                TransferCell(
                    trained_on=names[trained].probe.name,
                    tested_on=names[tested].probe.name,
                    accuracy=found[setting].estimate(),
                    gain=found[setting].less(found[None]).estimate(100),
                )
            )
        return cells

    def _metrics(self, task: str, split: str) -> Metrics:
        untrained = self._runs.seeds(None, self._model, task, split)[0]
        return untrained.evaluation.results.metrics

    def _notes(self) -> list[str]:
        options = self._options
        settings = len(options.learning_rates) * len(options.epoch_counts)
        notes = []
        if settings > 1:
            notes.append(
                f"For each number of rows, the best of {settings} settings is shown, chosen on the "
                "validation splits of the probe and of the original task: validation accuracies "
                "are biased upwards, and costs downwards. Test accuracy is not affected."
            )
        if len(options.epoch_counts) > 1:
            most, total = options.epoch_counts[-1], sum(options.epoch_counts)
            notes.append(
                "The learning rate is constant, so that runs with more epochs continue those "
                f"with fewer: {most} epochs are trained for each rate and seed instead of {total}."
                if self._schedule == "constant"
                else "The learning rate falls until the last epoch, so that each number of epochs "
                f"is trained from the start: {total} epochs for each rate and seed."
            )
        if options.seeds == 1:
            notes.append(
                "Each setting was trained with one seed: intervals do not account for the "
                "variation between draws of training rows."
            )
        for probe, chosen in self._chosen.items():
            runs = [
                run
                for setting in chosen.values()
                for run in self._runs.seeds(setting, self._model, probe, HELD_OUT)
            ]
            overlap = max(
                run.evaluation.results.scoring.notes.get("train_overlap", 0) for run in runs
            )
            if overlap:
                name = runs[0].evaluation.results.probe.name
                notes.append(
                    f"{overlap:,} test rows of {name} belong to clusters that are also in train."
                )
        return notes


def _cells(runs: Sequence[Finished]) -> list[Cell]:
    """Divide the rows of several runs by hops and distractors."""
    import pyarrow as pa

    rows = pa.concat_tables([run.evaluation.predictions for run in runs])
    scored = rows.filter(rows["prediction"].is_valid())
    right, cluster = breakdown.bools(scored["correct"]), breakdown.cluster_codes(scored)
    return breakdown.table(scored, right, cluster)
