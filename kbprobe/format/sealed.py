"""JSON files with checksums of themselves and of files next to them, so that edits are detected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kbprobe.errors import UsageError
from kbprobe.files import file_sha256, write_file
from kbprobe.parsing import read_json

CHECKSUMS = "checksums"
"""The key of the checksums: sha256 by file name; the file's own covers its other contents."""


class Sealed(BaseModel, defer_build=True):
    """Base class for records that other commands read back; their files contain checksums."""


def write_sealed(path: Path, text: str, beside: Iterable[str] = ()) -> None:
    """Write a JSON object atomically, with its checksum and those of files next to it.

    Args:
        path: the file to write.
        text: the object as JSON, indented by two.
        beside: names of files in the same folder; missing ones are skipped.

    Raises:
        OSError: it cannot be written.
    """
    files = {name: path.with_name(name) for name in beside}
    sums = {name: file_sha256(file) for name, file in files.items() if file.is_file()}
    sums[path.name] = _digest(json.loads(text))
    last = json.dumps(sums, indent=2).replace("\n", "\n  ")
    body = text.rstrip().removesuffix("}").rstrip()
    write_file(path, f'{body},\n  "{CHECKSUMS}": {last}\n}}\n'.encode(errors="backslashreplace"))


def read_sealed(path: Path, remedy: str, version: str) -> Any:
    """Verify the checksums of a JSON file, and return its other contents.

    Args:
        path: the file.
        remedy: a sentence for messages that says what to do.
        version: the version of the schema.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it cannot be read, has another version, or it or a file next to it was changed.
    """
    held = read_json(path, remedy)
    if not isinstance(held, dict):
        return held
    said = held.get("schema_version")
    if isinstance(said, str) and said != version:
        raise UsageError(
            f"{path} has schema version {said}, but this kbprobe reads {version}. {remedy}"
        )
    sums = held.pop(CHECKSUMS, None)
    if not isinstance(sums, dict) or not isinstance(sums.get(path.name), str):
        raise UsageError(f"{path} lacks its {CHECKSUMS}: kbprobe did not write it. {remedy}")
    for name, recorded in sums.items():
        if not name or Path(name).name != name:
            raise UsageError(f"{path}: {CHECKSUMS} names {name!r}, which is not a file. {remedy}")
        file = path.with_name(name)
        if name == path.name:
            found = _digest(held)
        elif file.is_file():
            found = file_sha256(file)
        else:
            continue  # Code that needs this file will report that it is missing.
        if found != recorded:
            raise UsageError(
                f"{file} was changed after kbprobe wrote it: its checksum in {path.name} does not "
                f"fit. {remedy}"
            )
    return held


def _digest(held: Any) -> str:
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()
