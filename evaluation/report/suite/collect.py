"""Reads all results below a folder, one at a time, keeping only the predictions that are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from evaluation.results.examples import by_hash
from evaluation.results.pairs import read_pair
from evaluation.results.types import RESULTS, Results, results_below
from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT = (
    "id", "question", "choices", "answer", "hops", "distractor_family", "distractor_hops",
    "concept", "cluster", "pos", "template",
)  # fmt: skip
"""Columns of the predictions that are the same for all models."""

ProbeKey: TypeAlias = tuple[str, str, str]
"""Name, split and fingerprint: results with the same key are on the same rows in the same order."""


_OWN_QUESTIONS = ("relations", "snapshots")
"""Studies that make questions of their own, whose numbers are in their summaries."""


class PickedChoices(NamedTuple):
    """What a model picked in the rows of a probe that are shown.

    Attributes:
        picked: index of the choice; -1 if the row was set aside.
        share: softmax share of this choice in percent; -1 if the row was set aside.
    """

    picked: Ints
    share: Ints


@dataclass(frozen=True)
class StoredRun:
    """The results in a folder, whose path is relative to the suite's folder."""

    folder: str
    results: Results
    answers: PickedChoices | None = field(repr=False)

    @property
    def probe(self) -> ProbeKey:
        """The key of the rows that were evaluated."""
        info = self.results.probe
        return info.name, info.split, info.fingerprint


@dataclass
class Collection:
    """All runs below a folder.

    Attributes:
        runs: the runs, in the order of their folders.
        rows: for each probe, the columns that all models share, of all rows or of a sample.
        left_out: why each of the other folders was left out, in the order of the folders.
    """

    runs: list[StoredRun] = field(default_factory=list)
    rows: dict[ProbeKey, pa.Table] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def collect(folder: Path, most: int) -> Collection:
    """Read all results below a folder.

    Results on single facts, in a subfolder of the results that rest on them, are not separate
    runs. Results that are damaged, edited, or duplicates are left out, and those of studies below
    the folder that ask questions of their own.

    Args:
        folder: the folder; it may contain results itself.
        most: the maximum number of rows to keep of each probe; if there are more, a sample is
            drawn by a hash of their ids. 0: none.

    Raises:
        UsageError: there is no such folder, or no results in it.
        KbprobeError: none of them can be read.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: name one that holds results")
    found = Collection()
    samples: dict[ProbeKey, Ints] = {}
    seen: dict[tuple[object, ...], str] = {}
    for place in results_below(folder):
        try:
            results, predictions = read_pair(place)
        except UsageError as error:
            found.left_out.append(str(error))
            continue
        if (summary := _summary_of(place, folder)) is not None:
            found.left_out.append(
                f"{place} is of the study {summary.stem}, which asks questions of its own: its "
                f"numbers are in {summary}."
            )
            continue
        name = place.relative_to(folder).as_posix()
        run = StoredRun(name, results, None)
        if (earlier := seen.setdefault(results.identity, name)) != name:
            found.left_out.append(f"{place} holds the same results as {folder / earlier}.")
            continue
        if most:
            if run.probe not in samples:
                samples[run.probe] = np.sort(by_hash(predictions["id"], most))
                found.rows[run.probe] = _shared_columns(predictions).take(samples[run.probe])
            run = StoredRun(name, results, _answers(predictions.take(samples[run.probe])))
        found.runs.append(run)
    if found.left_out and not found.runs:
        reasons = "\n".join(found.left_out)
        raise KbprobeError(f"{reasons}\n{folder} holds no results that can be read.")
    if not found.runs:
        raise UsageError(
            f"There are no results in {folder} (no {RESULTS} in it or below it). Make them with: "
            "evaluate-probe PROBE... --model MODEL"
        )
    return found


def _summary_of(place: Path, folder: Path) -> Path | None:
    """Return the summary of the study that made the questions of results; None if none did.

    The study's folder is below the folder that is read: named itself, it is read.
    """
    parents = [parent for parent in place.parents[:2] if folder in parent.parents]
    paths = (parent / f"{study}.json" for parent in parents for study in _OWN_QUESTIONS)
    return next((path for path in paths if path.is_file()), None)


def _shared_columns(predictions: pa.Table) -> pa.Table:
    premise = ["premise"] if "premise" in predictions.column_names else []
    return predictions.select([*_KEPT, *premise])


def _answers(predictions: pa.Table) -> PickedChoices:
    picked = to_numpy(predictions["prediction"].fill_null(-1)).astype(np.int64)
    shares = to_numpy(predictions["probability"].fill_null(-0.01))
    return PickedChoices(picked, np.rint(100.0 * shares).astype(np.int64))
