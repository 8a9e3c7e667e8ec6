"""What the overlaps show, in sentences."""

from __future__ import annotations

from evaluation.results.words import coefficient, last_name, percent
from evaluation.studies.overlap.types import Kappa, PairOverlap, ProbeOverlap


def kappa_text(kappa: Kappa | None) -> str:
    """Spell a kappa with its interval: ``0.31 [0.25, 0.37]``."""
    if kappa is None:
        return "–"
    if kappa.low is None or kappa.high is None:
        return coefficient(kappa.value)
    return f"{coefficient(kappa.value)} [{coefficient(kappa.low)}, {coefficient(kappa.high)}]"


def sentences(one: ProbeOverlap) -> list[str]:
    """Return what a probe shows: the most and the least alike, those with like errors, restarts."""
    found = []
    known = [pair for pair in one.pairs if pair.kappa is not None]
    if known:
        ranked = sorted(known, key=_kappa_of, reverse=True)
        found.append(_consistency("Most consistent: ", ranked[0]))
        if len(ranked) > 1:
            found.append(_consistency("Least consistent: ", ranked[-1]))
    alike = [pair for pair in one.pairs if _errors_alike(pair)]
    if alike:
        names = "; ".join(_errors(pair) for pair in alike[:5])
        more = f"; and {len(alike) - 5} more" if len(alike) > 5 else ""
        found.append(f"Same wrong choice more often than by chance: {names}{more}.")
    for held in one.restarts:
        kappa = "" if held.kappa is None else f", kappa {coefficient(held.kappa)}"
        found.append(
            f"{len(held.labels)} random initialisations of {last_name(held.model)}: accuracy "
            f"{percent(held.accuracy)} with a standard deviation of {100 * held.deviation:.1f} "
            f"points; they give the same answer to {percent(held.overlap)} of the rows{kappa}."
        )
    return found


def remarks(one: ProbeOverlap) -> list[str]:
    """Return what a reader must know."""
    found = []
    left = [pair for pair in one.pairs if pair.only_first or pair.only_second or pair.set_aside]
    if left:
        least = min(pair.compared for pair in left)
        found.append(
            f"{len(left)} of {len(one.pairs)} pairs are compared only on the rows that both "
            f"scored, at least {least:,}."
        )
    if all(pair.both_wrong == 0 for pair in one.pairs):
        found.append(
            "Error overlap is not shown: with two choices, two wrong answers are the same."
        )
    elif few := [pair for pair in one.pairs if 0 < pair.both_wrong < 50]:
        found.append(
            f"{len(few)} of {len(one.pairs)} pairs have fewer than 50 rows that both get wrong: "
            "look at the intervals."
        )
    return found


def _kappa_of(pair: PairOverlap) -> float:
    return 0.0 if pair.kappa is None else pair.kappa.value


def _consistency(lead: str, pair: PairOverlap) -> str:
    return (
        f"{lead}{pair.first} and {pair.second}, kappa {kappa_text(pair.kappa)}; the same answer to "
        f"{percent(pair.overlap.value)} of the rows, where {percent(pair.expected_overlap)} is "
        "expected of independent models with these accuracies."
    )


def _errors_alike(pair: PairOverlap) -> bool:
    if pair.error_overlap is None or pair.expected_error_overlap is None:
        return False
    return pair.error_overlap.low > pair.expected_error_overlap


def _errors(pair: PairOverlap) -> str:
    errors, expected = pair.error_overlap, pair.expected_error_overlap
    if errors is None or expected is None:
        raise ValueError("the pair has no row that both get wrong")
    return f"{pair.first} and {pair.second} ({percent(errors.value)}, chance {percent(expected)})"
