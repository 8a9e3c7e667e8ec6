"""The numbers of one model on one probe, from its runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import fmean

import numpy as np

from evaluation.models.steps import step_of
from evaluation.results.analyses.fitting import Fitting
from evaluation.results.intervals import Resampled
from evaluation.studies.curve.code_length import code_length
from evaluation.studies.curve.groups import Fitted, ModelRuns
from evaluation.studies.curve.types import (
    PROBE,
    RANDOM_LABELS,
    Baseline,
    CodeLength,
    Curve,
    First,
    LangSense,
    LearnerCurves,
    Maximum,
    ModelCurves,
    Point,
    Selectivity,
    Weight,
    ZeroShot,
)
from evaluation.studies.curve.weights import weigh

_FEW = 5
"""Fewer draws are said to be few."""


def model_curves(runs: ModelRuns, sizes: tuple[int, ...]) -> ModelCurves:
    """Return a model's curves; ``sizes`` are those that were asked for."""
    trained = sorted({size for one in runs.fitted for size in one.sizes})
    weights, weighting = weigh(trained)
    results, options = runs.own, runs.options
    metrics = results.metrics
    learners = dict.fromkeys(one.learner for one in runs.fitted)
    spec = runs.finished[0].spec
    model = spec.model if spec is not None else results.model.id
    return ModelCurves(
        probe=results.probe.name,
        split=results.probe.split,
        model=model,
        revision=options.revision,
        random_init=options.random_weights,
        step=step_of(options.revision or model.rstrip("/").split("/")[-1]),
        rows=metrics.items,
        clusters=metrics.clusters,
        chance=metrics.chance,
        baselines=[
            Baseline(name=name, accuracy=accuracy)
            for name, accuracy in sorted(
                metrics.baselines.items(), key=lambda entry: (-entry[1], entry[0])
            )
        ],
        sizes=trained,
        left_out=[size for size in sizes if size not in trained],
        weights=[Weight(size=size, weight=weight) for size, weight in weights.items()],
        weighting=weighting,
        zero_shot=[
            ZeroShot(rendering=rendering, accuracy=runs.results(number).metrics.accuracy)
            for rendering, number in runs.zero_shot.items()
        ],
        learners=[_learner_curves(runs, learner, weights) for learner in learners],
        notes=_notes(runs),
    )


def _learner_curves(runs: ModelRuns, learner: str, weights: Mapping[int, float]) -> LearnerCurves:
    fits = [one for one in runs.fitted if one.learner == learner]
    own = next(one for one in fits if one.rendering == PROBE)
    controls = [one for one in fits if one.rendering not in (PROBE, RANDOM_LABELS)]
    random = runs.fit(learner, RANDOM_LABELS)
    return LearnerCurves(
        learner=learner,
        curves=[_curve(runs, one, weights) for one in (own, *(f for f in fits if f is not own))],
        first=_first(runs, own),
        lang_sense=[_lang_sense(runs, own, control, weights) for control in controls],
        selectivity=[] if random is None else _selectivity(runs, own, random),
    )


def _curve(runs: ModelRuns, fit: Fitted, weights: Mapping[int, float]) -> Curve:
    means = _means(runs, fit)
    points = [
        Point(
            size=size,
            draws=[float(runs.bootstrap.accuracies[n]) for n in fit.sizes[size].values()],
            accuracy=mean.estimate(),
            train_loss=_train_loss(runs, fit, size),
        )
        for size, mean in means.items()
    ]
    best = max(means, key=lambda size: (means[size].value, -size))
    return Curve(
        rendering=fit.rendering,
        points=points,
        ws=_ws(runs, fit, weights).estimate(),
        maximum=Maximum(size=best, accuracy=_maximum(means, best).basic_estimate(1.0)),
        code_length=_code_length(runs, fit),
    )


def _means(runs: ModelRuns, fit: Fitted) -> dict[int, Resampled]:
    """Return the mean accuracy over the draws of each size."""
    return {size: runs.bootstrap.average(draws) for size, draws in sorted(fit.sizes.items())}


def _ws(runs: ModelRuns, fit: Fitted, weights: Mapping[int, float]) -> Resampled:
    return runs.bootstrap.weighted(
        [(weights[size], draws) for size, draws in sorted(fit.sizes.items())]
    )


