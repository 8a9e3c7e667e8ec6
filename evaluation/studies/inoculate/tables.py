"""The tables of inoculation: each number of rows with its best setting, and transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

from evaluation.names import model_name
from evaluation.report import cells
from evaluation.report.breakdowns import heat_map
from evaluation.results import breakdown
from evaluation.results.intervals import Resampled, mean_of_independent
from evaluation.results.types import Stratum
from evaluation.results.words import difference, percent, points
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import bootstrap_whole_clusters, train_overlap
from evaluation.studies.inoculate.axes import (
    HELD_OUT,
    SELECTION,
    InoculateOptions,
    ModelRuns,
    Setting,
)
from evaluation.studies.table import (
    PROBE,
    Column,
    DataTable,
    Section,
    StudyTables,
    fields,
    place_of,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.intervals import Estimate

_RATE = {"learning_rate": lambda rate: None if rate is None else f"{rate:g}"}
_HEADS = {"size": "rows", "learning_rate": "rate", "original": "original task"}
_RUNS = fields(
    {
        "size": "Rows of the probe trained on, k; 0: the model before training.",
        "learning_rate": "Peak learning rate of the best setting: that with the highest mean of "
        "the accuracies on both validation splits.",
        "epochs": "Number of epochs of the best setting.",
        "best": "Whether this is the size whose best setting has the highest mean of all.",
        "validation": "Accuracy on the probe's validation split, used to choose the setting; all "
        "intervals resample clusters and seeds.",
        "test": "Accuracy on the probe's test split.",
        "gain": "Test accuracy minus that before training, in points.",
        "original": "Accuracy on the original task's validation split; of several tasks, the mean.",
        "cost": "Accuracy on the original task before training minus after, in points; likewise.",
        "strict": "Share of the probe's test clusters with every question answered correctly; null "
        "if no cluster has several questions.",
        "strict_difference": "Strict accuracy minus test accuracy, in points.",
    },
    {**_HEADS, "strict_difference": "difference"},
    hidden=("best",),
    show={**_RATE, **dict.fromkeys(("gain", "cost", "strict_difference"), cells.points)},
)
_TRIED = fields(
    {
        "size": "Rows of the probe trained on.",
        "learning_rate": "Peak learning rate.",
        "epochs": "Number of epochs.",
        "probe_accuracy": "Accuracy on the probe: mean over the seeds, on validation.",
        "original": "The same on the original task; of several tasks, the mean.",
        "mean": "Mean of both.",
    },
    {**_HEADS, "probe_accuracy": "accuracy"},
    show=_RATE,
)
_ORIGINALS = fields(
    {
        "task": "The original task.",
        "size": "Rows of the probe trained on in the best setting; 0: the model before training.",
        "accuracy": "Accuracy on the task's validation split.",
        "cost": "Accuracy before training minus after, in points.",
    },
    {"task": "original task", "size": "rows"},
    show={"task": model_name, "cost": cells.points},
)
_TRANSFER = fields(
    {
        "trained_on": "The probe trained on, with its best size and setting.",
        "tested_on": "The probe tested on.",
        "accuracy": "Accuracy on its test split.",
        "gain": "Accuracy minus that before training, in points.",
    }
)
_ABOUT = {
    **{name: column.about for name, column in PROBE.items()},
    "original_task": "The original task, as it was given; several are separated by commas.",
    "original_rows": "Rows of its validation split that were evaluated; of several tasks, of all.",
    "original_chance": "Mean of one over the number of choices of its questions; of several tasks, "
    "the mean of that.",
    "added": "Original rows added for each probe row: none, x1, x2.",
    "seeds": "Draws of training rows for each setting.",
}
_HOPS: dict[str, Column[tuple[str, Stratum]]] = {
    "when": Column("Before or after training on the best size.", lambda pair: pair[0]),
    "hops": Column("Hops of the questions.", lambda pair: pair[1].hops),
    "family": Column("Their distractor family.", lambda pair: pair[1].family),
    "distractor_hops": Column("Their distance k'.", lambda pair: pair[1].distractor_hops),
    "accuracy": Column(
        "Test accuracy; after training, rows count once for each seed.",
        lambda pair: pair[1].accuracy,
    ),
}


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of both stages."""
    models = [ModelRuns(request, finished, model) for model in request.models]
    sections = [_section(runs, probe) for runs in models for probe in runs.probes]
    sections += [_transfer(runs) for runs in models if len(runs.probes) > 1]
    return summary_of("inoculate", "Inoculation by fine-tuning", sections, "models and probes")


