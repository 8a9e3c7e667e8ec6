"""Files and folders that appear whole or not at all, locks, checksums, and "is it already there".

A writer fills a folder under a hidden name beside its target and renames it when it is complete.
It holds a lock inside that folder, which the system frees when the process dies: a hidden folder
whose lock is free was left by a dead writer and may be removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kbprobe.errors import CacheError, UsageError

LOCK = ".writing"
REMAINS = re.compile(r"\.(?P<name>.+)\.(?P<what>new|old)-[0-9a-f]{16}")
SETTLED = 3600.0
"""Age in seconds at which a hidden folder without a lock counts as left by a dead writer."""
LOCK_TIMEOUT = 600.0
"""Seconds to wait for another process that holds a lock."""


def file_sha256(path: Path) -> str:
    """Return the sha256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_damage(
    folder: Path, expected: Mapping[str, tuple[str, int | None]], *, full: bool = True
) -> list[str]:
    """Return a sentence for each file that is missing or differs from its record.

    ``expected`` gives sha256 and size (None if not recorded) by the path within the folder.
    Without ``full``, presence and size alone are compared.
    """
    damage = []
    for name, (sha256, size) in expected.items():
        path = folder / name
        try:
            found = path.stat().st_size
            if size not in (None, found):
                damage.append(f"{path} has {found:,} bytes instead of {size:,}")
            elif full and file_sha256(path) != sha256:
                damage.append(f"{path} is corrupt: its sha256 is not the recorded one")
        except FileNotFoundError:
            damage.append(f"{path} is missing")
        except OSError as error:
            damage.append(f"{path} cannot be read: {error.strerror or error}")
    return damage


