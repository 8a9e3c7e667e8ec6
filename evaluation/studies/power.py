"""Estimate how many clusters it takes to detect a difference.

Listed under: Commands to compare results.

Computed from the results of two or more models, or from a probe and assumptions about the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pydantic import Field

from evaluation.items.sources import open_probe
from evaluation.items.types import ProbeSplit
from evaluation.report import cells
from evaluation.results.pairs import (
    Spread,
    assumed_spread,
    clusters_needed,
    independent_discordance,
    least_difference,
    observed_spread,
    power_of,
    row_correlation,
)
from evaluation.results.types import RESULTS, Model
from evaluation.results.words import percent
from evaluation.studies.base import Finished, Study, StudyRequest, finished_in
from evaluation.studies.labels import Labelled, labelled_by_probe
from evaluation.studies.pairing import pair_rows
from evaluation.studies.table import (
    DataTable,
    Section,
    StudyTables,
    columns_of,
    fields,
    place_of,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError
from kbprobe.format.setups import NLI, SETUPS
from kbprobe.options import Options


class PairPower(Model):
    """Two models, finished or assumed."""

    first: str | None = Field(description="Label of one run; null where models are assumed.")
    second: str | None = Field(description="Label of the other; null as above.")
    accuracy: float = Field(description="Accuracy of the first model.")
    difference: float | None = Field(
        description="Observed difference of the runs in points, second minus first; null as above. "
        "The power is for the difference asked about, not for this one."
    )
    agreement: float = Field(description="Share of rows that both get right or both get wrong.")
    correlation: float | None = Field(
        description="Correlation of the differences of two rows of one cluster; null if no cluster "
        "has two rows."
    )
    variance: float = Field(
        description="Variance about 0 of the estimated difference of shares, times the clusters: "
        "what the test goes by."
    )
    unevenness: float = Field(description="Mean squared cluster size over the squared mean.")
    clusters_needed: int = Field(description="Clusters that show the difference at this power.")
    rows_needed: int = Field(description="Rows of so many clusters, at the mean rows of a cluster.")
    power: float = Field(description="Power with the available clusters.")
    least_difference: float | None = Field(
        description="Least difference in points that these clusters show at this power; null if "
        "they show none."
    )

    @property
    def name(self) -> str:
        """The names of both models, or a remark that they are assumed."""
        return "assumed" if self.first is None else f"{self.first} and {self.second}"


_PAIRS = columns_of(
    PairPower,
    {
        "accuracy": "first accuracy",
        "power": "power now",
        "least_difference": "least difference now",
    },
    hidden=("difference", "variance", "unevenness"),
    show={
        "first": lambda name: name or "assumed",
        "second": lambda name: name or "assumed",
        "correlation": cells.coefficient,
        "least_difference": lambda points: cells.plain(points, ".1f"),
    },
)
_PROBES = fields(
    {
        "rows": "Rows of the split, or that both runs scored.",
        "clusters": "Clusters of these rows.",
        "difference": "The difference to be found, in points.",
        "power": "The power wanted.",
        "level": "The level of the two-sided test.",
    }
)

Given: TypeAlias = Finished | Path
"""A finished run, or a probe, which need not have been evaluated."""


class PowerOptions(Options):
    """What to compute, and what to assume if no results are given."""

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


def _read(folder: Path) -> Given:
    """Read the finished run in a folder of results; anything else is taken as a probe's name."""
    return finished_in(folder) if (folder / RESULTS).is_file() else folder


def _summarise(request: StudyRequest, given: Sequence[Given]) -> StudyTables:
    """Measure the power for each pair of runs, or for assumed models on each probe."""
    options: PowerOptions = request.options
    finished = [run for run in given if isinstance(run, Finished)]
    groups = labelled_by_probe(finished, "power") if finished else []
    sections = [_observed(runs, options) for runs in groups]
    sections += [
        _assumed(_opened(probe, options), options) for probe in given if isinstance(probe, Path)
    ]
    kind = f"Power to find a difference of {options.difference:g} points"
    return summary_of("power", kind, sections, "probes")


def _opened(source: Path, options: PowerOptions) -> ProbeSplit:
    # Only clusters are used, so that it does not matter which label is which.
    any_order = SETUPS[NLI].labels
    return open_probe(
        str(source), split=options.split, config=options.config, label_names=any_order
    )


