"""The summary of the study: each model's curves, and what several models show together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from evaluation.models.steps import stem_of
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.curve.groups import group_runs
from evaluation.studies.curve.numbers import model_curves
from evaluation.studies.curve.types import (
    CurveSummary,
    LearnerCurves,
    ModelCurves,
    RestartPoint,
    Restarts,
    Series,
    SeriesPoint,
    Spread,
)


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> CurveSummary:
    """Summarise the runs of the study."""
    models = [model_curves(runs, request.options.sizes) for runs in group_runs(finished)]
    return CurveSummary(models=models, restarts=_restarts(models), series=_series(models))


def _by_learner(
    models: Iterable[ModelCurves],
) -> dict[tuple[str, str, str], list[tuple[ModelCurves, LearnerCurves]]]:
    """Group curves by probe, model (without its training step) and learner."""
    groups: dict[tuple[str, str, str], list[tuple[ModelCurves, LearnerCurves]]] = {}
    for one in models:
        name = one.model if one.revision else stem_of(one.model)
        for learner in one.learners:
            groups.setdefault((one.probe, name, learner.learner), []).append((one, learner))
    return groups


def _restarts(models: Sequence[ModelCurves]) -> list[Restarts]:
    found = []
    random = [one for one in models if one.random_init is not None]
    for model in dict.fromkeys((one.probe, one.model) for one in random):
        drawn = [one for one in random if (one.probe, one.model) == model]
        trained = [
            one for one in models if (one.probe, one.model) == model and one.random_init is None
        ]
        for name in (learner.learner for learner in drawn[0].learners):
            curves = [
                learner.own for one in drawn for learner in one.learners if learner.learner == name
            ]
            beside = [
                learner.own.ws
                for one in trained[-1:]
                for learner in one.learners
                if learner.learner == name
            ]
            points = [
                RestartPoint(
                    size=point.size,
                    **_spread([curve.points[at].accuracy.value for curve in curves]).model_dump(),
                )
                for at, point in enumerate(curves[0].points)
            ]
            found.append(
                Restarts(
                    probe=model[0],
                    model=model[1],
                    learner=name,
                    models=len(curves),
                    ws=_spread([curve.ws.value for curve in curves]),
                    points=points,
                    trained_ws=beside[0] if beside else None,
                )
            )
    return found


def _spread(values: Sequence[float]) -> Spread:
    return Spread(mean=fmean(values), deviation=stdev(values) if len(values) > 1 else None)


def _series(models: Sequence[ModelCurves]) -> list[Series]:
    """Return the series of checkpoints: those of one model at two or more training steps."""
    stepped = [one for one in models if one.step is not None and one.random_init is None]
    found = []
    for (probe, name, learner), held in _by_learner(stepped).items():
        points = {
            one.step: SeriesPoint(
                step=one.step,
                label=one.revision or one.model,
                zero_shot=one.own_zero_shot,
                first=curves.first.after,
                ws=curves.own.ws,
                maximum=curves.own.maximum.accuracy,
            )
            for one, curves in held
            if one.step is not None
        }
        if len(points) > 1:
            found.append(
                Series(
                    probe=probe,
                    model=name,
                    learner=learner,
                    chance=held[0][0].chance,
                    points=[points[step] for step in sorted(points)],
                )
            )
    return found
