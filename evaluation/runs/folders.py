"""Folders of results, which are written atomically and never replace anything else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evaluation.report.page import write_page
from evaluation.results.pairs import read_pair
from evaluation.results.types import (
    FACTS,
    PREDICTIONS,
    REPORT,
    RESULTS,
    write_predictions,
    write_results,
)
from evaluation.runs.evaluation import Evaluation
from evaluation.workers import Session
from kbprobe.errors import UsageError
from kbprobe.files import refuse_working_directory, replacing_folder
from kbprobe.files.targets import taking

_FILES = (RESULTS, PREDICTIONS, REPORT)
OWN = frozenset((*_FILES, *(f"{FACTS}/{name}" for name in _FILES)))
"""The files in a folder of results that newer results replace; all others are kept."""


@contextmanager
def holding(folder: Path, session: Session) -> Iterator[bool]:
    """Hold a folder of results while it is looked at and written, by `kbprobe.files.targets`.

    Of several processes that share a run the first holds it, and all fail where it cannot.

    Yields:
        Whether to overwrite.
    """
    overwrite, workers = session.overwrite, session.workers
    with ExitStack() as held:
        with workers.together():
            if workers.leads:
                own = held.enter_context(taking(folder, overwrite))
                overwrite = own if workers.count == 1 else overwrite
        yield overwrite


def save(evaluation: Evaluation, folder: Path, report: bool = True) -> None:
    """Write ``results.json``, ``predictions.parquet`` and ``report.html``, atomically.

    Those of the facts that the rows rest on, if any, go to the folder ``facts`` within.

    Raises:
        OSError: the folder cannot be written.
    """
    with replacing_folder(folder, OWN) as aside:
        if evaluation.facts is not None:
            (aside / FACTS).mkdir()
            _write(evaluation.facts, aside / FACTS, report)
        _write(evaluation, aside, report)


def load(folder: Path) -> Evaluation:
    """Read the results of an earlier evaluation, with those of the facts where they are there.

    Raises:
        UsageError: the folder holds no results, or damaged or edited ones.
    """
    results, predictions = read_pair(folder)
    has_facts = FACTS in results.analyses and (folder / FACTS / RESULTS).is_file()
    return Evaluation(results, predictions, load(folder / FACTS) if has_facts else None)


def earlier_results(folder: Path, overwrite: bool) -> Evaluation | None:
    """Check the folder for results; return existing ones that are to be kept.

    Raises:
        UsageError: the folder cannot be written, or holds something other than results.
    """
    refuse_other_folder(folder)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        return None
    if not any(folder.iterdir()):
        refuse_working_directory(folder)
        return None
    if not overwrite:
        return load(folder)
    refuse_working_directory(folder)
    return None


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that cannot be created, or that holds something other than results.

    This is checked early rather than after hours of scoring.

    Raises:
        UsageError: it is such a folder.
    """
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise UsageError(f"{there} is a file, not a folder: choose another folder with -o")
    if there != folder:
        if not os.access(there, os.W_OK):
            raise UsageError(f"{there} cannot be written to: choose another folder with -o")
        return
    if any(folder.iterdir()) and not (folder / RESULTS).is_file():
        raise UsageError(
            f"{folder} holds what kbprobe did not write (no {RESULTS}); it is left alone. "
            "Choose another folder with -o."
        )


def _write(evaluation: Evaluation, folder: Path, report: bool) -> None:
    write_predictions(evaluation.predictions, folder)
    write_results(evaluation.results, folder)
    if report:
        facts = evaluation.facts and evaluation.facts.predictions
        write_page(folder, evaluation.results, evaluation.predictions, facts)
