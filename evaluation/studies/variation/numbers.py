"""Mean and spread of accuracy over runs on the same rows, and how often their answers agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import stdev

import numpy as np

from evaluation.results import intervals
from evaluation.results.breakdown import cluster_codes
from evaluation.results.items import Answers
from evaluation.results.words import last_name
from evaluation.studies.answers import gather
from evaluation.studies.base import Finished
from evaluation.studies.variation.types import Variant, Variation
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError


def describe(run: Finished, label: str) -> Variant:
    """Describe one of the runs."""
    metrics = run.evaluation.results.metrics
    return Variant(
        label=label,
        folder=None if run.folder is None else str(run.folder),
        accuracy=metrics.accuracy,
        scored=metrics.scored,
        set_aside=metrics.items - metrics.scored,
    )


def runs_by_request(finished: Sequence[Finished]) -> list[list[Finished]]:
    """Divide runs that follow each other by model and probe, as a study asked for them."""

    def request(run: Finished) -> tuple[str, str | int] | None:
        if run.spec is None:
            return None
        probe = run.spec.probe
        return run.spec.model, probe if isinstance(probe, str) else id(probe)

    return [list(runs) for _, runs in groupby(finished, request)]


def measure_variation(runs: Sequence[Finished], seed: int) -> Variation:
    """Measure how answers vary over two runs or more of one model on the same rows.

    Raises:
        UsageError: no row was scored in every run.
    """
    asked = runs[0].evaluation.predictions.num_rows
    gathered = gather(runs)
    answers = gathered.answers
    whole = answers.scored.all(axis=1)
    if not whole.any():
        model = last_name(runs[0].evaluation.results.model.id)
        raise UsageError(
            f"{model}: no row of {runs[0].evaluation.results.probe.name} was scored in all "
            f"{len(runs)} runs, so that there is nothing to compare. Why rows were set aside is "
            "in the column set_aside of predictions.parquet"
        )
    kept = Answers(*(part[whole] for part in answers))
    cluster = cluster_codes(gathered.items)[whole]
    right, count = kept.right, len(runs)
    hits: Ints = right.sum(axis=1)
    accuracies = right.mean(axis=0).tolist()
    tries, pairs = np.full(len(cluster), count), np.full(len(cluster), count * (count - 1) // 2)
    return Variation(
        rows=asked,
        scored=int(whole.sum()),
        partly=int((~whole).sum()),
        set_aside=asked - whole.size,
        runs=count,
        accuracy=intervals.repeated_share(hits, tries, cluster, seed),
        deviation=stdev(accuracies),
        lowest=min(accuracies),
        highest=max(accuracies),
        always=intervals.accuracy(hits == count, cluster, seed),
        ever=intervals.accuracy(hits > 0, cluster, seed),
        flipped=intervals.accuracy(flipped(kept.said), cluster, seed),
        consistency=intervals.repeated_share(agreeing_pairs(kept.said), pairs, cluster, seed),
    )


def flipped(said: Ints) -> Bools:
    """Tell the rows that did not get the same answer in all runs.

    Args:
        said: the choice of each run, shape [rows, runs].
    """
    differs: Bools = (said != said[:, :1]).any(axis=1)
    return differs


def agreeing_pairs(said: Ints) -> Ints:
    """Count the pairs of runs with the same answer to each row, shape [rows].

    >>> agreeing_pairs(np.array([[0, 0, 0], [0, 1, 0], [0, 1, 2]])).tolist()
    [3, 1, 0]
    """
    counts = np.stack([(said == choice).sum(axis=1) for choice in range(int(said.max()) + 1)])
    pairs: Ints = (counts * (counts - 1) // 2).sum(axis=0)
    return pairs
