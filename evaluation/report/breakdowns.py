"""Metrics arranged for a document: the heat map of hops and distractors, and cluster sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from evaluation.results.breakdown import RANDOM
from evaluation.results.parts import SMALL
from evaluation.results.types import ClusterSize, Estimate, Metrics, Stratum
from evaluation.results.words import natural_key
from kbprobe.document import HeatMap, Number
from kbprobe.intervals import wilson

JOINED_CLUSTERS = 20
"""Neighbouring cluster sizes are joined until a point of the curve covers this many clusters."""

ALL = "all"
"""The name of the row and the column of totals."""


def heat_map(
    table: Sequence[Stratum],
    caption: str,
    layout: Sequence[Stratum] | None = None,
    *,
    totals: bool = False,
    chance: float | None = None,
    link: Callable[[Stratum], str] | None = None,
) -> HeatMap | None:
    """Arrange accuracies by hops (rows) and by distractor family and distance (columns).

    As in WordNetQA, Figure 3. Near families are sorted by name, or by the numbers in their names
    (``5-9 years apart``), and distances in ascending order; random distractors, the easiest, come
    last and stand apart.

    Args:
        table: the accuracies.
        caption: the caption of the heat map.
        layout: what defines its rows and columns, by default the table: it gives heat maps of
            several models the same layout.
        totals: whether to add a row and a column of totals.
        chance: the accuracy of guessing, on which colours depend.
        link: returns the fragment of the page's address that a cell leads to.

    Returns:
        The heat map; None if hops and distractors do not vary.
    """
    layout = table if layout is None else layout
    if len(layout) < 2:
        return None
    heads = {_column(stratum): stratum for stratum in layout}
    columns = sorted(heads)
    levels = sorted({stratum.hops for stratum in layout}, key=_level)
    by_place = {(stratum.hops, _column(stratum)): stratum for stratum in table}
    rows = [[by_place.get((level, column)) for column in columns] for level in levels]
    cells: list[list[Number | None]] = [
        [None if stratum is None else stratum.accuracy for stratum in row] for row in rows
    ]
    counts = [[None if stratum is None else stratum.accuracy.n for stratum in row] for row in rows]
    families = [named(heads[column].family) for column in columns]
    distances = [_distance(heads[column]) for column in columns]
    apart = {families.index(RANDOM)} - {0} if RANDOM in families else set()
    names = [named(level) for level in levels]
    if totals:
        apart.add(len(columns))
        families.append(ALL)
        distances.append("")
        names.append(ALL)
        inside = [[s for s in table if s.hops == level] for level in levels]
        below = [[s for s in table if _column(s) == column] for column in columns]
        pooled = [*map(_pooled, inside)], [*map(_pooled, [*below, table])]
        for row, (share, count) in enumerate(pooled[0]):
            cells[row].append(share)
            counts[row].append(count)
        cells.append([share for share, _ in pooled[1]])
        counts.append([count for _, count in pooled[1]])
    counted = {
        (row, column): count
        for row, line in enumerate(counts)
        for column, count in enumerate(line)
        if count is not None
    }
    grouped = any(distances)
    return HeatMap(
        caption,
        "hops k",
        names,
        distances if grouped else families,
        cells,
        groups=tuple(Counter(families).items()) if grouped else (),
        lines={
            (row, column): (_counts(cells[row][column], count),)
            for (row, column), count in counted.items()
        },
        faint=frozenset(place for place, count in counted.items() if count < SMALL),
        apart=frozenset(apart),
        chance=() if chance is None else (chance,) * len(distances),
        foot=int(totals),
        links={
            (row, column): link(stratum)
            for row, line in enumerate(rows)
            for column, stratum in enumerate(line)
            if link is not None and stratum is not None
        },
    )


def _counts(number: Number | None, rows: int) -> str:
    """Return how many rows, and clusters if they are known, a cell is of: ``n 200 in 31``."""
    clusters = number.clusters if isinstance(number, Estimate) else None
    return f"n {rows:,}" if clusters in (None, rows) else f"n {rows:,} in {clusters:,} clusters"


def named(value: str | int | None) -> str:
    """Return a value of a column as a name."""
    return "not given" if value is None else str(value)


def _level(hops: int | None) -> float:
    return float("inf") if hops is None else hops


def _distance(stratum: Stratum) -> str:
    return f"k′ {stratum.distractor_hops}" if stratum.distractor_hops else ""


def _column(stratum: Stratum) -> tuple[Any, ...]:
    family, distance = stratum.family, stratum.distractor_hops
    return family is None, family == RANDOM, tuple(natural_key(family or "")), _level(distance)


def _pooled(strata: Sequence[Stratum]) -> tuple[float, int]:
    rows = sum(stratum.accuracy.n for stratum in strata)
    return sum(s.accuracy.value * s.accuracy.n for s in strata) / max(rows, 1), rows


class JoinedSizes(NamedTuple):
    """Clusters of neighbouring sizes taken together.

    Attributes:
        label: the sizes, such as ``7`` or ``31 to 40``.
        size: the mean number of questions per cluster.
        clusters: the number of clusters.
        accuracy: the accuracy of their rows.
        strict: the share of clusters with every question right, with its Wilson interval (clusters
            are taken to be independent of each other).
        independent: the strict accuracy to expect if rows were independent.
    """

    label: str
    size: float
    clusters: int
    accuracy: float
    strict: Estimate
    independent: float


def joined_sizes(metrics: Metrics) -> list[JoinedSizes]:
    """Join neighbouring cluster sizes until each point covers enough clusters.

    The last point also takes the sizes left over.
    """
    groups: list[list[ClusterSize]] = [[]]
    for entry in sorted(metrics.cluster_sizes, key=lambda entry: entry.size):
        if _clusters(groups[-1]) >= JOINED_CLUSTERS:
            groups.append([])
        groups[-1].append(entry)
    if len(groups) > 1 and _clusters(groups[-1]) < JOINED_CLUSTERS:
        last = groups.pop()
        groups[-1] += last
    return [_joined(group) for group in groups if group]


def _clusters(group: Sequence[ClusterSize]) -> int:
    return sum(entry.clusters for entry in group)


def _joined(group: Sequence[ClusterSize]) -> JoinedSizes:
    clusters = _clusters(group)
    questions = sum(entry.clusters * entry.size for entry in group)
    strict = sum(entry.strict * entry.clusters for entry in group) / clusters
    low, high = wilson(strict, clusters)
    first, last = group[0].size, group[-1].size
    return JoinedSizes(
        label=f"{first}" if first == last else f"{first} to {last}",
        size=questions / clusters,
        clusters=clusters,
        accuracy=sum(e.accuracy * e.clusters * e.size for e in group) / questions,
        strict=Estimate(value=strict, low=low, high=high, n=clusters, method="wilson"),
        independent=sum(entry.independent * entry.clusters for entry in group) / clusters,
    )