def _section(runs: ModelRuns, probe: str) -> Section:
    """Report a model that was trained on a probe."""
    rows = _rows(runs, probe)
    before, best = rows[0], next(row for row in rows if row["best"])
    untrained = runs.seeds(None, probe, HELD_OUT)[0]
    originals = [runs.metrics(task, SELECTION) for task in runs.originals]
    options = runs.request.options
    about = {name: column.value(untrained) for name, column in PROBE.items()} | {
        "original_task": ",".join(runs.originals),
        "original_rows": sum(metrics.scored for metrics in originals),
        "original_chance": fmean(metrics.chance for metrics in originals),
        "added": options.add_original,
        "seeds": options.seeds,
    }
    tried = [
        {
            "size": size,
            "learning_rate": setting.learning_rate,
            "epochs": setting.epochs,
            "probe_accuracy": runs.accuracy(setting, probe),
            "original": runs.original_accuracy(setting),
            "mean": runs.mean(setting),
        }
        for size, settings in runs.settings(probe).items()
        for setting in settings
    ]
    trained = runs.seeds(runs.best(probe)[best["size"]], probe, HELD_OUT)
    tables = untrained.results.metrics.table, _by_hops(trained)
    hops = [
        (when, cell) for when, own in zip(("before", "after"), tables, strict=True) for cell in own
    ]
    table, settings = DataTable("runs", rows, _RUNS), DataTable("tried", tried, _TRIED)
    maps = _heat_maps(*tables, best["size"], untrained.results.metrics.chance)
    several = len(runs.originals) > 1
    task = model_name(runs.originals[0])
    if several:
        task = f"the mean of {len(originals)} original tasks"
    by_task = DataTable("originals", _by_task(runs, probe), _ORIGINALS)
    return Section(
        place_of(untrained, "probe", "split", "model"),
        [
            table,
            settings,
            DataTable("probes", [about], fields(_ABOUT)),
            DataTable("hops", hops, _HOPS),
            *([by_task] if several else []),
        ],
        [
            _chart(rows, about["chance"], task),
            table.shown(
                f"Accuracy on the probe and on {task}; cost: points lost on the latter",
                (
                    *("size", "learning_rate", "epochs", "validation", "test", "gain"),
                    *("original", "cost"),
                ),
            ),
            by_task.shown("Accuracy and cost on each original task") if several else None,
            table.shown(
                "Strict accuracy on test: the share of clusters with every question answered "
                "correctly, and its difference from accuracy in points",
                ("size", "test", "strict", "strict_difference"),
            )
            if before["strict"] is not None
            else None,
            doc.Heading("Hops and distractors") if maps else None,
            *maps,
            settings.shown(
                "Mean accuracy over the seeds on validation, by setting", fold="All settings"
            ),
        ],
        [
            f"Before: {percent(before['test'].value)} of the test questions right (chance "
            f"{percent(about['chance'])}). After {best['size']:,} rows: "
            f"{percent(best['test'].value)}, a difference of {difference(best['gain'])}.",
            f"Cost on {task if several else 'the original task'}: "
            f"{difference(best['cost'])}, from "
            f"{percent(before['original'].value)} to {percent(best['original'].value)}.",
            _verdict(best),
        ],
        _notes(runs),
    )


def _rows(runs: ModelRuns, probe: str) -> list[dict[str, Any]]:
    """Return the rows of the table of runs: the model before training, then each size."""
    chosen, best = runs.best(probe), runs.best_size(probe)
    metrics = runs.metrics(probe, HELD_OUT)
    test = runs.averages(chosen.values(), probe, HELD_OUT)
    validation = runs.averages(chosen.values(), probe, SELECTION)
    tasks = [runs.averages(chosen.values(), task, SELECTION) for task in runs.originals]
    original = {
        setting: Resampled.mean([own[setting] for own in tasks])
        for setting in (None, *chosen.values())
    }
    untrained = [runs.metrics(task, SELECTION).accuracy for task in runs.originals]
    strict: dict[Setting | None, Resampled] = {}
    if metrics.strict_accuracy is not None and metrics.clusters != metrics.accuracy.n:
        strict = runs.averages(chosen.values(), probe, HELD_OUT, bootstrap_whole_clusters)

    def strict_of(setting: Setting | None, accuracy: float) -> dict[str, Any]:
        if not strict:
            return {"strict": None, "strict_difference": None}
        own = strict[setting]
        return {"strict": own.estimate(), "strict_difference": 100 * (own.value - accuracy)}

    rows: list[dict[str, Any]] = [
        {
            **{"size": 0, "learning_rate": None, "epochs": None, "best": False},
            "validation": runs.metrics(probe, SELECTION).accuracy,
            "test": metrics.accuracy,
            "original": untrained[0] if len(tasks) == 1 else mean_of_independent(untrained),
            **{"gain": None, "cost": None},
            **strict_of(None, metrics.accuracy.value),
        }
    ]
    rows += [
        {
            **{"size": size, "learning_rate": setting.learning_rate, "epochs": setting.epochs},
            "best": size == best,
            "validation": validation[setting].estimate(),
            "test": test[setting].estimate(),
            "original": original[setting].estimate(),
            "gain": test[setting].less(test[None]).estimate(100),
            "cost": original[None].less(original[setting]).estimate(100),
            **strict_of(setting, test[setting].value),
        }
        for size, setting in chosen.items()
    ]
    return rows


