"""Rows that two runs share, side by side, and the numbers that compare the runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results import intervals
from evaluation.results.significance import mcnemar, swap_clusters
from evaluation.results.types import Estimate
from evaluation.studies.base import Finished
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


class PairedRows(NamedTuple):
    """The rows that both runs scored, side by side, and how many were left out.

    Attributes:
        first, second: predictions of the two runs, row by row of the same items.
        set_aside: items asked of both, and not scored by one or both.
        only_first, only_second: items that only one run was asked.
    """

    first: pa.Table
    second: pa.Table
    set_aside: int
    only_first: int
    only_second: int

    @property
    def right(self) -> tuple[Bools, Bools]:
        """Whether each run gets each row right."""
        return tuple(column(t, "correct").astype(np.bool_) for t in (self.first, self.second))  # type: ignore[return-value]

    @property
    def clusters(self) -> Ints:
        """The number of each row's cluster."""
        return to_numpy(single_chunk(self.first["cluster"]).dictionary_encode().indices)


class PairedAccuracies(NamedTuple):
    """Two runs' accuracies on the same rows.

    Attributes:
        first, second: the accuracies.
        difference: second less first, in percentage points.
        only_first, only_second: rows that one run alone gets right.
        mcnemar_p: exact McNemar test, two-sided: takes rows to be independent.
        p_value: exact randomisation test, two-sided: the runs swapped in whole clusters.
    """

    first: Estimate
    second: Estimate
    difference: Estimate
    only_first: int
    only_second: int
    mcnemar_p: float
    p_value: float


def paired_accuracies(paired: PairedRows, seed: int) -> PairedAccuracies:
    """Compare two runs on the rows that both scored; ``seed`` is of the bootstrap."""
    (right, also_right), cluster = paired.right, paired.clusters
    only_first, only_second = int((right & ~also_right).sum()), int((also_right & ~right).sum())
    gains = also_right.astype(np.int64) - right
    return PairedAccuracies(
        intervals.accuracy(right, cluster, seed),
        intervals.accuracy(also_right, cluster, seed),
        intervals.paired_difference(right, also_right, cluster, seed),
        only_first,
        only_second,
        mcnemar(only_first, only_second),
        swap_clusters(np.bincount(cluster, weights=gains).astype(np.int64)),
    )


def pair_rows(one: Finished, two: Finished, *, partial: bool = False) -> PairedRows:
    """Pair the rows of two runs on one probe: as they stand, or by their ids.

    Args:
        one: a run.
        two: another run.
        partial: where runs are not on the same rows, pair the rows that they share.

    Raises:
        UsageError: runs on different probes, or on different rows while ``partial`` is off; runs
            that share no scored item, or that have other golds for the same ids.
    """
    first, second = one.evaluation.predictions, two.evaluation.predictions
    probe, other = one.evaluation.results.probe, two.evaluation.results.probe
    names = f"{one.folder} and {two.folder}"
    if probe.fingerprint == other.fingerprint:
        return _scored(first, second, first.num_rows, second.num_rows, names)
    if probe.name != other.name:
        raise UsageError(
            f"{names} are results on different probes ({probe.name}, {other.name}): their rows do "
            "not pair. Evaluate both models on one probe, or compare a probe with its controls: "
            "evaluate-probe controls PROBE --model MODEL"
        )
    first, second, shared = _shared(one, two, names)
    if not partial:
        raise UsageError(
            f"{names} are not on the same rows of {probe.name}: {shared}. Evaluate both on the "
            "same rows, or compare those they share with --partial"
        )
    if not first["answer"].equals(second["answer"]):
        raise UsageError(
            f"{names} have the same ids with other golds: they are of two builds of {probe.name}. "
            "Evaluate both on one"
        )
    return _scored(first, second, _rows(one), _rows(two), names)


def pair_configs(one: Finished, two: Finished) -> PairedRows:
    """Pair the rows of two configs of one probe by their ids, which wordings of a row share.

    Raises:
        UsageError: the configs share no scored row.
    """
    names = " and ".join(run.evaluation.results.probe.name for run in (one, two))
    first, second, _ = _shared(one, two, names)
    return _scored(first, second, _rows(one), _rows(two), names)


def _rows(run: Finished) -> int:
    return int(run.evaluation.predictions.num_rows)


def column(table: pa.Table, name: str) -> Ints:
    """Return a column of whole numbers or truth values."""
    return to_numpy(table[name].cast("int64"))


def _scored(
    first: pa.Table, second: pa.Table, asked: int, also_asked: int, names: str
) -> PairedRows:
    import pyarrow.compute as pc

    shared = first.num_rows
    scored = pc.and_(first["prediction"].is_valid(), second["prediction"].is_valid())
    first, second = first.filter(scored), second.filter(scored)
    if first.num_rows == 0:
        raise UsageError(
            f"{names}: no item was scored by both ({shared} were asked of both), so there is "
            "nothing to compare"
        )
    aside = shared - first.num_rows
    return PairedRows(first, second, aside, asked - shared, also_asked - shared)


def _shared(one: Finished, two: Finished, names: str) -> tuple[pa.Table, pa.Table, str]:
    """Return the rows that two runs share by id, in the order of the first, and how many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [run.evaluation.predictions for run in (one, two)]
    ids, other_ids = (single_chunk(table["id"]) for table in tables)
    for run, held in ((one, ids), (two, other_ids)):
        if len(held.unique()) < len(held):
            raise UsageError(
                f"{run.folder} has items with the same id: they pair only with a run on exactly "
                "the same rows. Evaluate again on the same rows"
            )
    at = pc.index_in(ids, value_set=other_ids)
    shared = len(at) - at.null_count
    counted = f"of {len(ids)} and {len(other_ids)} items they share {shared}"
    if not shared:
        raise UsageError(f"{names} have no rows in common: {counted}. Is it another split?")
    rows = pa.array(np.flatnonzero(to_numpy(at.is_valid().cast("int8"))))
    return tables[0].take(rows), tables[1].take(at.drop_null()), counted
