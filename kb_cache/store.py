"""The cache folder: where it is, who may write, and how nothing half written is ever left.

Layout: ``CACHE/snapshots/NAME/`` holds a snapshot, ``CACHE/locks/NAME.lock`` its lock. A folder
is written aside, as ``.NAME.new-*``, and renamed into place; one that it replaces waits as
``.NAME.old-*`` until then. Whoever holds the lock may treat such folders as the remains of a
writer that died, since a living writer would hold the lock.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb_cache.errors import CacheError, UsageError

CACHE_VARIABLE = "KBPROBE_CACHE"
#: Seconds to wait for another process that writes the same entry.
LOCK_TIMEOUT = 600.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_REMAINS = re.compile(r"\.(?P<name>.+)\.(?P<what>new|old)-[0-9a-f]{16}")


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

    An entry that a dying writer had moved out of the way is put back first.
    """
    root = snapshots_dir()
    try:
        folders = [folder for folder in root.iterdir() if folder.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unusable(root, error) from error
    names = {folder.name for folder in folders if _NAME.fullmatch(folder.name)}
    stranded = {
        match["name"]
        for folder in folders
        if (match := _REMAINS.fullmatch(folder.name)) and match["what"] == "old"
    } - names
    for name in stranded:
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
def entry_lock(name: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the lock of a cache entry; the system frees it when the process dies. Not reentrant.

    Raises:
        CacheError: the folder cannot be written, or another process held the lock for longer
            than ``timeout`` seconds.
    """
    import filelock

    folder = entry_path(name).parent.parent / "locks"
    path = folder / f"{name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        lock.acquire(timeout=timeout)
    except filelock.Timeout as error:
        raise CacheError(
            f"another process has been writing {name} for {timeout:.0f} s (it holds {path}); "
            "wait for it to end, or end it"
        ) from error
    except OSError as error:
        raise unusable(folder, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Write a folder aside, then rename it into place.

    Yields an empty folder beside ``target``. When the block ends well its files are flushed to
    the disk and it becomes ``target``; when it raises (KeyboardInterrupt included) it is removed
    and ``target`` stays as it was. If the process is killed between the two renames of a
    replacement, the old folder still lies beside, and `recover` puts it back: at no moment does
    the disk hold neither. Two writers to one target must take turns (see `entry_lock`).

    Raises:
        OSError: the parent folder cannot be written, the disk is full, or ``target`` exists and
            is no folder.
    """
    recover(target)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "exists and is not a folder", str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _sibling(target, "new")
    try:
        aside.mkdir()
        yield aside
        _flush(aside)
        _swap(aside, target)
    except BaseException:
        remove_tree(aside)
        raise


def recover(target: Path) -> bool:
    """Put back the folder that a dying `replacing` had moved aside; tell whether there was one."""
    if target.exists():
        return False
    old = sorted(remains(target, "old"), key=lambda folder: folder.stat().st_mtime)
    if not old:
        return False
    old[-1].rename(target)
    return True


def remains(target: Path, what: str = "new|old") -> list[Path]:
    """The folders that dead writers of ``target`` left beside it."""
    if not target.parent.is_dir():
        return []
    return [
        folder
        for folder in target.parent.iterdir()
        if (match := _REMAINS.fullmatch(folder.name))
        and match["name"] == target.name
        and match["what"] in what.split("|")
    ]


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
            if match := _REMAINS.fullmatch(folder.name):
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
        doomed = [target, *remains(target)] if target.exists() else remains(target)
        for folder in doomed:
            try:
                # Renamed first: what is being removed must not pass for an entry.
                gone = _sibling(target, "new")
                folder.rename(gone)
                shutil.rmtree(gone)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise unusable(folder, error) from error
    return True


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours as far as possible; a failure leaves remains, which are harmless."""
    shutil.rmtree(folder, ignore_errors=True)


def _sibling(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{what}-{secrets.token_hex(8)}")


def _swap(aside: Path, target: Path) -> None:
    if not target.exists():
        aside.rename(target)
        _flush_folder(target.parent)
        return
    old = _sibling(target, "old")
    target.rename(old)
    try:
        aside.rename(target)
    except BaseException:
        old.rename(target)
        raise
    _flush_folder(target.parent)
    remove_tree(old)


def _flush(folder: Path) -> None:
    """Force files and folders to the disk, so that the rename cannot overtake their content."""
    for parent, _, files in os.walk(folder):
        for name in files:
            descriptor = os.open(os.path.join(parent, name), os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _flush_folder(Path(parent))


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":  # other systems cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
