"""What the prompts show, in sentences."""

from __future__ import annotations

from evaluation.results.words import interval, percent, points
from evaluation.studies.prompts.types import ModelPrompts, PairedPrompts
from evaluation.studies.variation.words import spread_sentences


def sentences(one: ModelPrompts) -> list[str]:
    """Return what a model shows on a probe."""
    found = spread_sentences(one.variation, f"{len(one.runs)} prompts", "prompt")
    by_label = {run.label: run.accuracy for run in one.runs}
    best, worst, lead = by_label[one.best], by_label[one.worst], one.difference
    found.append(
        f"Best: {one.best}, {percent(best.value)} ({interval(best)}); worst: {one.worst}, "
        f"{percent(worst.value)} ({interval(worst)}). The difference is {points(lead.value)} "
        f"points ({points(lead.low)} to {points(lead.high)})."
    )
    ranked = sorted(one.pairs, key=lambda pair: pair.alike.value)
    if len(ranked) > 1:
        found.append(f"Most alike: {_alike(ranked[-1])}; least alike: {_alike(ranked[0])}.")
    found += [
        f"{group.prompt}: {percent(group.accuracy)} on average over {group.runs} draws or orders "
        f"of its examples, with a standard deviation of {100 * group.deviation:.1f} points."
        for group in one.groups
    ]
    return found


def _alike(pair: PairedPrompts) -> str:
    return f"{pair.first} and {pair.second} ({percent(pair.alike.value)} same answers)"
