"""A built probe as tasks of another harness: a folder that anyone can run with one command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kbprobe.cli import kbprobe_version
from kbprobe.errors import BUILT, UsageError, path_argument
from kbprobe.files.targets import write_recorded
from kbprobe.format.setups import TEST
from kbprobe.parsing import read_record
from release.exports.source import open_source, write_readme
from release.exports.targets import find_target

RECORD = "export.json"
"""The record of what an export was made from, with the hashes of its files."""

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Export:
    """What was exported.

    Attributes:
        folder: where it is.
        tasks: the harness's name for each task -> the probe's config that it evaluates.
        rows: the number of rows of each task.
        commands: what to run from within the folder.
        found: whether the folder held exactly this already.
    """

    folder: Path
    tasks: dict[str, str]
    rows: dict[str, int]
    commands: tuple[str, ...]
    found: bool


class _Record(BaseModel):
    """The required fields of an export's record."""

    commands: tuple[str, ...]


def export(
    folder: str | Path,
    to: str,
    output: str | Path,
    *,
    split: str = TEST,
    configs: Sequence[str] = (),
    repo_id: str | None = None,
    overwrite: bool = False,
) -> Export:
    """Write a built probe as tasks of another harness, one for each config.

    Args:
        folder: the probe, as ``build-probe`` wrote it.
        to: a name of :data:`release.exports.targets.TARGETS`.
        output: the folder to write, which is created atomically.
        split: the split that the tasks evaluate.
        configs: the configs to export; if empty, all of the probe's configs.
        repo_id: ``USER/NAME``: the published probe, which tasks then read instead of a copy of
            the rows; for ``inspect``, which needs rows in its own layout, where the export itself
            will be uploaded.
        overwrite: replace another export in the folder.

    Raises:
        UsageError: an unknown target, config or split; rows that no harness can score; a folder
            that holds something else.
        KbprobeError: the probe's files are damaged.
        OSError: the folder cannot be written.
    """
    target = find_target(to)
    if repo_id is not None and not _HUB_ID.fullmatch(repo_id):
        raise UsageError(f"--repo-id {repo_id}: a dataset on the Hub is named USER/NAME.")
    built = path_argument("export(folder=...)", folder, BUILT)
    output = path_argument("export(output=...)", output, "the folder to write")
    if output.resolve().is_relative_to(built.resolve()):
        raise UsageError(f"{output} is in the probe's folder: choose one outside it (-o).")
    source = open_source(built, split, configs)
    request: dict[str, Any] = {
        "to": to,
        "probe": source.probe,
        "split": source.split,
        "repo_id": repo_id,
        "kbprobe_version": kbprobe_version(),
        "rows_sha256": {task.config: task.entry.rows_digest for task in source.tasks},
    }

    def write(aside: Path) -> dict[str, Any]:
        written = target.write(source, aside, repo_id)
        write_readme(source, aside, written, target)
        return {"commands": written.commands}

    found = write_recorded(output, RECORD, request, write, kind="an export", overwrite=overwrite)
    return Export(
        output,
        {task.name: task.config for task in source.tasks},
        {task.name: len(task.table) for task in source.tasks},
        read_record(output / RECORD, _Record, "Replace the export with --overwrite.").commands,
        found,
    )
