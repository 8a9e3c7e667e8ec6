"""What is logged of the study: each model as one run, with a point for each revision."""

from __future__ import annotations

from evaluation.results.words import last_name
from evaluation.studies.revisions.types import RevisionPoint, RevisionsSummary
from evaluation.tracking import Tracked, metrics_of


def track(summary: RevisionsSummary) -> list[Tracked]:
    """Return a run for each model, by training step; by place where not all names tell one."""
    runs: dict[str, Tracked] = {}
    for one in summary.models:
        about = {"model": one.model, "scorer": one.scorer, "split": one.split}
        run = runs.setdefault(one.model, Tracked(last_name(one.model), about))
        for place, point in enumerate(one.points):
            step = point.step if one.by_step and point.step is not None else place
            run.add(
                step, {**metrics_of(one.probe, chance=one.chance), **_metrics(one.probe, point)}
            )
    return list(runs.values())


def _metrics(probe: str, point: RevisionPoint) -> dict[str, float]:
    change = point.since_previous
    return metrics_of(
        probe,
        accuracy=point.accuracy,
        became_right=None if change is None else change.became_right,
        became_wrong=None if change is None else change.became_wrong,
    )
