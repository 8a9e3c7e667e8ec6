"""Folders of sheets that people fill in: what was filled in is never replaced.

Layout: ``OUT/sheets/`` is for those who fill them in; the key and the record, :data:`RECORD`, are
not, and only their owner may read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, replacing_folder
from kbprobe.format.sheet_key import KEY
from kbprobe.keeping import listed
from kbprobe.parsing import read_record
from kbprobe.targets import OTHER_FOLDER, already_there, own_files, taking

RECORD = "sheets.json"
"""What the sheets were made from, and the checksums of their files."""


class _Record(BaseModel):
    files: dict[str, str]


def write_sheet_folder(
    output: Path,
    doing: str,
    request: Mapping[str, Any],
    write: Callable[[Path], object],
    *,
    kind: str,
    overwrite: bool,
    remedy: str = OTHER_FOLDER,
) -> tuple[list[Path], bool]:
    """Write sheets into a folder, whole or not at all, unless they are there.

    Args:
        output: the folder.
        doing: what this process does, for the messages of others.
        request: everything that the sheets depend on, as plain data.
        write: writes the sheets, and the key if there is one, into an empty folder.
        kind: what is written, with its article ("a reading sheet"), for messages.
        overwrite: replace other sheets in the folder.
        remedy: the sentence that says how to choose another folder.

    Returns:
        The files, relative to ``output``, and whether they were there already.

    Raises:
        UsageError: the folder holds something else, or sheets that were filled in or edited.
        OSError: it cannot be written.
    """
    with taking(output, doing, request, overwrite, remedy=remedy) as overwrite:
        _refuse_edited(output, remedy)
        found = already_there(
            output, RECORD, request, kind=kind, overwrite=overwrite, remedy=remedy
        )
        if not found:
            with replacing_folder(output, own_files(output, RECORD)) as new:
                write(new)
                _finish(new, request)
        names = read_record(output / RECORD, _Record).files
    return sorted(map(Path, [*names, RECORD])), found


def _refuse_edited(output: Path, remedy: str) -> None:
    """Refuse a folder with sheets that are not as they were written: people worked on them."""
    try:
        files = read_record(output / RECORD, _Record).files
    except (FileNotFoundError, UsageError):
        return  # `already_there` says what is wrong.
    edited = [
        name
        for name, sha256 in files.items()
        if (output / name).is_file() and file_sha256(output / name) != sha256
    ]
    if edited:
        raise UsageError(
            f"{output} holds sheets that were filled in or edited, and are never replaced: "
            f"{listed(edited)}. Move them elsewhere. Or {remedy[:1].lower()}{remedy[1:]}"
        )


def _finish(folder: Path, request: Mapping[str, Any]) -> None:
    """Write the record; let nobody else read it or the key."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}
    text = json.dumps({"request": request, "files": files}, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    for name in (KEY, RECORD):
        if (folder / name).exists():
            (folder / name).chmod(0o600)