def _observed(runs: Sequence[Labelled], options: PowerOptions) -> Section:
    pairs, sizes = [], []
    for (run, label), (other_run, other) in combinations(runs, 2):
        paired = pair_rows(run, other_run, partial=options.partial)
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
        pair = PairPower(
            first=label,
            second=other,
            accuracy=float(right.mean()),
            difference=100 * (float(also_right.mean()) - float(right.mean())),
            agreement=float((right == also_right).mean()),
            correlation=row_correlation(right, also_right, cluster),
            **_numbers(spread, rows, clusters, options),
        )
        pairs.append(pair)
    rows, clusters = max(sizes)
    return _section(place_of(runs[0].run, "probe", "split"), rows, clusters, pairs, options)


def _assumed(probe: ProbeSplit, options: PowerOptions) -> Section:
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
    rows, correlation = int(sizes.sum()), None if lone else options.correlation
    pair = PairPower(
        first=None,
        second=None,
        accuracy=accuracy,
        difference=None,
        agreement=1 - discordant,
        correlation=correlation,
        **_numbers(spread, rows, sizes.size, options),
    )
    place = {"probe": probe.name, "split": probe.split}
    return _section(place, rows, sizes.size, [pair], options)


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


_FEW = 30
"""Clusters below which the formula is rough."""

_POINTS = 60


def _section(
    place: Mapping[str, str],
    rows: int,
    clusters: int,
    pairs: Sequence[PairPower],
    options: PowerOptions,
) -> Section:
    """Report the power of a probe with so many rows and clusters."""
    wanted = {name: getattr(options, name) for name in ("difference", "power", "level")}
    table = DataTable("pairs", pairs, _PAIRS)
    most = max(pairs, key=lambda pair: pair.clusters_needed)
    whose = "two models as assumed" if most.first is None else most.name
    more = ", the pair that needs most" if len(pairs) > 1 else ""
    least, or_more = min(pair.power for pair in pairs), " or more" if len(pairs) > 1 else ""
    notes = []
    if most.first is None:
        notes.append(
            "Accuracy, agreement and correlation are assumed. Name the results of two models on "
            "the probe to take these from them."
        )
    if clusters < _FEW or any(pair.clusters_needed < _FEW for pair in pairs):
        notes.append(
            f"With fewer than {_FEW} clusters the formula is rough: take more than it says."
        )
    return Section(
        place,
        [table, DataTable("probes", [{"rows": rows, "clusters": clusters, **wanted}], _PROBES)],
        [
            _curves(pairs, clusters, options),
            table.shown(
                f"Clusters needed for a difference of {options.difference:g} points at a power of "
                f"{percent(options.power)} and a level of {percent(options.level)}; power and "
                "least difference with the available clusters.",
                names=2,
            ),
        ],
        [
            f"A difference of {options.difference:g} points is found with a chance of "
            f"{percent(options.power)} on {most.clusters_needed:,} clusters, about "
            f"{most.rows_needed:,} rows ({whose}{more}).",
            f"There are {clusters:,} clusters with {rows:,} rows: a chance of "
            f"{percent(least)}{or_more}.",
        ],
        notes,
    )


def _curves(pairs: Sequence[PairPower], available: int, options: PowerOptions) -> doc.Chart:
    """Draw power over the number of clusters, for the pairs that need the most and the fewest."""
    ranked = sorted(pairs, key=lambda pair: -pair.clusters_needed)
    drawn = dict.fromkeys([0, len(ranked) - 1])
    most = 1.6 * max(available, ranked[0].clusters_needed)
    clusters = np.linspace(2, most, _POINTS)
    lines = []
    for place in drawn:
        pair = ranked[place]
        spread = Spread(pair.variance, pair.unevenness)
        power = power_of(clusters, options.difference / 100, spread, options.level)
        dash: doc.Dash = "dashed" if place else "solid"
        lines.append(doc.Line(pair.name, clusters.tolist(), power.tolist(), dash=dash, marker=""))
    there = doc.Level("available clusters", available, "reference", "solid")
    return doc.Chart(
        "Power by number of clusters.",
        [
            doc.Panel(
                lines,
                [doc.Level("power wanted", options.power, "reference")],
                f"Chance of finding a difference of {options.difference:g} points",
                from_zero=True,
            )
        ],
        doc.Across("clusters", mark=there),
    )


POWER = Study(
    name=__name__,
    help=__doc__,
    expand=None,
    summarise=_summarise,
    options=PowerOptions,
    read=_read,
)
"""The study."""
