"""The summary of the study: clusters needed on each probe."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pydantic import Field

from evaluation.items.sources import open_probe
from evaluation.items.types import ProbeSplit
from evaluation.results.types import RESULTS
from evaluation.studies.base import Finished, StudyRequest, finished_in
from evaluation.studies.labels import run_labels
from evaluation.studies.pairing import pair_rows, runs_by_probe
from evaluation.studies.power.numbers import (
    Spread,
    assumed_spread,
    clusters_needed,
    independent_discordance,
    least_difference,
    observed_spread,
    power_of,
    row_correlation,
)
from evaluation.studies.power.types import NAME, PairPower, PowerSummary, ProbePower
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError
from kbprobe.options import Options

Given: TypeAlias = Finished | Path
"""A finished run, or a probe that no model has to have been evaluated on."""


class PowerOptions(Options):
    """What is to be found, and what is assumed where no results are given."""

    difference: float = Field(2.0, gt=0, lt=100, description="Difference to be found, in points.")
    power: float = Field(0.8, gt=0, lt=1, description="Chance of finding it.")
    level: float = Field(0.05, gt=0, lt=1, description="Level of the two-sided test.")
    accuracy: float = Field(
        0.5, ge=0, le=1, description="Accuracy assumed of the worse model, where a probe is given."
    )
    agreement: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of rows assumed that both models get right or both wrong; none: that "
        "of independent models, which need the most clusters.",
    )
    correlation: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Correlation assumed of the differences of two rows of one cluster.",
    )
    split: str = Field("test", description="The split of a probe that is given.")
    config: str | None = Field(None, description="The config of a probe that is given.")
    partial: bool = Field(False, description="Compare the rows that each pair shares, if not all.")


def read(folder: Path) -> Given:
    """Take the finished run of a folder of results; anything else is the name of a probe."""
    return finished_in(folder) if (folder / RESULTS).is_file() else folder


def summarise(request: StudyRequest, given: Sequence[Given]) -> PowerSummary:
    """Measure the power of each two runs, or of assumed models on each probe.

    Raises:
        UsageError: no such probe, a probe with a single run, two runs that get the same rows
            right, or impossible assumptions.
    """
    options: PowerOptions = request.options
    finished = [one for one in given if isinstance(one, Finished)]
    labels = run_labels(finished)
    probes = [
        _observed([(finished[number], labels[number]) for number in numbers], options)
        for numbers in (runs_by_probe(finished, NAME) if finished else [])
    ]
    probes += [
        _assumed(open_probe(str(one), split=options.split, config=options.config), options)
        for one in given
        if isinstance(one, Path)
    ]
    return PowerSummary(
        difference=options.difference, power=options.power, level=options.level, probes=probes
    )


def _observed(runs: Sequence[tuple[Finished, str]], options: PowerOptions) -> ProbePower:
    pairs, sizes = [], []
    for (one, label), (two, other) in combinations(runs, 2):
        paired = pair_rows(one, two, partial=options.partial)
        (right, also_right), cluster = paired.right, paired.clusters
        rows, clusters = right.size, int(cluster.max()) + 1
        sizes.append((rows, clusters))
        spread = observed_spread(right, also_right, cluster)
        if not spread.null_variance:
            raise UsageError(
                f"{label} and {other} get the same {rows:,} rows right, so their differences do "
                "not vary, and no power follows from them. Give results of models that differ, or "
                "a probe, with what is assumed of two models (--accuracy, --agreement)."
            )
        numbers = _numbers(spread, rows, clusters, options)
        pairs.append(
            PairPower(
                first=label,
                second=other,
                accuracy=float(right.mean()),
                difference=100 * (float(also_right.mean()) - float(right.mean())),
                agreement=float((right == also_right).mean()),
                correlation=row_correlation(right, also_right, cluster),
                **numbers,
            )
        )
    probe = runs[0][0].evaluation.results.probe
    rows, clusters = max(sizes)
    return ProbePower(
        probe=probe.name, split=probe.split, rows=rows, clusters=clusters, pairs=pairs
    )


def _assumed(probe: ProbeSplit, options: PowerOptions) -> ProbePower:
    codes = to_numpy(single_chunk(probe.about["cluster"]).dictionary_encode().indices)
    sizes = np.bincount(codes)
    difference, accuracy = options.difference / 100, options.accuracy
    if accuracy + difference > 1:
        raise UsageError(
            f"no model is {options.difference:g} points better than one with an accuracy of "
            f"{accuracy:g}: give a lower --accuracy, at most {1 - difference:g}"
        )
    discordant = independent_discordance(accuracy, difference)
    if options.agreement is not None:
        discordant = 1 - options.agreement
        most = min(2 * accuracy + difference, 2 - 2 * accuracy - difference)
        if not difference - 1e-9 <= discordant <= most + 1e-9:
            raise UsageError(
                f"two models of the accuracies {accuracy:g} and {accuracy + difference:g} agree "
                f"on {1 - most:g} to {1 - difference:g} of the rows: give an --agreement between"
            )
    lone = bool((sizes == 1).all())
    spread = assumed_spread(sizes, discordant, difference, 0.0 if lone else options.correlation)
    pair = PairPower(
        first=None,
        second=None,
        accuracy=accuracy,
        difference=None,
        agreement=1 - discordant,
        correlation=None if lone else options.correlation,
        **_numbers(spread, int(sizes.sum()), sizes.size, options),
    )
    return ProbePower(
        probe=probe.name,
        split=probe.split,
        rows=int(sizes.sum()),
        clusters=sizes.size,
        pairs=[pair],
    )


def _numbers(spread: Spread, rows: int, clusters: int, options: PowerOptions) -> dict[str, Any]:
    difference = options.difference / 100
    needed = clusters_needed(difference, spread, options.power, options.level)
    least = least_difference(clusters, spread, options.power, options.level)
    return {
        "variance": spread.null_variance,
        "unevenness": spread.unevenness,
        "clusters_needed": needed,
        "rows_needed": round(needed * rows / clusters),
        "power": float(power_of(clusters, difference, spread, options.level)),
        "least_difference": None if least is None else 100 * least,
    }
