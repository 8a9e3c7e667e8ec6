"""The numbers of learning curves, computed from the finished runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from evaluation.models.revisions import step_of
from evaluation.results.analyses import fitting
from evaluation.results.analyses.fitting import Fitting
from evaluation.results.intervals import Resampled
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import group_by, train_overlap
from evaluation.studies.curve import record
from evaluation.studies.curve.axes import ModelRuns, Sizes, group_runs
from evaluation.studies.curve.medals import award_medals
from evaluation.studies.table import place_of
from kbprobe.errors import UsageError
from kbprobe.options import option_name

_FEW = 5
"""If there are fewer draws than this, a note says so."""


def model_curves(runs: ModelRuns, sizes: tuple[int, ...]) -> record.ModelCurves:
    """Return a model's curves; ``sizes`` are those that the user asked for."""
    trained = sorted({size for sizes in runs.fitted.values() for size in sizes})
    weights, weighting = weigh(trained)
    model, options = runs.own.asked.model, runs.own.asked.run
    metrics = runs.own.results.metrics
    learners = dict.fromkeys(learner for learner, _ in runs.fitted)
    return record.ModelCurves(
        **place_of(runs.own, "probe", "split"),
        rows=metrics.items,
        clusters=metrics.clusters,
        chance=metrics.chance,
        model=model,
        revision=options.revision,
        random_init=options.random_weights,
        step=step_of(options.revision or model.rstrip("/").split("/")[-1]),
        baselines=[
            record.Baseline(name=name, accuracy=accuracy)
            for name, accuracy in metrics.ranked_baselines
        ],
        sizes=trained,
        left_out=[size for size in sizes if size not in trained],
        weights=[record.Weight(size=size, weight=weight) for size, weight in weights.items()],
        weighting=weighting,
        zero_shot=[
            record.ZeroShot(rendering=rendering, accuracy=run.results.metrics.accuracy)
            for rendering, run in runs.zero_shot.items()
        ],
        learners=[_learner_curves(runs, learner, weights) for learner in learners],
        notes=_notes(runs),
    )


def _learner_curves(
    runs: ModelRuns, learner: str, weights: Mapping[int, float]
) -> record.LearnerCurves:
    fits = {rendering: sizes for (name, rendering), sizes in runs.fitted.items() if name == learner}
    # The probe itself comes first.
    fits = {record.PROBE: fits[record.PROBE], **fits}
    means = {
        rendering: {size: runs.mean(own) for size, own in sorted(sizes.items())}
        for rendering, sizes in fits.items()
    }
    ws = {
        rendering: runs.bootstrap.weighted(
            [(weights[size], runs.draws(own)) for size, own in sorted(sizes.items())]
        )
        for rendering, sizes in fits.items()
    }
    own, others = means[record.PROBE], means.get(record.RANDOM_LABELS, {})
    return record.LearnerCurves(
        learner=learner,
        curves=[
            _curve(runs, rendering, sizes, means[rendering], ws[rendering])
            for rendering, sizes in fits.items()
        ],
        first=_first(runs, own),
        lang_sense=[
            record.LangSense(
                config=config,
                value=_lang_sense(own, means[config], weights).basic_estimate(1.0, 100),
                difference=ws[record.PROBE].less(ws[config]).estimate(100),
            )
            for config in fits
            if config not in (record.PROBE, record.RANDOM_LABELS)
        ],
        selectivity=[
            record.Selectivity(
                size=size,
                value=mean.less(others[size]).estimate(100),
                seen=_mean_of(
                    block.seen
                    for run in fits[record.RANDOM_LABELS][size]
                    if (block := _report(run))
                ),
            )
            for size, mean in own.items()
            if size in others
        ],
    )


def _curve(
    runs: ModelRuns, rendering: str, sizes: Sizes, means: Mapping[int, Resampled], ws: Resampled
) -> record.Curve:
    points = [
        record.Point(
            size=size,
            draws=[float(runs.bootstrap.accuracies[n]) for n in runs.draws(sizes[size]).values()],
            accuracy=mean.estimate(),
            train_loss=_mean_of(block and block.train_loss for block in map(_report, sizes[size])),
        )
        for size, mean in means.items()
    ]
    best = max(means, key=lambda size: (means[size].value, -size))
    # Each resample takes its own highest mean.
    samples = np.max([mean.samples for mean in means.values()], axis=0)
    highest = replace(means[best], samples=samples, clusters=0)
    return record.Curve(
        rendering=rendering,
        points=points,
        ws=ws.estimate(),
        maximum=record.Maximum(size=best, accuracy=highest.basic_estimate(1.0)),
        code_length=_code_length(runs, sizes),
    )