def _maximum(means: Mapping[int, Resampled], best: int) -> Resampled:
    """Return the best mean, each resample having its own best."""
    samples = np.max([mean.samples for mean in means.values()], axis=0)
    return Resampled(means[best].value, samples, means[best].n, means[best].bounds)


def _lang_sense(
    runs: ModelRuns, own: Fitted, control: Fitted, weights: Mapping[int, float]
) -> LangSense:
    means, others = _means(runs, own), _means(runs, control)
    shared = [(weights[size], means[size], others[size]) for size in means if size in others]
    value = sum(weight * max(0.0, one.value - two.value) for weight, one, two in shared)
    samples = np.sum(
        [weight * np.maximum(0.0, one.samples - two.samples) for weight, one, two in shared],
        axis=0,
    )
    published = Resampled(value, samples, min(one.n for _, one, _ in shared))
    difference = _ws(runs, own, weights).less(_ws(runs, control, weights))
    return LangSense(
        config=control.rendering,
        value=published.basic_estimate(1.0, 100),
        difference=difference.estimate(100),
    )


def _selectivity(runs: ModelRuns, own: Fitted, random: Fitted) -> list[Selectivity]:
    means, others = _means(runs, own), _means(runs, random)
    return [
        Selectivity(
            size=size,
            value=mean.less(others[size]).estimate(100),
            seen=_mean_of(
                block.seen
                for number in random.sizes[size].values()
                if (block := runs.fitting(number)) is not None
            ),
        )
        for size, mean in means.items()
        if size in others
    ]


def _first(runs: ModelRuns, own: Fitted) -> First:
    means = _means(runs, own)
    smallest, largest = min(means), max(means)
    number = runs.zero_shot.get(PROBE)
    after = means[smallest]
    if number is None:
        before, chance = None, runs.own.metrics.chance
        taught = Resampled(after.value - chance, after.samples - chance, after.n)
        if after.bounds is not None:
            low, high = after.bounds
            taught = Resampled(
                taught.value, taught.samples, taught.n, (low - chance, high - chance)
            )
    else:
        before = runs.results(number).metrics.accuracy
        taught = after.less(runs.bootstrap.average({0: number}))
    return First(
        size=smallest,
        before=before,
        after=after.estimate(),
        taught=taught.estimate(100),
        further=means[largest].less(after).estimate(100),
    )


def _train_loss(runs: ModelRuns, fit: Fitted, size: int) -> float | None:
    blocks = [runs.fitting(number) for number in fit.sizes[size].values()]
    return _mean_of(None if block is None else block.train_loss for block in blocks)


def _mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of numbers; None where one of them is missing, or there are none."""
    held = list(values)
    known = [value for value in held if value is not None]
    return fmean(known) if held and len(known) == len(held) else None


def _code_length(runs: ModelRuns, fit: Fitted) -> CodeLength | None:
    fittings: dict[int, dict[int, Fitting | None]] = {}
    for size, draws in fit.sizes.items():
        for draw, number in draws.items():
            fittings.setdefault(draw, {})[size] = runs.fitting(number)
    widths = runs.finished[0].evaluation.predictions["choices"]
    counts = [len(choices) for choices in widths.to_pylist()]
    return code_length(fittings, fmean(math.log2(count) for count in counts))


def _notes(runs: ModelRuns) -> list[str]:
    """Say what a reader of the numbers must know."""
    notes = []
    draws = {len(of_size) for one in runs.fitted for of_size in one.sizes.values()}
    if min(draws) == 1:
        notes.append(
            "Some sizes were trained on a single draw of rows: their intervals do not cover how "
            "much another draw would change."
        )
    elif min(draws) < _FEW:
        notes.append(
            f"Some sizes were trained on {min(draws)} draws of rows only: their intervals are "
            "rough."
        )
    metrics = [run.evaluation.results.metrics for run in runs.finished]
    scored = {one.scored for one in metrics}
    if scored != {metrics[0].items}:
        notes.append(
            f"Rows were set aside: {min(scored):,} to {max(scored):,} of {metrics[0].items:,} were "
            "scored in each run, and accuracies are of these."
        )
    overlap = max(
        run.evaluation.results.scoring.notes.get("train_overlap", 0) for run in runs.finished
    )
    if overlap:
        notes.append(f"{overlap:,} test rows are of clusters that are in train as well.")
    return notes