def already_there(
    folder: Path, record: str, request: Mapping[str, Any], *, kind: str, overwrite: bool
) -> bool:
    """Tell whether an output folder already holds exactly what is asked for, undamaged.

    Such a folder has a JSON record with ``request`` (what was asked for) and ``files`` (either
    ``{path: sha256}`` or a list of objects with ``path`` and ``sha256``).

    Args:
        folder: where the output is to go; it need not exist.
        record: the record's file name.
        request: what is asked for now, as plain data.
        kind: what the folder should hold, with its article ("a probe"), for messages.
        overwrite: replace what is there.

    Raises:
        UsageError: the folder holds something else and ``overwrite`` is not set, or it holds
            files without such a record, which are never overwritten.
    """
    there = next((place for place in (folder, *folder.parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there} exists and is not a folder. Choose another with -o.")
    if there != folder or not any(folder.iterdir()):
        return False
    try:
        held = json.loads((folder / record).read_text(encoding="utf-8"))
        files = held["files"]
        if not isinstance(files, dict):
            files = {entry["path"]: entry["sha256"] for entry in files}
        same = held["request"] == json.loads(json.dumps(request))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(
            f"{folder} holds files that are not {kind} of kbprobe (no {record} of its own); it is "
            "left alone. Choose another folder with -o."
        ) from None
    if overwrite:
        return False
    recorded = {name: (sha256, None) for name, sha256 in files.items()}
    damage = find_damage(folder, recorded) if same else []
    if same and not damage:
        return True
    if same:
        what = f"is damaged ({damage[0]})"
    else:
        other = differences(held["request"], request)
        what = f"holds {kind} built from another request" + f" ({other})" * bool(other)
    raise UsageError(
        f"{folder} {what}. Replace it with --overwrite, or choose another folder with -o."
    )


def differences(there: Any, here: Mapping[str, Any], most: int = 3) -> str:
    """Say in which settings two requests differ, with their values where these are short.

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
    more = [f"and {len(found) - most} more"] if len(found) > most else []
    return ", ".join([*found[:most], *more])


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a request by name, those of its parts among them."""
    found: dict[str, Any] = {}
    for name, value in request.items():
        found |= value if isinstance(value, dict) else {name: value}
    return found


@contextmanager
def locked(path: Path, doing: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold a lock file; the system frees it when the process dies. Not reentrant.

    Its folder is made. ``doing`` says for the message what the holder does ("writing x").

    Raises:
        CacheError: another process held the lock for longer than ``timeout``.
        OSError: the lock file cannot be written.
    """
    import filelock

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout as error:
        raise CacheError(
            f"another process has been {doing} for {timeout:.0f} s (it holds {path}); wait for "
            "it to end, or end it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file as `replacing_file` does."""
    with replacing_file(target) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing_file(target: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which becomes ``target`` when the block ends well.

    Raises:
        OSError: it cannot be written, or the disk is full; an earlier file is kept.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = sibling(target, "new")
    try:
        yield aside
        _flush(aside)
        aside.replace(target)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``, which becomes ``target`` when the block ends well.

    Its files are flushed to the disk before it is renamed. When the block raises
    (KeyboardInterrupt included) the new folder is removed and ``target`` stays as it was. If the
    process is killed between the two renames of a replacement, the old folder is still there under
    a hidden name, and `recover` puts it back: at no moment does the disk hold neither. What dead
    writers of ``target`` left is removed first. Two writers to one target must take turns.

    Raises:
        OSError: the parent folder cannot be written, the disk is full, or ``target`` exists and
            is not a folder.
    """
    import filelock

    sweep(target)
    recover(target)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "exists and is not a folder", str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = sibling(target, "new")
    try:
        aside.mkdir()
        with filelock.FileLock(aside / LOCK):
            yield aside
        # Some systems keep the lock file, and refuse to rename a folder with an open one.
        (aside / LOCK).unlink(missing_ok=True)
        for parent, _, files in os.walk(aside):  # so that the rename cannot overtake the content
            for path in (*files, ""):
                _flush(Path(parent, path))
        _swap(aside, target)
    except BaseException:
        remove_tree(aside)
        raise


def sweep(target: Path) -> None:
    """Remove what dead writers of ``target`` left beside it; those of living ones stay."""
    for aside in remains(target, "new"):
        if _is_dead(aside):
            remove_tree(aside)
    # Such a folder has been replaced; where nothing has taken its place it is put back instead.
    if target.exists():
        for replaced in remains(target, "old"):
            remove_tree(replaced)


def _is_dead(aside: Path) -> bool:
    from filelock import FileLock, Timeout

    try:
        if not (aside / LOCK).exists():
            return time.time() - aside.stat().st_mtime > SETTLED
        with FileLock(aside / LOCK, timeout=0):
            return True
    except (Timeout, OSError):  # held, or renamed meanwhile
        return False


def recover(target: Path) -> bool:
    """Put back the folder that a writer moved aside before it died; tell whether there was one."""
    if target.exists():
        return False
    old = sorted(remains(target, "old"), key=lambda folder: folder.stat().st_mtime)
    if not old:
        return False
    old[-1].rename(target)
    return True


def remains(target: Path, what: str = "new|old") -> list[Path]:
    """The hidden folders beside ``target`` that its writers made."""
    if not target.parent.is_dir():
        return []
    return [
        folder
        for folder in target.parent.iterdir()
        if (match := REMAINS.fullmatch(folder.name))
        and match["name"] == target.name
        and match["what"] in what.split("|")
    ]


def remove_tree(folder: Path) -> None:
    """Remove a folder as far as possible; a failure leaves files, which are harmless."""
    shutil.rmtree(folder, ignore_errors=True)


def sibling(target: Path, what: str) -> Path:
    """Return an unused hidden path beside ``target``."""
    return target.with_name(f".{target.name}.{what}-{secrets.token_hex(8)}")


def _swap(aside: Path, target: Path) -> None:
    old = sibling(target, "old") if target.exists() else None
    if old:
        target.rename(old)
    try:
        aside.rename(target)
    except BaseException:
        if old:
            old.rename(target)
        raise
    _flush(target.parent)
    if old:
        remove_tree(old)


def _flush(path: Path) -> None:
    """Force a file or a folder to the disk."""
    folder = path.is_dir()
    if folder and os.name != "posix":  # other systems cannot open a folder
        return
    descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
