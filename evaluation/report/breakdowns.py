"""Parts of the metrics arranged for display: the heat map, cluster sizes, breakdowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from evaluation.results.breakdown import RANDOM
from evaluation.results.types import METRIC_OF, Cell, ClusterSize, Estimate, Group, Metrics
from evaluation.results.words import natural_key
from kbprobe.intervals import wilson

SMALL = 50
"""Cells with fewer rows are greyed out: with 50 rows, the 95% interval is up to ±14 points."""

JOINED_CLUSTERS = 20
"""Neighbouring cluster sizes are joined until a point of the curve covers this many clusters."""

LENGTH_OF = {
    "sum": "not divided by length",
    "char": "divided by the choice's characters",
    "byte": "divided by the choice's bytes",
    "token": "divided by the choice's tokens",
}
"""What a choice's score is divided by before choices are compared, by normalization."""

_PER = {"sum": "sum", "char": "per character", "byte": "per byte", "token": "per token"}


class HeatRow(NamedTuple):
    """A row of the heat map; a cell is None if the probe has no such questions."""

    hops: str
    cells: tuple[Cell | None, ...]
    total: tuple[float, int]


class HeatMap(NamedTuple):
    """Hops x distractor family and distance.

    Attributes:
        families: the upper column heads: the name of each family and its number of columns.
        distances: the lower column heads.
        rows: one for each number of hops.
        totals: accuracy and rows of each column; ``total`` is over all cells.
        apart: the first column of random distractors, if others come before it.
    """

    families: tuple[tuple[str, int], ...]
    distances: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    totals: tuple[tuple[float, int], ...]
    total: tuple[float, int]
    apart: int | None


def heat_map(table: Sequence[Cell], layout: Sequence[Cell] | None = None) -> HeatMap | None:
    """Arrange the cells as in WordNetQA, Figure 3; None if hops and distractors do not vary.

    ``layout`` holds the cells that define the rows and columns, by default those of the table: it
    gives heat maps of several models the same layout.

    Near families are sorted by name, or by the numbers in their names (``5-9 years apart``), and
    distances in ascending order; random distractors, the easiest, come last.
    """
    layout = table if layout is None else layout
    if len(layout) < 2:
        return None

    def level(cell: Cell) -> float:
        return float("inf") if cell.hops is None else cell.hops

    heads = {_column(cell): cell for cell in layout}
    columns = sorted(heads)
    names = [_named(heads[key].family) for key in columns]
    families = Counter(names)
    at = {(level(cell), _column(cell)): cell for cell in table}
    rows = tuple(
        HeatRow(
            hops=_named(None if hops == float("inf") else int(hops)),
            cells=tuple(at.get((hops, key)) for key in columns),
            total=_pooled([cell for cell in table if level(cell) == hops]),
        )
        for hops in sorted({level(cell) for cell in layout})
    )
    return HeatMap(
        families=tuple(families.items()),
        distances=tuple(_named(heads[key].distractor_hops) for key in columns),
        rows=rows,
        totals=tuple(_pooled([cell for cell in table if _column(cell) == key]) for key in columns),
        total=_pooled(table),
        apart=names.index(RANDOM) or None if RANDOM in names else None,
    )


def in_order(table: Sequence[Cell]) -> list[Cell]:
    """Order the cells as the heat map does: by hops, then by distractors."""
    return sorted(table, key=lambda cell: (cell.hops is None, cell.hops or 0, _column(cell)))


def _column(cell: Cell) -> tuple[Any, ...]:
    family, distance = cell.family, cell.distractor_hops
    far = float("inf") if distance is None else distance
    return family is None, family == RANDOM, tuple(natural_key(family or "")), far


def _named(value: str | int | None) -> str:
    return "not given" if value is None else str(value)


def _pooled(cells: Sequence[Cell]) -> tuple[float, int]:
    rows = sum(cell.accuracy.n for cell in cells)
    return sum(cell.accuracy.value * cell.accuracy.n for cell in cells) / max(rows, 1), rows


class JoinedSizes(NamedTuple):
    """Clusters of neighbouring sizes taken together.

    Attributes:
        label: the sizes, such as ``7`` or ``31 to 40``.
        size: the mean number of questions per cluster.
        clusters: the number of clusters.
        accuracy: the accuracy of their rows.
        strict: the share of clusters with every question right; ``low`` and ``high`` are its 95%
            Wilson interval (clusters are taken to be independent of each other).
        independent: the strict accuracy to expect if rows were independent.
    """

    label: str
    size: float
    clusters: int
    accuracy: float
    strict: float
    low: float
    high: float
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
        strict=strict,
        low=low,
        high=high,
        independent=sum(entry.independent * entry.clusters for entry in group) / clusters,
    )


def normalizations(metrics: Metrics) -> list[tuple[str, Estimate]]:
    """Return each accuracy, named by what is compared; the one of the predictions is marked."""
    used = METRIC_OF[metrics.normalization]
    return [
        (f"{name}, {_PER[how]}{' (used here)' if name == used else ''}", metrics.accuracies[name])
        for how, name in METRIC_OF.items()
        if name in metrics.accuracies
    ]


def largest_first(groups: Sequence[Group]) -> list[tuple[str, Estimate]]:
    """Sort groups by number of rows, the largest first, then by name."""
    ordered = sorted(groups, key=lambda group: (-group.accuracy.n, group.name))
    return [(group.name, group.accuracy) for group in ordered]
