"""Output folders of commands: whether the output exists already, and locks against other writers.

A command holds a lock on its target folder from when it first looks at the folder until the output
is written. The lock is a hidden file next to the target, which is removed when the command ends.
Unlike a lock in the cache, it needs no writable cache, and it works for processes with different
caches. A command that had to wait then finds the other's output, and decides by its record.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import (
    UNWRITABLE,
    claim,
    expecting,
    file_sha256,
    find_damage,
    refuse_bytes,
    refuse_working_directory,
    replacing_folder,
    settle,
    state_of,
)
from kbprobe.files.locks import short_name
from kbprobe.parsing import read_record

OTHER_FOLDER = "Choose another folder with -o."
_MOST = 3
"""Maximum number of differences named in a message."""


class _ListedFile(BaseModel, defer_build=True):
    path: str
    sha256: str


class _Files(BaseModel, defer_build=True):
    """The files that a record in an output folder lists."""

    files: dict[str, Any] | list[_ListedFile]


class _OutputRecord(_Files):
    """The fields that a record in an output folder needs for comparison with a request."""

    request: dict[str, Any]
    files: dict[str, str] | list[_ListedFile]

    def checksums(self) -> dict[str, tuple[str, int | None]]:
        """Return the checksums in the form that `find_damage` expects."""
        named = self.files
        if not isinstance(named, dict):
            named = {file.path: file.sha256 for file in named}
        return {path: (sha256, None) for path, sha256 in named.items()}


def already_there(
    folder: Path,
    record: str,
    request: Mapping[str, Any],
    *,
    kind: str,
    overwrite: bool,
    remedy: str = OTHER_FOLDER,
) -> bool:
    """Return whether an output folder already holds exactly what was requested, undamaged.

    Such a folder has a JSON record with ``request`` (what was requested) and ``files`` (either
    ``{path: sha256}`` or a list of objects with ``path`` and ``sha256``).

    Args:
        folder: where the output is to go; it need not exist.
        record: the record's file name.
        request: the current request, as plain data.
        kind: what the folder should hold, with its article ("a probe"), for messages.
        overwrite: replace what is there.
        remedy: the sentence that says how to choose another place.

    Raises:
        UsageError: the folder holds something else and ``overwrite`` is not set, or it holds
            files without such a record, which are never overwritten.
    """
    refuse_file(folder, remedy)
    instead = f"{remedy[:1].lower()}{remedy[1:]}"
    if not folder.exists() or not any(folder.iterdir()):
        refuse_working_directory(folder)
        return False
    try:
        held = read_record(folder / record, _OutputRecord)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds files that are not {kind} of kbprobe (no {record} of its own); it is "
            f"left alone. {remedy}"
        ) from None
    except UsageError as error:
        raise UsageError(
            f"{folder} holds files that are not {kind} of kbprobe ({error}); it is left alone. "
            f"Remove it if you do not need it, or {instead}"
        ) from None
    if overwrite:
        refuse_working_directory(folder)
        return False
    same = held.request == json.loads(json.dumps(request))
    damage = find_damage(folder, held.checksums()) if same else []
    if same and not damage:
        return True
    if same:
        what = f"is damaged ({damage[0]})"
    else:
        other = differences(held.request, request)
        what = f"holds {kind} built from another request" + f" ({other})" * bool(other)
    raise UsageError(f"{folder} {what}. Replace it with --overwrite, or {instead}")


def own_files(folder: Path, record: str, *others: str) -> set[str]:
    """Return the files that rewriting a folder replaces: those that its record lists.

    Args:
        folder: where the output is to go; it need not exist.
        record: the record's file name.
        *others: other files written by kbprobe that the record does not list.

    Raises:
        UsageError: the record is damaged.
    """
    try:
        listed = read_record(folder / record, _Files, "Move it elsewhere.").files
    except (FileNotFoundError, NotADirectoryError):
        return set()
    paths = listed if isinstance(listed, dict) else [file.path for file in listed]
    return {record, *others, *paths}


def write_recorded(
    folder: Path,
    record: str,
    request: Mapping[str, Any],
    write: Callable[[Path], Mapping[str, Any] | None],
    *,
    kind: str,
    overwrite: bool,
    remedy: str = OTHER_FOLDER,
    before: Callable[[], None] = lambda: None,
    private: Collection[str] = (),
) -> bool:
    """Write an output folder with its record atomically, unless it is already there.

    ``write`` fills an empty folder, and returns what else the record says; ``before`` refuses a
    folder that must not be replaced; ``private`` names files that only their owner may read. Other
    arguments, and errors, are those of `taking` and `already_there`.

    Returns:
        Whether the folder held exactly this already.
    """
    with taking(folder, overwrite, remedy=remedy) as overwrite:
        before()
        asked: dict[str, Any] = {"kind": kind, "overwrite": overwrite, "remedy": remedy}
        if already_there(folder, record, request, **asked):
            return True
        with replacing_folder(folder, own_files(folder, record)) as aside:
            more = write(aside) or {}
            paths = sorted(path for path in aside.rglob("*") if path.is_file())
            files = {path.relative_to(aside).as_posix(): file_sha256(path) for path in paths}
            content = {"request": request, **more, "files": files}
            text = json.dumps(content, indent=2, ensure_ascii=False)
            (aside / record).write_text(f"{text}\n", encoding="utf-8", newline="\n")
            for path in (aside / name for name in private if (aside / name).exists()):
                path.chmod(0o600)
    return False


def differences(there: Any, here: Mapping[str, Any]) -> str:
    """Return the settings in which two requests differ, with their values if these are short.

    >>> differences({"seed": 0, "options": {"limit": 9}}, {"seed": 1, "options": {"limit": 9}})
    'seed is 0 there and 1 here'
    """
    old, new = (
        _settings(request if isinstance(request, dict) else {}) for request in (there, here)
    )
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        texts = [json.dumps(side.get(name)) for side in (old, new)]
        if texts[0] == texts[1]:
            continue
        short = max(map(len, texts)) <= 40
        found.append(
            f"{name} is {texts[0]} there and {texts[1]} here" if short else f"another {name}"
        )
    more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return ", ".join([*found[:_MOST], *more])


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request by name, including those of its parts."""
    found: dict[str, Any] = {}
    for name, value in request.items():
        found |= value if isinstance(value, dict) else {name: value}
    return found


