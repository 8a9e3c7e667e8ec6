"""Reads what a table or a figure is made of: results in folders, under the names they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from evaluation.names import NO_NAMES, DisplayNames
from evaluation.report.suite.collect import Collection, StoredRun, collect
from evaluation.report.suite.leaderboard import Entry, Leaderboard, arrange
from evaluation.results.pairs import read_pair
from evaluation.results.similarity import measure_similarity, with_similarity
from evaluation.results.types import Similarity
from evaluation.studies.counting import group_by
from kbprobe.terminal import echo


def read_board(places: Sequence[Path], names: DisplayNames = NO_NAMES) -> Leaderboard:
    """Read all results in some folders and below them, and arrange them by model and probe.

    Folders that are left out, such as damaged results, are named on stderr. The folder of each
    result is a path from the working directory. Where results on a probe were compared with
    similarity by different encoders, all are compared with that by the encoder of kbprobe.

    Raises:
        UsageError: a folder does not exist or holds no results; or two results on a probe are
            given the same name.
        KbprobeError: none of them can be read.
    """
    every = Collection()
    for place in dict.fromkeys(places):
        found = collect(place, 0)
        every.runs += [replace(run, folder=(place / run.folder).as_posix()) for run in found.runs]
        for line in found.left_out:
            echo(f"evaluate-probe: left out: {line}", err=True)
    on_rows = group_by(every.runs, lambda run: run.probe).values()
    every.runs = [run for runs in on_rows for run in _by_one_encoder(runs)]
    return arrange(every, names)


def _by_one_encoder(runs: Sequence[StoredRun]) -> Sequence[StoredRun]:
    """Return runs on a probe, whose similarity is measured again if it is by several encoders."""
    measured = [one for run in runs if (one := run.results.metrics.similarity)]
    if len({one.encoder and one.encoder.sha256 for one in measured}) < 2:
        return runs
    return [_by_own_encoder(run) for run in runs]


def _by_own_encoder(run: StoredRun) -> StoredRun:
    """Return a run whose similarity is by the encoder that comes with kbprobe."""
    results, predictions = read_pair(Path(run.folder))
    again = measure_similarity(None, predictions, results.seed)
    metrics = with_similarity(results.metrics, again)
    return replace(run, results=results.model_copy(update={"metrics": metrics}))


def common_similarity(entries: Iterable[Entry]) -> Similarity | None:
    """Return the similarity baseline that all results on a probe share.

    Returns:
        None where it was not measured; or where it is not the same for all of them, as they are
        scored on different rows, or drew among equally similar choices by different seeds.
    """
    measured = [one for entry in entries if (one := entry.metrics.similarity)]
    shared = {(one.name, one.accuracy.value, one.accuracy.n) for one in measured}
    return measured[0] if len(shared) == 1 else None
