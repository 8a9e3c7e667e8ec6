"""The summary of the study: accuracy with each prompt, and how often answers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev

from evaluation.results import intervals
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.pairing import pair_rows
from evaluation.studies.prompts.runs import PromptSetting, settings
from evaluation.studies.prompts.types import (
    ModelPrompts,
    PairedPrompts,
    PromptGroup,
    PromptRun,
    PromptsSummary,
)
from evaluation.studies.variation.numbers import describe, measure_variation, runs_by_request
from evaluation.studies.variation.words import left_out, notes_of


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> PromptsSummary:
    """Summarise the runs of each model on each probe.

    Raises:
        UsageError: no question was scored with every prompt.
    """
    varied = settings(request)
    return PromptsSummary(models=[_model(runs, varied) for runs in runs_by_request(finished)])


def _model(runs: Sequence[Finished], varied: Sequence[PromptSetting]) -> ModelPrompts:
    results = runs[0].evaluation.results
    variation = measure_variation(runs, results.seed)
    described = [_describe(run, own) for run, own in zip(runs, varied, strict=True)]
    by_accuracy = sorted(range(len(runs)), key=lambda at: described[at].accuracy.value)
    worst, best = by_accuracy[0], by_accuracy[-1]
    paired = pair_rows(runs[worst], runs[best])
    notes = [*left_out(variation, "prompt"), *notes_of(runs, "prompt")]
    if len({one.normalization for one in described}) > 1:
        divided = "; ".join(f"{one.label}: {one.normalization}" for one in described)
        notes.append(f"Scores are not divided by the same length ({divided}).")
    return ModelPrompts(
        probe=results.probe.name,
        split=results.probe.split,
        model=results.model.id,
        chance=results.metrics.chance,
        runs=described,
        variation=variation,
        best=described[best].label,
        worst=described[worst].label,
        difference=intervals.paired_difference(*paired.right, paired.clusters, results.seed),
        pairs=_pairs(runs, described, results.seed),
        groups=_groups(described),
        notes=notes,
    )


def _describe(run: Finished, own: PromptSetting) -> PromptRun:
    return PromptRun(
        **dict(describe(run, own.label)),
        prompt=own.prompt,
        options=own.options,
        normalization=run.evaluation.results.metrics.normalization,
    )


def _pairs(
    runs: Sequence[Finished], described: Sequence[PromptRun], seed: int
) -> list[PairedPrompts]:
    found = []
    for one, two in combinations(range(len(runs)), 2):
        paired = pair_rows(runs[one], runs[two])
        same = paired.same
        found.append(
            PairedPrompts(
                first=described[one].label,
                second=described[two].label,
                compared=same.size,
                alike=intervals.accuracy(same, paired.clusters, seed),
            )
        )
    return found


def _groups(described: Sequence[PromptRun]) -> list[PromptGroup]:
    by_prompt: dict[str | None, list[float]] = {}
    for one in described:
        by_prompt.setdefault(one.prompt, []).append(one.accuracy.value)
    if len(by_prompt) < 2 or len(by_prompt) == len(described):
        return []
    return [
        PromptGroup(prompt=name, runs=len(own), accuracy=fmean(own), deviation=stdev(own))
        for name, own in by_prompt.items()
    ]
