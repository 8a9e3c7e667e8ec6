"""Variation of accuracy and answers over several runs of one model on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import stdev
from typing import NamedTuple

import numpy as np

from evaluation.names import model_name
from evaluation.results import intervals
from evaluation.results.breakdown import cluster_codes
from evaluation.results.items import ItemAnswers
from evaluation.results.types import NOTES, Estimate
from evaluation.results.words import interval, percent
from evaluation.studies.base import Finished
from evaluation.studies.pairing import gather
from evaluation.studies.table import Column, DataTable, fields
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError


class Variation(NamedTuple):
    """What differs between the runs: see :data:`SPREAD`."""

    rows: int
    scored: int
    partly: int
    skipped: int
    runs: int
    accuracy: Estimate
    deviation: float
    lowest: float
    highest: float
    always: Estimate
    ever: Estimate
    flipped: Estimate
    consistency: Estimate


SPREAD: dict[str, Column[Variation]] = fields(
    {
        "runs": "The number of runs.",
        "rows": "Rows asked in every run.",
        "scored": "Rows scored in every run: all shares are of these.",
        "partly": "Rows scored in some runs alone.",
        "skipped": "Rows scored in no run.",
        "accuracy": "Mean accuracy over the runs. Its interval resamples clusters of rows, with "
        "these runs.",
        "deviation": "Standard deviation of accuracy over the runs (n - 1).",
        "lowest": "The least accuracy of a run.",
        "highest": "The greatest accuracy of a run.",
        "always": "Share of rows answered right in every run.",
        "ever": "Share of rows answered right in at least one run.",
        "flipped": "Share of rows whose answer (the choice, not its letter) is not the same in all "
        "runs.",
        "consistency": "Share of pairs of runs with the same answer, averaged over rows.",
    },
    {
        "accuracy": "mean accuracy",
        "deviation": "sd",
        "always": "right in all",
        "ever": "right in any",
    },
    hidden=("rows", "scored", "partly", "skipped"),
)
"""The columns of the table of variation."""


def runs_by_request(finished: Sequence[Finished]) -> list[list[Finished]]:
    """Group consecutive runs by model and probe, in the order in which a study asked for them."""

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
    asked = runs[0].predictions.num_rows
    gathered = gather(runs)
    answers = gathered.answers
    whole = answers.scored.all(axis=1)
    if not whole.any():
        model = model_name(runs[0].results.model.id)
        raise UsageError(
            f"{model}: no row of {runs[0].results.probe.name} was scored in all "
            f"{len(runs)} runs, so that there is nothing to compare. Why rows were set aside is "
            "in the column set_aside of predictions.parquet"
        )
    kept = ItemAnswers(*(part[whole] for part in answers))
    cluster = cluster_codes(gathered.items)[whole]
    right, count = kept.right, len(runs)
    hits: Ints = right.sum(axis=1)
    accuracies = right.mean(axis=0).tolist()

    def share(times: Ints, tries: int) -> Estimate:
        return intervals.repeated_share(times, np.full(len(cluster), tries), cluster, seed)

    return Variation(
        rows=asked,
        scored=int(whole.sum()),
        partly=int((~whole).sum()),
        skipped=asked - whole.size,
        runs=count,
        accuracy=share(hits, count),
        deviation=stdev(accuracies),
        lowest=min(accuracies),
        highest=max(accuracies),
        always=intervals.accuracy(hits == count, cluster, seed),
        ever=intervals.accuracy(hits > 0, cluster, seed),
        flipped=intervals.accuracy((kept.chosen != kept.chosen[:, :1]).any(axis=1), cluster, seed),
        consistency=share(agreeing_pairs(kept.chosen), count * (count - 1) // 2),
    )


def agreeing_pairs(chosen: Ints) -> Ints:
    """Count the pairs of runs with the same answer to each row, shape [rows].

    >>> agreeing_pairs(np.array([[0, 0, 0], [0, 1, 0], [0, 1, 2]])).tolist()
    [3, 1, 0]
    """
    counts = np.stack([(chosen == choice).sum(axis=1) for choice in range(int(chosen.max()) + 1)])
    pairs: Ints = (counts * (counts - 1) // 2).sum(axis=0)
    return pairs


def spread_table(
    variation: Variation, further: Mapping[str, Column[Variation]] | None = None
) -> DataTable[Variation]:
    """Return the table of how accuracy and answers vary, with columns of the study's own."""
    caption = "Accuracy and answers over the runs, with 95% intervals"
    return DataTable("spread", [variation], {**SPREAD, **(further or {})}, caption)


def spread_sentences(variation: Variation, over: str, each: str) -> list[str]:
    """Describe how accuracy and answers vary over ``6 orders``, each of them an ``order``."""
    accuracy, flipped = variation.accuracy, variation.flipped
    return [
        f"Mean accuracy over {over}: {percent(accuracy.value)} ({interval(accuracy)}), from "
        f"{percent(variation.lowest)} to {percent(variation.highest)}, with a standard deviation "
        f"of {100 * variation.deviation:.1f} points.",
        f"The answer to {percent(flipped.value)} of the questions ({interval(flipped)}) is not the "
        f"same with every {each}; on average, two {each}s give the same answer to "
        f"{percent(variation.consistency.value)} of the questions.",
        f"Right with every {each}: {percent(variation.always.value)}; with at least one: "
        f"{percent(variation.ever.value)}.",
    ]


def left_out(variation: Variation, each: str) -> list[str]:
    """Describe the rows that the numbers leave out."""
    rows, notes = f"{variation.rows:,} rows", []
    if variation.skipped:
        notes.append(f"{variation.skipped:,} of {rows} are skipped with every {each}.")
    if variation.partly:
        notes.append(
            f"{variation.partly:,} of {rows} are skipped with some {each}s only: means, spread and "
            f"agreement are of the {variation.scored:,} rows scored with every {each}, the "
            f"accuracy of each {each} is of all that it scored."
        )
    return notes


def notes_of(runs: Sequence[Finished], each: str) -> list[str]:
    """Return the notes of all runs in words, with the largest count if counts differ."""
    notes = [run.results.scoring.notes for run in runs]
    notes_on_rows = []
    for name in sorted({name for counted in notes for name in counted}):
        counts = {counted.get(name, 0) for counted in notes}
        most = "" if len(counts) == 1 else f" (with the {each} that has the most)"
        notes_on_rows.append(f"{max(counts):,} {NOTES.get(name, name)}{most}.")
    return notes_on_rows
