"""Evaluate models on probes, which is also done without naming a command.

Listed under: Commands to evaluate.

Probes are folders, Hub ids, or JSON lines as in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Failed, Finished, Study, StudyRequest
from evaluation.tracking import Tracked, describe, metrics_of

if TYPE_CHECKING:
    from evaluation.results.types import AllResults


def _expand(request: StudyRequest) -> list[RunSpec]:
    specs = [
        request.spec(probe, model)
        for model in request.models
        for probe in dict.fromkeys(request.probes)
    ]
    if len(specs) == 1 and request.output_given:
        # The results of a single run go into the folder itself.
        return [replace(specs[0], folder=request.output)]
    return specs


def _summarise(
    _request: StudyRequest, finished: Sequence[Finished], _failed: Sequence[Failed] = ()
) -> AllResults:
    # Imported only when there are results, so that --help stays fast.
    from evaluation.results.types import AllResults

    return AllResults(results=[run.results for run in finished])


def _track(summary: AllResults) -> list[Tracked]:
    """Return a run for each model, at the step in its name, or at 0."""
    from evaluation.models.revisions import step_of
    from evaluation.names import model_name

    runs: dict[tuple[object, ...], Tracked] = {}
    for result in summary.results:
        model, about = result.model, describe(result)
        learnt = " ".join(str(about[name]) for name in ("learner", "train") if name in about)
        weights = "" if model.random_weights is None else f"random weights {model.random_weights}"
        parts = (model_name(model.id), (model.revision or "")[:8], weights, learnt)
        run = runs.setdefault((model.id, *parts), Tracked(", ".join(filter(None, parts)), about))
        metrics = result.metrics
        logged = metrics_of(
            result.probe.name,
            accuracy=metrics.accuracy,
            strict_accuracy=metrics.strict_accuracy,
            chance=metrics.chance,
        )
        run.add(step_of(model_name(model.id)) or 0, logged)
    return list(runs.values())


def _show(summary: AllResults) -> None:
    from evaluation.results.summary import show_table

    show_table(summary.results)


ZERO_SHOT = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    show=_show,
    track=_track,
    partial=True,
)