def _report(run: Finished) -> Fitting | None:
    """Return what a learner reported about its training, if anything."""
    return run.results.analysis(fitting.NAME, Fitting)


def _lang_sense(
    means: Mapping[int, Resampled], others: Mapping[int, Resampled], weights: Mapping[int, float]
) -> Resampled:
    shared = [(weights[size], means[size], others[size]) for size in means if size in others]
    value = sum(weight * max(0.0, one.value - two.value) for weight, one, two in shared)
    samples = np.sum(
        [weight * np.maximum(0.0, one.samples - two.samples) for weight, one, two in shared],
        axis=0,
    )
    return Resampled(value, samples, min(one.n for _, one, _ in shared))


def _first(runs: ModelRuns, means: Mapping[int, Resampled]) -> record.First:
    smallest, largest = min(means), max(means)
    after, before = means[smallest], None
    start: Resampled | float = runs.own.results.metrics.chance
    if (run := runs.zero_shot.get(record.PROBE)) is not None:
        before, start = run.results.metrics.accuracy, runs.mean([run])
    return record.First(
        size=smallest,
        before=before,
        after=after.estimate(),
        taught=after.less(start).estimate(100),
        further=means[largest].less(after).estimate(100),
    )


def _mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of numbers; None if one of them is missing, or there are none."""
    held = list(values)
    known = [value for value in held if value is not None]
    return fmean(known) if held and len(known) == len(held) else None


def _code_length(runs: ModelRuns, sizes: Sizes) -> record.CodeLength | None:
    fittings: dict[int, dict[int, Fitting | None]] = {}
    for size, own in sizes.items():
        for run in own:
            fittings.setdefault(run.asked.run.train_seed or 0, {})[size] = _report(run)
    widths = runs.finished[0].predictions["choices"]
    counts = [len(choices) for choices in widths.to_pylist()]
    return code_length(fittings, fmean(math.log2(count) for count in counts))


def _notes(runs: ModelRuns) -> list[str]:
    """Return caveats about the numbers."""
    notes = []
    draws = {len(own) for sizes in runs.fitted.values() for own in sizes.values()}
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
    metrics = [run.results.metrics for run in runs.finished]
    scored = {one.scored for one in metrics}
    if scored != {metrics[0].items}:
        notes.append(
            f"Rows were set aside: {min(scored):,} to {max(scored):,} of {metrics[0].items:,} were "
            "scored in each run, and accuracies are of these."
        )
    if overlap := train_overlap(runs.finished):
        notes.append(f"{overlap:,} test rows are of clusters that are in train as well.")
    return notes


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> record.CurveSummary:
    """Summarise the runs of the study."""
    return _summary([model_curves(runs, request.options.sizes) for runs in group_runs(finished)])


def collect(
    request: StudyRequest, read: Sequence[tuple[Path, record.CurveSummary]]
) -> record.CurveSummary:
    """Join the curves of several folders."""
    if request.options.model_fields_set:
        name = option_name(min(request.options.model_fields_set))
        raise UsageError(f"{name} is for runs: name a model with --model, or leave it out")
    places: dict[tuple[str, str, str], Path] = {}
    models = [(one, folder) for folder, summary in read for one in summary.models]
    for one, folder in models:
        name = record.model_name(one)
        other = places.setdefault((one.probe, one.split, name), folder)
        if other is not folder:
            raise UsageError(
                f"{other} and {folder} both hold curves of {name} on {one.probe}: leave one of "
                "them out"
            )
    return _summary([one for one, _ in models])


def _summary(models: list[record.ModelCurves]) -> record.CurveSummary:
    return record.CurveSummary(
        models=models,
        restarts=_restarts(models),
        series=_series(models),
        medals=award_medals(models),
    )


def _restarts(models: Sequence[record.ModelCurves]) -> list[record.Restarts]:
    trained = {
        (one.probe, one.model, learner.learner): learner.own.ws
        for one in models
        if one.random_init is None
        for learner in one.learners
    }
    drawn = group_by(
        ((one, held) for one in models if one.random_init is not None for held in one.learners),
        lambda pair: (pair[0].probe, pair[0].model, pair[1].learner),
    )
    found = []
    for (probe, model, learner), held in drawn.items():
        curves = [own.own for _, own in held]
        points = [
            record.RestartPoint(size=at[0].size, **_spread(point.accuracy.value for point in at))
            for at in zip(*(curve.points for curve in curves), strict=True)
        ]
        found.append(
            record.Restarts(
                probe=probe,
                model=model,
                learner=learner,
                models=len(curves),
                ws=record.Spread(**_spread(curve.ws.value for curve in curves)),
                points=points,
                trained_ws=trained.get((probe, model, learner)),
            )
        )
    return found


def _spread(values: Iterable[float]) -> dict[str, float | None]:
    held = list(values)
    return {"mean": fmean(held), "deviation": stdev(held) if len(held) > 1 else None}


def _series(models: Sequence[record.ModelCurves]) -> list[record.Series]:
    """Return the series of checkpoints: those of one model at two or more training steps."""
    stepped = group_by(
        (
            (one, learner)
            for one in models
            if one.step is not None and one.random_init is None
            for learner in one.learners
        ),
        lambda pair: (pair[0].probe, pair[0].stem, pair[1].learner),
    )
    found = []
    for (probe, model, learner), held in stepped.items():
        points = {
            one.step or 0: record.SeriesPoint(
                step=one.step or 0,
                label=one.revision or one.model,
                zero_shot=one.own_zero_shot,
                first=curves.first.after,
                ws=curves.own.ws,
                maximum=curves.own.maximum.accuracy,
            )
            for one, curves in held
        }
        if len(points) > 1:
            found.append(
                record.Series(
                    probe=probe,
                    model=model,
                    learner=learner,
                    chance=held[0][0].chance,
                    points=[points[step] for step in sorted(points)],
                )
            )
    return found


def code_length(
    fittings: Mapping[int, Mapping[int, Fitting | None]], choice_bits: float
) -> record.CodeLength | None:
    """Return the online code length (Voita and Titov 2020, section 2.2.2), in bits.

    The answers of the first block are sent by the uniform code, each further block by the
    probabilities of the model fitted on all rows before it. Draws that were not trained on all
    sizes are left out.

    Args:
        fittings: what was reported for each draw and size.
        choice_bits: mean log2 of the number of choices.

    Returns:
        None if no draw has an unbroken series of at least two sizes.
    """
    longest = max((size for sizes in fittings.values() for size in sizes), default=0)
    coded = [
        found
        for sizes in fittings.values()
        if longest in sizes and (found := _of_draw(sizes, choice_bits)) is not None
    ]
    if not coded:
        return None
    compressions = [rows * choice_bits / bits for rows, bits in coded]
    rows = fmean(rows for rows, _ in coded)
    return record.CodeLength(
        rows=round(rows),
        draws=len(coded),
        uniform_bits=rows * choice_bits,
        bits=fmean(bits for _, bits in coded),
        compression=fmean(compressions),
        compression_deviation=stdev(compressions) if len(coded) > 1 else None,
    )


def _of_draw(sizes: Mapping[int, Fitting | None], choice_bits: float) -> tuple[int, float] | None:
    """Return the number of rows coded in a draw and their code length; None if a block is missing.

    Rows that the learner set aside are in no block, so blocks may be slightly short.
    """
    ordered = sorted(sizes)
    if len(ordered) < 2:
        return None
    rows, bits = ordered[0], ordered[0] * choice_bits
    for size, following in pairwise(ordered):
        block = sizes[size]
        if block is None or block.next_bits is None or size + block.next_rows > following:
            return None
        rows, bits = rows + block.next_rows, bits + block.next_bits
    return (rows, bits) if math.isfinite(bits) and bits > 0 else None


PUBLISHED = {62: 0.23, 125: 0.2, 250: 0.17, 500: 0.14, 1000: 0.11, 2000: 0.08, 4000: 0.07}
"""oLMpics, section 3.2: sizes with few rows count more, since little can be learnt from them."""


def weigh(sizes: Sequence[int]) -> tuple[dict[int, float], str]:
    """Return the weight of each size, summing to one, and how they were chosen.

    >>> weights, said = weigh([62, 125])
    >>> {size: round(weight, 3) for size, weight in weights.items()}
    {62: 0.535, 125: 0.465}
    >>> weigh([10, 20])[0]
    {10: 0.5, 20: 0.5}
    """
    if not all(size in PUBLISHED for size in sizes):
        return dict.fromkeys(sizes, 1 / len(sizes)), (
            "equal, as some of the sizes have no published weight"
        )
    total = sum(PUBLISHED[size] for size in sizes)
    weights = {size: PUBLISHED[size] / total for size in sizes}
    if len(sizes) == len(PUBLISHED):
        return weights, "as published"
    missing = ", ".join(f"{size:,}" for size in PUBLISHED if size not in sizes)
    return weights, f"as published, renormalised without {missing}"
