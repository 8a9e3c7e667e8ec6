"""The cache folder: where it is, its locks, and how nothing half written is ever left.

Layout: ``CACHE/snapshots/NAME/`` holds a snapshot, ``CACHE/locks/NAME.lock`` its lock. A folder
is written aside, as ``.NAME.new-*``, and renamed into place; one that it replaces waits as
``.NAME.old-*`` until then. A process that holds the lock may treat such folders as left by a
dead writer, since a living writer would hold the lock.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kbprobe.errors import CacheError, UsageError
from kbprobe.files import LOCK_TIMEOUT as LOCK_TIMEOUT
from kbprobe.files import REMAINS, locked, recover, remains, remove_tree, sibling

CACHE_VARIABLE = "KBPROBE_CACHE"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def cache_dir() -> Path:
    """The cache folder (which need not exist): ``$KBPROBE_CACHE``, or the platform's own place."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("kbprobe"))


def snapshots_dir() -> Path:
    """The folder of all cached snapshots (which need not exist)."""
    return cache_dir() / "snapshots"


def entry_path(name: str) -> Path:
    """The folder of a cached snapshot (which need not exist).

    Raises:
        UsageError: the name cannot be a file name on every system.
    """
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            f"{name!r} cannot name a cache entry: use letters, digits, '.', '_', '+' and '-', "
            "a letter or digit first"
        )
    return snapshots_dir() / name


def entry_names() -> list[str]:
    """The names of the cached snapshots, half-written ones left out, sorted.

    An entry that a writer had moved aside before it died is put back first.
    """
    root = snapshots_dir()
    with usable(root):
        if not root.is_dir():
            return []
        folders = [folder for folder in root.iterdir() if folder.is_dir()]
    names = {folder.name for folder in folders if _NAME.fullmatch(folder.name)}
    for name in all_remains().keys() - names:
        if remains(root / name, "old"):
            with entry_lock(name):
                if recover(root / name):
                    names.add(name)
    return sorted(names)


def unusable(folder: Path, error: OSError) -> CacheError:
    """The error for a cache folder that cannot be read or written."""
    return CacheError(
        f"the cache folder {folder} cannot be used: {error.strerror or error}. "
        f"Set {CACHE_VARIABLE} to a folder that you can write to."
    )


@contextmanager
def usable(folder: Path, errors: type[OSError] = OSError) -> Iterator[None]:
    """Report the operating system's errors of the block as a `CacheError`."""
    try:
        yield
    except errors as error:
        raise unusable(folder, error) from error


@contextmanager
def entry_lock(name: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the lock of a cache entry; the system frees it when the process dies. Not reentrant.

    Raises:
        CacheError: the folder cannot be written, or another process held the lock for longer
            than ``timeout`` seconds.
    """
    folder = entry_path(name).parent.parent / "locks"
    # The stack keeps errors of the caller's own block apart from those of the lock.
    with ExitStack() as held:
        with usable(folder):
            held.enter_context(locked(folder / f"{name}.lock", f"writing {name}", timeout))
        yield


def sweep(name: str) -> None:
    """Put back or remove what dead writers of an entry left; its lock must be held."""
    target = entry_path(name)
    recover(target)
    for folder in remains(target):
        remove_tree(folder)


def all_remains() -> dict[str, list[Path]]:
    """What dead or living writers have beside the cache's entries, by entry name."""
    found: dict[str, list[Path]] = {}
    root = snapshots_dir()
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            if match := REMAINS.fullmatch(folder.name):
                found.setdefault(match["name"], []).append(folder)
    return found


def remove_entry(name: str) -> bool:
    """Remove a cached snapshot and what dead writers left of it; tell whether there was any.

    Raises:
        CacheError: it cannot be removed.
    """
    target = entry_path(name)
    if not target.exists() and not remains(target):
        return False
    with entry_lock(name):
        for folder in (target, *remains(target)):
            # Renamed first: what is being removed must not pass for an entry.
            gone = sibling(target, "new")
            with usable(folder), suppress(FileNotFoundError):
                folder.rename(gone)
                shutil.rmtree(gone)
    return True
