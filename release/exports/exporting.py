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
from kbprobe.format.setups import TEST, task_name
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


class _ExportRecord(BaseModel):
    """The required fields of an export's record."""

    commands: tuple[str, ...]


class _ExportRequest(BaseModel):
    """The fields of an export's request that its tasks are named by, and their rows."""

    to: str
    probe: str
    split: str
    name: str = ""
    rows_sha256: dict[str, str]

    @property
    def rows_of_tasks(self) -> dict[str, str]:
        """The digest of the rows of each task, by its name."""
        named = self.name or self.probe
        return {
            task_name(named, config, self.split): digest
            for config, digest in self.rows_sha256.items()
        }


class _RecordOfOther(BaseModel):
    """The record of another export."""

    request: _ExportRequest


def export(
    folder: str | Path,
    to: str,
    output: str | Path,
    *,
    split: str = TEST,
    configs: Sequence[str] = (),
    name: str = "",
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
        name: what the tasks are named by, instead of the probe's name: two exports that are run
            together need different ones.
        repo_id: ``USER/NAME``: the published probe, which tasks then read instead of a copy of
            the rows; for ``inspect``, which needs rows in its own layout, where the export itself
            will be uploaded.
        overwrite: replace another export in the folder.

    Raises:
        UsageError: an unknown target, config or split; rows that no harness can score; a folder
            that holds something else; another export beside it has tasks of the same names.
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
    source = open_source(built, split, configs, name)
    request: dict[str, Any] = {
        "to": to,
        "probe": source.probe,
        **({"name": name} if name else {}),
        "split": source.split,
        "repo_id": repo_id,
        "kbprobe_version": kbprobe_version(),
        "rows_sha256": {task.config: task.entry.rows_digest for task in source.tasks},
    }
    _refuse_same_tasks(output, _ExportRequest.model_validate(request))

    def write(aside: Path) -> dict[str, Any]:
        written = target.write(source, aside, repo_id)
        write_readme(source, aside, written, target)
        return {"commands": written.commands}

    found = write_recorded(output, RECORD, request, write, kind="an export", overwrite=overwrite)
    return Export(
        output,
        {task.name: task.config for task in source.tasks},
        {task.name: len(task.table) for task in source.tasks},
        read_record(
            output / RECORD, _ExportRecord, "Replace the export with --overwrite."
        ).commands,
        found,
    )


def _refuse_same_tasks(output: Path, request: _ExportRequest) -> None:
    """Refuse tasks whose names are those of an export beside it that asks other rows.

    A harness that reads the folder of both would run one of them under the name of the other.
    """
    own = request.rows_of_tasks
    for record in sorted(output.absolute().parent.glob(f"*/{RECORD}")):
        if record.parent.name == output.name:
            continue
        try:
            other = read_record(record, _RecordOfOther).request
        except (UsageError, OSError):
            continue
        tasks = other.rows_of_tasks if other.to == request.to else {}
        if same := [task for task in own if tasks.get(task, own[task]) != own[task]]:
            raise UsageError(
                f"{record.parent} has a task {same[0]} as well, of other rows. Give the tasks of "
                "this export another name: --name NAME"
            )
