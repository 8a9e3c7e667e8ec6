"""The data that all exports share: a probe, its tasks, what a target writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import UsageError
from kbprobe.format.dataset import CARD, DEFAULT_CONFIG
from release.cards import split_card

if TYPE_CHECKING:
    import pyarrow as pa

_RIGHTS = ("language", "license", "license_name", "license_link", "source_datasets")


def task_name(*parts: str) -> str:
    """Join words to a name that every harness accepts: letters, digits and underscores.

    >>> task_name("wordnet hypernymy", "no-language")
    'kbprobe_wordnet_hypernymy_no_language'
    """
    return re.sub(r"\W+", "_", "_".join(("kbprobe", *parts)), flags=re.ASCII).lower()


@dataclass(frozen=True, eq=False)
class Task:
    """A task of a harness: one split of one config, known to be scorable.

    Attributes:
        name: the harness's name of it.
        config: the config's name.
        split: the split's name.
        entry: the manifest's entry of its file.
        table: all its rows, with the columns of the item schema.
        examples: the manifest's entry of a split to draw solved examples from; None if there is
            no other split, or its rows are not labelled.
    """

    name: str
    config: str
    split: str
    entry: Mapping[str, Any]
    table: pa.Table
    examples: Mapping[str, Any] | None

    @property
    def setups(self) -> set[str]:
        """The setups of its rows."""
        return set(self.table["setup"].unique().to_pylist())

    @property
    def folder(self) -> str:
        """The folder of its files, with a slash; empty for the default config."""
        return "" if self.config == DEFAULT_CONFIG else f"{self.config}/"


@dataclass(frozen=True)
class ProbeSource:
    """A built probe, and the tasks to be exported from it."""

    folder: Path
    manifest: Mapping[str, Any]
    split: str
    tasks: tuple[Task, ...]

    @property
    def probe(self) -> str:
        """The probe's name."""
        return str(self.manifest["probe"])

    @property
    def rights(self) -> dict[str, Any]:
        """Language, licence and sources from the probe's card; empty without a card."""
        try:
            front, _ = split_card((self.folder / CARD).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UsageError):
            return {}
        return {key: front[key] for key in _RIGHTS if key in front}


@dataclass(frozen=True)
class Written:
    """What a target wrote, for the page of the export.

    Attributes:
        commands: what to run from within the folder.
        notes: what its numbers are, and what they can be compared with: paragraphs of Markdown.
        front: front matter, where the folder is a dataset that ``datasets`` loads.
    """

    commands: tuple[str, ...]
    notes: tuple[str, ...]
    front: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A harness, or a format.

    Attributes:
        title: its name for people.
        needs: how it is installed.
        write: writes the tasks into an empty folder, given the probe, the folder, and the id of
            the published probe whose rows to read instead of a copy (or None).
    """

    title: str
    needs: str
    write: Callable[[ProbeSource, Path, str | None], Written]
