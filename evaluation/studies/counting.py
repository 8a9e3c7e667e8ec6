"""Tables of runs by their axes; counts of right answers by cluster, and averages with intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from evaluation.results.breakdown import bools
from evaluation.results.intervals import Resampled, TwoWayBootstrap
from evaluation.studies.base import Finished
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.errors import KbprobeError

_Key = TypeVar("_Key", bound=Hashable)
_Thing = TypeVar("_Thing")


def group_by(things: Iterable[_Thing], key: Callable[[_Thing], _Key]) -> dict[_Key, list[_Thing]]:
    """Group things by a key, such as runs by what they vary in, keeping their order.

    >>> group_by(["a", "bc", "d"], len)
    {1: ['a', 'd'], 2: ['bc']}
    """
    groups: dict[_Key, list[_Thing]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


def train_overlap(runs: Iterable[Finished]) -> int:
    """Return the number of evaluated rows from clusters in train: the maximum over all runs."""
    return max(run.results.scoring.notes.get("train_overlap", 0) for run in runs)


def bootstrap_runs(runs: Sequence[Finished], seed: int) -> TwoWayBootstrap:
    """Resample the clusters of some runs on the same probe, for averages over any of them.

    Raises:
        KbprobeError: no row of a run was scored.
    """
    counts = count_clusters(runs)
    return TwoWayBootstrap(counts.right, counts.scored, seed=seed)


def bootstrap_whole_clusters(runs: Sequence[Finished], seed: int) -> TwoWayBootstrap:
    """Resample clusters for averages of strict accuracy, the share with every question right.

    Clusters in which a run set rows aside are not counted for that run.

    Raises:
        KbprobeError: no cluster was scored completely.
    """
    counts = count_clusters(runs)
    whole = counts.scored == counts.asked
    if not whole.any(axis=0).all():
        raise KbprobeError("no cluster was scored wholly: there is no strict accuracy")
    strict = (counts.right == counts.asked) & whole
    return TwoWayBootstrap(strict.astype(np.int64), whole.astype(np.int64), seed=seed)


class DrawAverages(Generic[_Key]):
    """Mean accuracy over the runs of each group, such as seeds; all are resampled together."""

    def __init__(
        self,
        groups: Mapping[_Key, Sequence[Finished]],
        seed: int,
        resample: Callable[[Sequence[Finished], int], TwoWayBootstrap] = bootstrap_runs,
    ) -> None:
        """Resample the runs of all groups.

        Raises:
            KbprobeError: no row of a run was scored.
        """
        numbers = count()
        self._bootstrap = resample([run for runs in groups.values() for run in runs], seed)
        self._draws = {
            key: {draw: next(numbers) for draw in range(len(runs))} for key, runs in groups.items()
        }

    def each(self) -> dict[_Key, Resampled]:
        """Return the mean of each group."""
        return {key: self.weighted({key: 1.0}) for key in self._draws}

    def weighted(self, weights: Mapping[_Key, float]) -> Resampled:
        """Sum the means of groups, each with its weight; the weights sum to one."""
        return self._bootstrap.weighted(
            [(weight, self._draws[key]) for key, weight in weights.items()]
        )


class ClusterCounts(NamedTuple):
    """Rows of each cluster in each run, by cluster name; shape [clusters, runs].

    Attributes:
        right: rows answered right.
        scored: rows scored.
        asked: all rows, including those that were set aside.
    """

    right: Ints
    scored: Ints
    asked: Ints


def count_clusters(runs: Sequence[Finished]) -> ClusterCounts:
    """Count the rows of each cluster that each run got right, scored, and was asked.

    Raises:
        KbprobeError: no row of a run was scored.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [run.predictions for run in runs]
    columns = [pc.coalesce(table["cluster"], table["id"]) for table in tables]
    clusters: set[str] = set()
    for number, column in enumerate(columns):
        # Most runs are on the same rows.
        if number == 0 or not column.equals(columns[number - 1]):
            clusters.update(column.unique().to_pylist())
    names = pa.array(sorted(clusters))
    right = np.zeros((len(names), len(tables)), dtype=np.int64)
    rows, asked = np.zeros_like(right), np.zeros_like(right)
    for number, (table, column) in enumerate(zip(tables, columns, strict=True)):
        codes = to_numpy(pc.index_in(column, value_set=names))
        scored = to_numpy(table["prediction"].is_valid().cast("int8")).astype(np.int64)
        if not scored.any():
            raise KbprobeError(
                f"{runs[number].folder}: no row was scored, so that there is no accuracy"
            )
        asked[:, number] = np.bincount(codes, minlength=len(names))
        rows[:, number] = np.bincount(codes, weights=scored, minlength=len(names))
        right[:, number] = np.bincount(codes, weights=bools(table["correct"]), minlength=len(names))
    return ClusterCounts(right, rows, asked)
