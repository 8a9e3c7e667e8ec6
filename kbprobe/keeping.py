"""Safe replacement of folders: others' files and the working directory are not lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from kbprobe.errors import UsageError

_NAMED = 10
"""Most files that a message lists."""


def keep_others(target: Path, new: Path, ours: Collection[str]) -> None:
    """Put the files of a folder that are not kbprobe's into the folder that will replace it.

    They are linked, or copied where the file system has no links: the old folder stays whole.

    Args:
        target: the folder that will be replaced; it need not exist.
        new: the folder that replaces it, complete.
        ours: the files in ``target`` that are not kept, as paths within it with forward slashes.

    Raises:
        UsageError: a file that is to be kept is where a new one belongs. Nothing was changed.
        OSError: a file cannot be copied.
    """
    others = [path for path in _entries(target) if path.as_posix() not in ours]
    if taken := [path.as_posix() for path in others if _collides(target / path, new, path)]:
        raise UsageError(
            f"{target} holds files that are not kbprobe's, where new ones belong: {listed(taken)}. "
            "Move them elsewhere."
        )
    for path in others:
        (new / path).parent.mkdir(parents=True, exist_ok=True)
        _keep(target / path, new / path)


def listed(names: Collection[str]) -> str:
    """Return names for a message, with the number of those that it leaves out.

    >>> listed(["a", "b"])
    'a, b'
    """
    more = len(names) - _NAMED
    return ", ".join(list(names)[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def refuse_working_directory(folder: Path) -> None:
    """Refuse to replace a folder in which this process works: it would be left in a deleted one.

    Raises:
        UsageError: the folder is there, and is the working directory or holds it.
    """
    try:
        working = Path(os.path.realpath("."))
    except FileNotFoundError:  # it was removed before
        return
    place = Path(os.path.realpath(folder))
    if place.exists() and working.is_relative_to(place):
        raise UsageError(
            f"{folder} is the working directory, or holds it, and would be replaced as a whole. "
            "Run the command from elsewhere, or name a folder within it."
        )


def _entries(folder: Path) -> Iterator[Path]:
    """Yield the files, links and empty folders in a folder, as paths within it."""
    for parent, folders, files in os.walk(folder, onerror=_fail):
        inside = Path(parent).relative_to(folder)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (inside / name for name in sorted([*links, *files]))
        if not folders and not files and parent != str(folder):
            yield inside


def _fail(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed: what is in it would be lost."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _collides(there: Path, new: Path, path: Path) -> bool:
    """Return whether the new folder has something at the path of an entry to be kept."""
    if there.is_dir() and not there.is_symlink() and (new / path).is_dir():
        return False
    above = (new / parent for parent in path.parents)
    return os.path.lexists(new / path) or any(
        os.path.lexists(parent) and not parent.is_dir() for parent in above
    )


def _keep(there: Path, here: Path) -> None:
    if there.is_symlink():
        here.symlink_to(os.readlink(there))
    elif there.is_dir():
        here.mkdir(exist_ok=True)
    else:
        try:
            os.link(there, here)
        except OSError:  # no links on this file system, or none to files of another user
            shutil.copy2(there, here)
