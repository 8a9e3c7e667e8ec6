"""Verdicts that depend on a choice: of the normalization, and of the wording."""

from __future__ import annotations

from evaluation.results.types import METRIC_OF, PER, Estimate, Metrics, Normalization
from evaluation.results.words import AGAINST, Place, clip, counts, interval, percent, place
from kbprobe.intervals import TAILS


def other_verdicts(metrics: Metrics) -> str:
    """Return which other normalizations give another verdict; "" if none does.

    A verdict is whether accuracy is above chance, and above similarity.

    Returns:
        Words such as ``the normalization decides: as sums (30.7%) it is above chance``.
    """
    similarity = metrics.similarity

    def verdict(how: Normalization) -> tuple[Place, Place | None]:
        name = METRIC_OF[how]
        beyond = None
        if similarity is not None and (difference := similarity.differences.get(name)):
            beyond = _sign(difference)
        return _sure(place(metrics.accuracies[name], metrics.chance)), beyond

    measured = [how for how in METRIC_OF if METRIC_OF[how] in metrics.accuracies]
    if metrics.normalization not in measured:
        return ""
    chance, beyond = verdict(metrics.normalization)
    named: dict[str, list[str]] = {}
    for how in measured:
        other, other_beyond = verdict(how)
        differing = [f"{AGAINST[other]} chance"] * (other != chance)
        if other_beyond is not None and other_beyond != beyond:
            differing.append(f"{AGAINST[other_beyond]} similarity")
        if differing:
            share = percent(metrics.accuracies[METRIC_OF[how]].value)
            named.setdefault(" and ".join(differing), []).append(f"{PER[how]} ({share})")
    each = (f"{' and '.join(ways)} it is {words}" for words, ways in named.items())
    return f"the normalization decides: {', '.join(each)}" if named else ""


def wording_remark(metrics: Metrics) -> str | None:
    """Return the wordings with the best and the worst accuracy; None if they do not differ.

    They differ if their intervals do not overlap, after these are widened for the number of
    wordings that the two were chosen from (Bonferroni).
    """
    from scipy.special import ndtri

    wordings = sorted(metrics.by_template, key=lambda group: group.accuracy.value)
    if len(wordings) < 2:
        return None
    worst, best = wordings[0], wordings[-1]
    wider = float(ndtri(1 - TAILS[0] / len(wordings)) / ndtri(TAILS[1]))
    least = best.accuracy.value - wider * (best.accuracy.value - best.accuracy.low)
    most = worst.accuracy.value + wider * (worst.accuracy.high - worst.accuracy.value)
    if least <= most:
        return None
    each = ", ".join(
        f"{percent(one.accuracy.value)} ({interval(one.accuracy)}) of {counts(one.accuracy)} with "
        f"“{clip(one.name, 60)}”"
        for one in (best, worst)
    )
    return (
        f"accuracy depends on the wording: {each}. Another wording may rank models in another "
        "order: compare them on the same one, and name it"
    )


def _sure(where: Place) -> Place:
    """Take too few rows to tell as no difference."""
    return "level" if where == "few" else where


def _sign(difference: Estimate) -> Place:
    """Return where the interval of a difference lies relative to 0."""
    if difference.low > 0:
        return "above"
    return "below" if difference.high < 0 else "level"
