"""Reads what a table or a figure is made of: results in folders, under the names they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaluation.names import NO_NAMES, DisplayNames
from evaluation.report.suite.collect import Collection, collect
from evaluation.report.suite.leaderboard import Leaderboard, arrange
from kbprobe.terminal import echo


def read_board(places: Sequence[Path], names: DisplayNames = NO_NAMES) -> Leaderboard:
    """Read all results in some folders and below them, and arrange them by model and probe.

    Folders that are left out, such as damaged results, are named on stderr. The folder of each
    result is a path from the working directory.

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
    return arrange(every, names)
