"""Reading the results to export, and refusing those that would mislead other readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.results.types import FACTS, RESULTS, Results, read_results
from evaluation.studies.scorecard import Scorecard, read_card
from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG, task_name


@dataclass(frozen=True)
class Exported:
    """The results of a folder.

    ``published_as`` is the probe's name in a repository of several probes.
    """

    folder: Path
    results: Results

    published_as: str = DEFAULT_CONFIG

    @property
    def task(self) -> str:
        """The task's name: that which ``release-probe`` gives to the same config and split."""
        info = self.results.probe
        return task_name(info.name, split=info.split, published_as=self.published_as)


def kept_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a prediction that are exported as metadata, where they are known."""
    names = ("cluster", "concept", "hops", "distractor_family", "distractor_hops")
    return {name: row[name] for name in (*names, "pos", "template") if row[name] is not None}


def read_cards(folders: Sequence[Path]) -> dict[Path, Scorecard]:
    """Read the score cards in folders; of the results below them, only those on it are exported.

    Raises:
        UsageError: one is damaged.
    """
    return {folder: card for folder in folders if (card := read_card(folder)) is not None}


def read_runs(folders: Sequence[Path], published_as: str = DEFAULT_CONFIG) -> list[Exported]:
    """Read the results in folders and below them, those of sub-questions left out.

    ``published_as`` is the probe's name in a repository of several probes.

    Raises:
        UsageError: a folder holds none, or weights were drawn at random.
    """
    found = []
    for folder in folders:
        below = [path.parent for path in sorted(folder.rglob(RESULTS)) if path.parent.name != FACTS]
        for one in below or [folder]:
            exported = Exported(one, read_results(one), published_as)
            if exported.results.model.random_weights is not None:
                raise UsageError(
                    f"{one} holds results of random weights, which say nothing about "
                    f"{exported.results.model.id}. Name the folders to export without it."
                )
            found.append(exported)
    return found


def read_exported(folders: Sequence[Path], published_as: str = DEFAULT_CONFIG) -> list[Exported]:
    """Read results like :func:`read_runs`, of which each model has one on each task.

    Raises:
        UsageError: as there; or two results are of the same rows, model and split.
    """
    found: dict[tuple[str, str], Path] = {}
    runs = read_runs(folders, published_as)
    for one in runs:
        key = (one.results.model.id, one.task)
        if (other := found.setdefault(key, one.folder)) is not one.folder:
            raise UsageError(
                f"{other} and {one.folder} both hold results of {key[0]} on {key[1]}. Name the "
                "folder of one of them."
            )
    return runs
