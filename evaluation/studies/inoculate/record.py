"""The contents of ``inoculate.json``: what each number means, and how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pydantic import Field

from evaluation.results import breakdown
from evaluation.results.intervals import Resampled
from evaluation.results.types import Estimate, Model, Stratum
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import bootstrap_whole_clusters, train_overlap
from evaluation.studies.inoculate.axes import (
    HELD_OUT,
    SELECTION,
    InoculateOptions,
    ModelRuns,
    Setting,
)
from evaluation.studies.records import Record


class Tried(Model):
    """A setting that was tried: means over the seeds, on the splits used to choose settings."""

    learning_rate: float = Field(description="Peak learning rate.")
    epochs: int = Field(description="Number of epochs.")
    probe: float = Field(description="Accuracy on the probe.")
    original: float = Field(description="Accuracy on the original task.")


class SizePoint(Model):
    """The best setting for one number of rows: the one with the highest mean of both accuracies."""

    size: int = Field(description="Rows of the probe trained on, k.")
    learning_rate: float = Field(description="Of the best setting.")
    epochs: int = Field(description="Of the best setting.")
    tried: list[Tried] = Field(description="All settings of this size.")
    probe: Estimate = Field(
        description="Accuracy on the probe's validation split, used to choose the setting; all "
        "intervals resample clusters and seeds."
    )
    test: Estimate = Field(description="Accuracy on the probe's test split.")
    gain: Estimate = Field(description="Test accuracy minus that before training, in points.")
    original: Estimate = Field(description="Accuracy on the original task's validation split.")
    cost: Estimate = Field(
        description="Accuracy on the original task before training minus after, in points."
    )
    strict: Estimate | None = Field(
        description="Share of the probe's test clusters with every question answered correctly; "
        "null if no cluster has several questions."
    )
    strict_difference: float | None = Field(
        description="Strict accuracy minus test accuracy, in points; null as above."
    )


class Inoculated(Record):
    """A model trained on increasing numbers of rows of a probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="The probe, as it was given.")
    rows: int = Field(description="Rows of its test split.")
    clusters: int = Field(description="Clusters of its test split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    before: Estimate = Field(description="Accuracy of the model before training, on validation.")
    test_before: Estimate = Field(description="The same on test.")
    strict_before: Estimate | None = Field(description="Its strict accuracy on test.")
    strict_difference_before: float | None = Field(description="Strict minus test accuracy.")
    points: list[SizePoint] = Field(description="By number of rows.")
    best: int = Field(description="The size whose best setting has the highest mean of both.")
    table_before: list[Stratum] = Field(
        default_factory=list,
        description="Test accuracy before training by hops x distractor family x distance k'.",
    )
    table_after: list[Stratum] = Field(
        default_factory=list,
        description="The same after training on the best size; rows count once for each seed.",
    )

    @property
    def at_best(self) -> SizePoint:
        """The point of the best size."""
        return next(point for point in self.points if point.size == self.best)


class TransferCell(Model):
    """A model trained on one probe, tested on another."""

    trained_on: str = Field(description="The probe trained on, with its best size and setting.")
    tested_on: str = Field(description="The probe tested on.")
    accuracy: Estimate = Field(description="Accuracy on its test split.")
    gain: Estimate = Field(description="Accuracy minus that before training, in points.")


class ModelInoculation(Model):
    """One model."""

    model: str = Field(description="The checkpoint, as it was given.")
    original: str = Field(description="The original task, as it was given.")
    original_rows: int = Field(description="Rows of its validation split that were evaluated.")
    original_chance: float = Field(description="Mean of one over the number of choices.")
    original_before: Estimate = Field(description="Accuracy of the model before training on it.")
    added: str = Field(description="Original rows added for each probe row: none, x1, x2.")
    seeds: int = Field(description="Draws of training rows for each setting.")
    probes: list[Inoculated] = Field(description="Each probe trained on.")
    transfer: list[TransferCell] = Field(
        description="Each probe trained on, tested on each; empty if there is only one probe."
    )
    notes: list[str] = Field(description="Caveats for the reader.")


class InoculateSummary(Model):
    """All of ``inoculate.json``."""

    schema_version: str = "1.1"
    models: list[ModelInoculation] = Field(description="Each model.")


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> InoculateSummary:
    """Summarise the runs of both stages."""
    models = [_model(ModelRuns(request, finished, model)) for model in request.models]
    return InoculateSummary(models=models)


def _model(runs: ModelRuns) -> ModelInoculation:
    before = runs.metrics(runs.original, SELECTION)
    options: InoculateOptions = runs.request.options
    return ModelInoculation(
        model=runs.model,
        original=runs.original,
        original_rows=before.scored,
        original_chance=before.chance,
        original_before=before.accuracy,
        added=options.add_original,
        seeds=options.seeds,
        probes=[_inoculated(runs, probe) for probe in runs.probes],
        transfer=_transfer(runs) if len(runs.probes) > 1 else [],
        notes=_notes(runs),
    )


def _inoculated(runs: ModelRuns, probe: str) -> Inoculated:
    chosen, best = runs.best(probe), runs.best_size(probe)
    settings = chosen.values()
    untrained = runs.seeds(None, probe, HELD_OUT)[0]
    metrics = untrained.results.metrics
    test = runs.averages(settings, probe, HELD_OUT)
    validation = runs.averages(settings, probe, SELECTION)
    original = runs.averages(settings, runs.original, SELECTION)
    strict: dict[Setting | None, Resampled] = {}
    if metrics.strict_accuracy is not None and metrics.clusters != metrics.accuracy.n:
        strict = runs.averages(settings, probe, HELD_OUT, bootstrap_whole_clusters)

    def strict_of(setting: Setting | None, accuracy: float) -> tuple[Estimate | None, float | None]:
        """Return strict accuracy, and its difference from accuracy in points; None if unknown."""
        if not strict:
            return None, None
        return strict[setting].estimate(), 100 * (strict[setting].value - accuracy)

    points = []
    for size, setting in chosen.items():
        whole, less = strict_of(setting, test[setting].value)
        points.append(
            SizePoint(
                size=size,
                learning_rate=setting.learning_rate,
                epochs=setting.epochs,
                tried=[
                    Tried(
                        learning_rate=one.learning_rate,
                        epochs=one.epochs,
                        probe=runs.accuracy(one, probe),
                        original=runs.accuracy(one, runs.original),
                    )
                    for one in runs.settings(probe)[size]
                ],
                probe=validation[setting].estimate(),
                test=test[setting].estimate(),
                gain=test[setting].less(test[None]).estimate(100),
                original=original[setting].estimate(),
                cost=original[None].less(original[setting]).estimate(100),
                strict=whole,
                strict_difference=less,
            )
        )
    whole, less = strict_of(None, metrics.accuracy.value)
    return Inoculated.of(
        untrained,
        source=probe,
        before=runs.metrics(probe, SELECTION).accuracy,
        test_before=metrics.accuracy,
        strict_before=whole,
        strict_difference_before=less,
        points=points,
        best=best,
        table_before=metrics.table,
        table_after=_by_hops(runs.seeds(chosen[best], probe, HELD_OUT)),
    )


def _transfer(runs: ModelRuns) -> list[TransferCell]:
    names = {
        probe: runs.seeds(None, probe, HELD_OUT)[0].results.probe.name for probe in runs.probes
    }
    cells = []
    for trained, tested in product(runs.probes, runs.probes):
        setting = runs.best(trained)[runs.best_size(trained)]
        found = runs.averages([setting], tested, HELD_OUT)
        cells.append(
            TransferCell(
                trained_on=names[trained],
                tested_on=names[tested],
                accuracy=found[setting].estimate(),
                gain=found[setting].less(found[None]).estimate(100),
            )
        )
    return cells


def _by_hops(runs: Sequence[Finished]) -> list[Stratum]:
    """Divide the rows of several runs by hops and distractors."""
    import pyarrow as pa

    rows = pa.concat_tables([run.predictions for run in runs])
    scored = rows.filter(rows["prediction"].is_valid())
    right, cluster = breakdown.bools(scored["correct"]), breakdown.cluster_codes(scored)
    return breakdown.table(scored, right, cluster)


def _notes(runs: ModelRuns) -> list[str]:
    options: InoculateOptions = runs.request.options
    schedule = runs.request.values.get("schedule", "constant")
    notes = []
    if options.settings > 1:
        notes.append(
            f"For each number of rows, the best of {options.settings} settings is shown, chosen on "
            "the validation splits of the probe and of the original task: validation accuracies "
            "are biased upwards, and costs downwards. Test accuracy is not affected."
        )
    if len(options.epoch_counts) > 1:
        most, total = options.epoch_counts[-1], sum(options.epoch_counts)
        notes.append(
            "The learning rate is constant, so that runs with more epochs continue those "
            f"with fewer: {most} epochs are trained for each rate and seed instead of {total}."
            if schedule == "constant"
            else "The learning rate falls until the last epoch, so that each number of epochs "
            f"is trained from the start: {total} epochs for each rate and seed."
        )
    if options.seeds == 1:
        notes.append(
            "Each setting was trained with one seed: intervals do not account for the "
            "variation between draws of training rows."
        )
    for probe in runs.probes:
        tested = [
            run
            for setting in runs.best(probe).values()
            for run in runs.seeds(setting, probe, HELD_OUT)
        ]
        if overlap := train_overlap(tested):
            name = tested[0].results.probe.name
            notes.append(
                f"{overlap:,} test rows of {name} belong to clusters that are also in train."
            )
    return notes
