"""Accuracy of parts of the rows: by cell, by template, by cluster size, by confidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.results.intervals import quick_accuracy
from evaluation.results.types import Bin, Cell, ClusterSize, Group
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

BINS = 10


def table(scored: pa.Table, right: Bools, cluster: Ints) -> list[Cell]:
    """Split the rows by hops, distractor family and distance k' ([W] Figure 3).

    Args:
        scored: the scored rows of the predictions.
        right: whether each is right, shape [rows].
        cluster: shape [rows].

    Returns:
        The cells that have rows, sorted, nulls last; empty where none of the three is known.
    """
    names = ("hops", "distractor_family", "distractor_hops")
    if all(scored[name].null_count == scored.num_rows for name in names):
        return []
    return [
        Cell(
            hops=hops,
            family=family,
            distractor_hops=distance,
            accuracy=quick_accuracy(right[rows], cluster[rows]),
        )
        for (hops, family, distance), rows in _split_by(scored.select(names))
    ]


def groups(scored: pa.Table, name: str, right: Bools, cluster: Ints) -> list[Group]:
    """Split the rows by one column of strings; rows without a value are in no group."""
    return [
        Group(name=value, accuracy=quick_accuracy(right[rows], cluster[rows]))
        for (value,), rows in _split_by(scored.select([name]))
        if value
    ]


def cluster_sizes(right: Bools, cluster: Ints) -> list[ClusterSize]:
    """Split whole clusters by their size.

    Args:
        right: whether each row is right, shape [rows].
        cluster: all rows of a cluster are given, shape [rows].
    """
    _, local, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    sums = np.bincount(local, weights=right, minlength=sizes.size)
    curve = []
    for size in np.unique(sizes):
        inside = sums[sizes == size]
        accuracy = float(inside.mean() / size)
        curve.append(
            ClusterSize(
                size=int(size),
                clusters=inside.size,
                accuracy=accuracy,
                strict=float((inside == size).mean()),
                independent=float(accuracy ** int(size)),
            )
        )
    return curve


def calibration(probability: Floats, right: Bools) -> list[Bin]:
    """Compare how sure the model is with how often it is right (Guo et al., 2017, section 2).

    Ten bins of equal width over 0 to 1, each without its lower end; empty ones are left out.

    Args:
        probability: softmax share of the predicted choice, shape [rows].
        right: shape [rows].
    """
    number = np.clip(np.ceil(probability * BINS).astype(np.int64) - 1, 0, BINS - 1)
    return [
        Bin(
            low=int(index) / BINS,
            high=(int(index) + 1) / BINS,
            n=int((number == index).sum()),
            confidence=float(probability[number == index].mean()),
            accuracy=float(right[number == index].mean()),
        )
        for index in np.unique(number)
    ]


def _split_by(columns: pa.Table) -> Iterator[tuple[tuple[Any, ...], Ints]]:
    """Yield each combination of values that occurs, in order with nulls last, and its rows."""
    import pyarrow as pa

    names = columns.column_names
    numbered = columns.append_column("row", pa.array(np.arange(columns.num_rows)))
    parts = numbered.group_by(names).aggregate([("row", "list")])
    found = [tuple(part[name] for name in names) for part in parts.select(names).to_pylist()]
    rows = parts["row_list"]

    def rank(at: int) -> list[tuple[bool, Any]]:
        return [(value is None, 0 if value is None else value) for value in found[at]]

    for at in sorted(range(len(found)), key=rank):
        yield found[at], np.sort(to_numpy(rows[at].values))