def _by_task(runs: ModelRuns, probe: str) -> list[dict[str, Any]]:
    """Return the accuracy on each original task, before training and after each size."""
    rows: list[dict[str, Any]] = []
    for task in runs.originals:
        chosen = runs.best(probe)
        averages = runs.averages(chosen.values(), task, SELECTION)
        before = runs.metrics(task, SELECTION).accuracy
        rows.append({"task": task, "size": 0, "accuracy": before, "cost": None})
        rows += [
            {
                "task": task,
                "size": size,
                "accuracy": averages[setting].estimate(),
                "cost": averages[None].less(averages[setting]).estimate(100),
            }
            for size, setting in chosen.items()
        ]
    return rows


def _transfer(runs: ModelRuns) -> Section:
    """Report a model trained on each probe with its best setting, and tested on each."""
    names = {
        probe: runs.seeds(None, probe, HELD_OUT)[0].results.probe.name for probe in runs.probes
    }
    rows = []
    for trained, tested in product(runs.probes, runs.probes):
        setting = runs.best(trained)[runs.best_size(trained)]
        averages = runs.averages([setting], tested, HELD_OUT)
        rows.append(
            {
                "trained_on": names[trained],
                "tested_on": names[tested],
                "accuracy": averages[setting].estimate(),
                "gain": averages[setting].less(averages[None]).estimate(100),
            }
        )
    table = DataTable("transfer", rows, _TRANSFER)
    return Section(
        {"model": runs.model},
        [table],
        [
            table.heat_map(
                "Test accuracy minus that of the model before training, in points, after training "
                "with the best size and setting",
                *("trained_on", "tested_on", "gain", "points"),
                marked=lambda row: row["trained_on"] == row["tested_on"],
            )
        ],
    )


def _chart(rows: Sequence[Mapping[str, Any]], chance: float, task: str) -> doc.Chart:
    """Draw accuracy on the probe and the original task by training size (WordNetQA, Figure 4)."""
    places = range(len(rows))
    lines = [
        doc.Line("probe", places, [row["test"] for row in rows], 0),
        doc.Line(task, places, [row["original"] for row in rows], 1, marker="s"),
    ]
    return doc.Chart(
        "Test accuracy on the probe and accuracy on the original task by rows trained on.",
        [doc.Panel(lines, [doc.Level("chance on the probe", chance)], from_zero=True)],
        doc.Across("rows of the probe trained on", "names", [f"{row['size']:,}" for row in rows]),
        note="The best setting for each number of rows. The bands are 95% intervals.",
    )


def _by_hops(runs: Sequence[Finished]) -> list[Stratum]:
    """Divide the rows of several runs by hops and distractors."""
    import pyarrow as pa

    rows = pa.concat_tables([run.predictions for run in runs])
    return breakdown.table(*breakdown.scored_rows(rows))


def _heat_maps(
    layout: Sequence[Stratum], trained: Sequence[Stratum], size: int, chance: float
) -> list[doc.HeatMap]:
    """Return test accuracy by hops and distractors, before and after: Figure 3 of WordNetQA."""
    training = f"after training on {size:,} rows"
    before = heat_map(layout, "Test accuracy before training", layout, chance=chance)
    after = heat_map(trained, f"Test accuracy {training}", layout, chance=chance)
    if before is None or after is None:
        return []
    change = [
        [_gain(*pair) for pair in zip(*rows, strict=True)]
        for rows in zip(before.cells, after.cells, strict=True)
    ]
    title = f"Change {training}, in points"
    change_map = replace(before, caption=title, cells=change, scale="points", faint=frozenset())
    return [before, after, change_map]


def _gain(before: doc.Number | None, after: doc.Number | None) -> float | None:
    """Return the difference of two accuracies in points; None if either is missing."""
    if not isinstance(before, Estimate) or not isinstance(after, Estimate):
        return None
    return 100 * (after.value - before.value)


def _verdict(best: Mapping[str, Any]) -> str:
    """Interpret the outcome as Liu et al. (2019) do, by the gain and its cost."""
    if best["gain"].low <= 0:
        lacks = (
            "the model lacks the knowledge that the probe asks for and cannot learn it from so few "
            "rows, or none of the settings is suitable."
        )
        if best["gain"].high <= 0:
            return f"There is no gain: {lacks}"
        rows, most = best["test"].n, points(best["gain"].high)
        return (
            f"No gain can be detected, but {rows:,} test rows do not exclude one of {most} points: "
            f"more of them would tell. If there is none, {lacks}"
        )
    if best["cost"].value >= best["gain"].value:
        return (
            "The gain is no larger than the cost: the model has forgotten what it did before, "
            "rather than adapted to the probe."
        )
    return (
        "The gain is larger than the cost: at least this part of what the model got wrong "
        f"before training can be learnt from {best['size']:,} rows. Compare it with what models "
        "without pre-training learn from as many rows (evaluate-probe baselines)."
    )


def _notes(runs: ModelRuns) -> list[str]:
    options: InoculateOptions = runs.request.options
    schedule = runs.request.defaults.options.get("training", {}).get("schedule", "constant")
    notes = []
    if options.settings > 1:
        notes.append(
            f"For each number of rows, the best of {options.settings} settings is shown, chosen on "
            "the validation splits of the probe and of the original tasks: validation accuracies "
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
