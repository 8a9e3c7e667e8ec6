"""What the power is, in sentences."""

from __future__ import annotations

from evaluation.results.words import percent
from evaluation.studies.power.types import PairPower, PowerSummary, ProbePower

FEW = 30


def pair_name(pair: PairPower) -> str:
    """Name two models."""
    return "assumed" if pair.first is None else f"{pair.first} and {pair.second}"


def least_text(pair: PairPower) -> str:
    """Spell the least difference that is found: ``3.1``."""
    return "–" if pair.least_difference is None else f"{pair.least_difference:.1f}"


def sentences(one: ProbePower, summary: PowerSummary) -> list[str]:
    """Answer for a probe what was asked."""
    most = max(one.pairs, key=lambda pair: pair.clusters_needed)
    least = min(pair.power for pair in one.pairs)
    whose = "two models as assumed" if most.first is None else f"{most.first} and {most.second}"
    if len(one.pairs) > 1:
        whose += ", the pair that needs most"
    return [
        f"A difference of {summary.difference:g} points is found with a chance of "
        f"{percent(summary.power)} on {most.clusters_needed:,} clusters, about "
        f"{most.rows_needed:,} rows ({whose}).",
        f"There are {one.clusters:,} clusters with {one.rows:,} rows: a chance of "
        f"{percent(least)}{' or more' if len(one.pairs) > 1 else ''}.",
    ]


def remarks(one: ProbePower) -> list[str]:
    """Return what a reader must know."""
    found = []
    if any(pair.first is None for pair in one.pairs):
        found.append(
            "Accuracy, agreement and correlation are assumed. Name the results of two models on "
            "the probe to take these from them."
        )
    if any(pair.variance == 0 for pair in one.pairs):
        found.append("Two runs have the same answers: nothing is known of how they may differ.")
    if one.clusters < FEW or any(pair.clusters_needed < FEW for pair in one.pairs):
        found.append(
            f"With fewer than {FEW} clusters the formula is rough: take more than it says."
        )
    return found
