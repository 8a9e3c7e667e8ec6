"""Runs whose learner trains heads: fitted together, their scores put where each run finds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.items.types import choice_starts
from evaluation.learners.base import HeadLearner, HeadTraining
from evaluation.learners.registry import LEARNERS
from evaluation.runs.run import Run
from evaluation.runs.score_cache import SCORES, ScoreCache
from evaluation.runs.spec import RunSpec
from evaluation.workers import Workers
from kbprobe.progress import Progress


def learns_heads(spec: RunSpec) -> bool:
    """Tell whether a run asks for a learner that trains heads."""
    name = spec.run.learner
    return name in LEARNERS.names() and isinstance(LEARNERS.get(name or ""), HeadLearner)


def fit_heads(runs: Sequence[Run], folder: Path, workers: Workers, progress: Progress) -> None:
    """Fit the heads of all runs whose scores are not known, and store the scores.

    Each run's scores are stored as soon as they are there, so that nothing is fitted twice.

    Args:
        runs: of one model; their learners train heads.
        folder: where scores and vectors are kept.
        workers: the processes that share the runs; vectors are computed by all, and heads are
            trained by the first.
        progress: told what is being done.
    """
    unknown: dict[str, tuple[Run, ScoreCache]] = {}
    for run in runs:
        cache = ScoreCache(run.content, folder / SCORES)
        if cache.read(choice_starts(run.rows.items)) is None:
            unknown[cache.key] = run, cache
    # Every process must have looked before one of them writes.
    workers.wait()
    for learner in LEARNERS:
        if not isinstance(learner, HeadLearner):
            continue
        together = [one for one in unknown.values() if one[0].learner is learner]
        if not together:
            continue
        fittings = [run.head_fitting for run, _ in together]
        training = HeadTraining(together[0][0].model, fittings, folder, workers, progress)
        with workers.together():
            for number, scores in learner.fit(training):
                run, cache = together[number]
                cache.write(scores, choice_starts(run.rows.items))