def refuse_file(folder: Path, remedy: str = OTHER_FOLDER) -> None:
    """Refuse a folder that cannot be created because a file has its name or a parent's.

    Raises:
        UsageError: there is such a file.
    """
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there} exists and is not a folder. {remedy}")


def refuse_outside(path: Path, owner: str) -> None:
    """Refuse an output outside of the working directory that a file declares, not the user.

    Args:
        path: where the output would go.
        owner: the file and its key, for the message.

    Raises:
        UsageError: it is outside.
    """
    if not Path(os.path.abspath(path)).is_relative_to(Path.cwd()):
        raise UsageError(
            f"{owner}: {path} is outside of the working directory, where a file may not have "
            f"things written. To write there, give it on the command line: -o {path}"
        )


@contextmanager
def taking(
    target: Path, overwrite: bool = False, *, remedy: str = OTHER_FOLDER, room: str = ""
) -> Iterator[bool]:
    """Hold a folder that is to be written for the duration of the block. Not reentrant.

    If another process holds it, this one waits, and then finds its output there. Leftovers of dead
    writers next to it are removed. Within the block, `replacing_folder` refuses to replace a folder
    that has changed since the block began, and disk errors say what to do about them.

    Args:
        target: the folder; it need not exist, and its parent is created.
        overwrite: whether the user asked to replace what is there.
        remedy: the sentence that says how to choose another place.
        room: the same for a disk that cannot be written, if another folder on it would not help.

    Yields:
        Whether to overwrite; False if the folder changed while this process waited.

    Raises:
        UsageError: this thread holds it already, or its parent folder cannot be written; where the
            target is there already that is found out when it is written.
        KbprobeError: there is no room on the disk.
    """
    place = Path(os.path.realpath(target))
    refuse_bytes(place, remedy)
    refuse_file(place, remedy)
    with ExitStack() as stack:
        waited = False
        try:
            before = state_of(place)
            waited = stack.enter_context(claim(place, remedy))
            settle(place)
        except OSError as error:
            if error.errno not in (*UNWRITABLE, errno.ENOENT):
                raise
            if overwrite or not place.is_dir() or not any(place.iterdir()):
                raise unwritable(target, error, room or remedy) from error
        now = state_of(place)
        stack.enter_context(expecting(target, place, now))
        stack.enter_context(_told(target, place, room or remedy))
        yield overwrite and not (waited and now != before)


def unwritable(target: Path, error: OSError, remedy: str = OTHER_FOLDER) -> KbprobeError:
    """Return the error for a folder that cannot be written."""
    kind = UsageError if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else KbprobeError
    return kind(f"{target} cannot be written: {error.strerror or error}. {remedy}")


@contextmanager
def _told(target: Path, place: Path, remedy: str) -> Iterator[None]:
    """Make disk errors name the folder that they concern."""
    try:
        yield
    except OSError as error:
        # If copying fails, the destination is the second file name.
        named = error.filename2 or error.filename
        if error.errno in UNWRITABLE and _is_within(named, place):
            raise unwritable(target, error, remedy) from error
        raise


def _is_within(named: object, place: Path) -> bool:
    """Return whether an error's file belongs to a target; True if the error names no file."""
    if not isinstance(named, str | bytes):
        return True
    path = Path(os.path.realpath(os.fsdecode(named)))
    if path == place.parent or not path.is_relative_to(place.parent):
        return path == place.parent
    first = path.relative_to(place.parent).parts[0]
    return first == place.name or first.startswith(f".{short_name(place.name)}.")
