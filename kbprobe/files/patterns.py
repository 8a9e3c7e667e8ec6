"""Paths that match a pattern, as `glob` finds them, in a bounded number of folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from itertools import count

from kbprobe.errors import UsageError

MAX_FOLDERS = 100_000
"""Maximum number of folders that a pattern is looked for in."""


def matching_paths(pattern: str, owner: str) -> Iterator[str]:
    """Yield the paths that match a pattern with ``*``, ``?``, ``[...]`` and ``**``.

    Below ``**``, each folder is entered once, even if several links lead to it, or a loop of links.

    Args:
        pattern: the pattern; names that begin with a dot match only where it writes the dot.
        owner: where the pattern is from, for messages.

    Raises:
        UsageError: it stands for too many folders.
    """
    drive, path = os.path.splitdrive(pattern)
    path = path.replace(os.sep, "/")
    parts = [part for part in path.split("/") if part]
    root = f"{drive}/" if path.startswith("/") else drive
    numbers = count(1)

    def look_in(folder: str, parts: Sequence[str]) -> Iterator[str]:
        if not parts:
            yield folder
            return
        if next(numbers) > MAX_FOLDERS:
            raise UsageError(
                f"{owner}: {pattern!r} stands for more than {MAX_FOLDERS:,} folders. Name the "
                "folder to look in more precisely."
            )
        first, *rest = parts
        if first != "**":
            for found in glob.iglob(os.path.join(glob.escape(folder), first)):
                yield from look_in(found, rest)
            return
        if not rest and folder:
            yield folder
        for below in _folders(folder):
            yield from look_in(below, rest or ["*"])

    return look_in(root, parts)


def _folders(root: str) -> Iterator[str]:
    """Yield a folder and those below that are not hidden, each once; links come last."""
    entered: set[tuple[int, int]] = set()
    waiting, links = [root], list[str]()
    while waiting or links:
        folder = waiting.pop() if waiting else links.pop(0)
        try:
            status = os.stat(folder or ".")
            with os.scandir(folder or ".") as entries:
                below = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError:  # not a folder, or not readable
            continue
        if (key := (status.st_dev, status.st_ino)) in entered:
            continue
        entered.add(key)
        yield folder
        for entry in below:
            if entry.name.startswith("."):
                continue
            path = os.path.join(folder, entry.name)
            if entry.is_symlink():
                links.append(path)
            elif entry.is_dir():
                waiting.append(path)
