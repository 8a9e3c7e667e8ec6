"""Locks that the system releases when their holder ends, and names of hidden files.

The lock of a target is a hidden file next to it, locked with the package filelock. That package
leaves its files behind on POSIX systems; these are next to users' files, so they are removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kbprobe.errors import CacheError
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_ENDING = ".kbprobe-lock"
LOCK_TIMEOUT = 600.0
"""Seconds to wait for another process that holds a lock."""
PAUSE = 0.05
"""Seconds between two attempts."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors raised by file systems without locks."""
_VANISHED = 20
"""Attempts to lock a file in a folder that other processes remove."""


def try_lock(path: Path) -> BaseFileLock | None:
    """Create and lock a file; None where another process or thread holds it.

    Raises:
        OSError: it cannot be created, it is no file, or the file system has no locks.
    """
    from filelock import FileLock, Timeout  # slow to import

    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            problem = "a folder, link or pipe is where a lock file belongs; remove or rename it"
            raise OSError(errno.EEXIST, problem, str(path))
    lock = FileLock(os.path.abspath(path), timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    except OSError as error:
        if error.errno in NO_LOCKS:
            path.unlink(missing_ok=True)
        raise
    return lock


def unlock(lock: BaseFileLock) -> None:
    """Release a lock and remove its file; a process that waits notices and creates another."""
    if os.name == "posix" and lock.is_locked:  # a forked process has only a copy of it
        with suppress(OSError):
            os.unlink(lock.lock_file)
    lock.release()


def wait_for_lock(path: Path, waiting: Callable[[], object]) -> BaseFileLock | None:
    """Create and lock a file as soon as nobody else holds it.

    Args:
        path: the lock file; its folder is created.
        waiting: called after each attempt that failed because somebody holds it; it may raise.

    Returns:
        The lock; None if the file system has none, which a warning says.

    Raises:
        OSError: it cannot be created, or is no file.
    """
    vanished = 0
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if (lock := try_lock(path)) is not None:
                return lock
            waiting()
        except FileNotFoundError:
            # The folder was removed by the process that created it, or can never exist (in /proc).
            vanished += 1
            if vanished == _VANISHED:
                raise
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            _warn_without_locks(path.parent)
            return None
        time.sleep(PAUSE)


@cache
def _warn_without_locks(folder: Path) -> None:
    """Warn once about a folder in which nothing keeps two commands apart."""
    echo(
        f"The file system of {folder} has no locks: do not run two commands at once that write "
        "there. What an interrupted command leaves there (hidden, .NAME.new-kbprobe-*) has to be "
        "removed by hand.",
        err=True,
    )


@contextmanager
def locked(
    path: Path,
    doing: str,
    timeout: float = LOCK_TIMEOUT,
    advance: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Hold a lock file. Not reentrant.

    Args:
        path: the lock file; its folder is created.
        doing: what the holder does ("writing x"), for the message.
        timeout: seconds to wait for a holder that does not advance.
        advance: a value that changes as the holder's work progresses, such as the size of its
            output.

    Raises:
        CacheError: another process held the lock for longer than ``timeout`` without advancing.
        OSError: the lock file cannot be written.
    """
    end, reached = time.monotonic() + timeout, advance()

    def waiting() -> None:
        nonlocal end, reached
        if (now := advance()) != reached:
            end, reached = time.monotonic() + timeout, now
        if time.monotonic() > end:
            raise CacheError(
                f"another process has been {doing} for {timeout:.0f} s (it holds {path}); wait "
                "for it to finish, or stop it"
            )

    lock = wait_for_lock(path, waiting)
    try:
        yield
    finally:
        if lock is not None:
            unlock(lock)


REMAINS = re.compile(
    r"\.(?P<name>.+)\.(?P<what>new|old)-kbprobe-[0-9a-f]{8}",
    re.DOTALL,
)
"""The pattern of hidden names of what is being written (new) or was replaced (old)."""
_LOCK = re.compile(rf"\.(?P<name>.+){re.escape(LOCK_ENDING)}", re.DOTALL)
_LONGEST_NAME = 180
"""Bytes of a target's name that hidden names repeat; file systems allow 255 bytes in all."""


def hidden_sibling(target: Path, what: str) -> Path:
    """Return an unused hidden path beside ``target``."""
    return target.with_name(f".{short_name(target.name)}.{what}-kbprobe-{secrets.token_hex(4)}")


def lock_path(target: Path) -> Path:
    """Return the lock file of a file or folder, whose path is resolved."""
    return target.with_name(f".{short_name(target.name)}{LOCK_ENDING}")


def writers_name(name: str) -> str | None:
    """Return the (shortened) name of the target that a hidden name belongs to; None for others."""
    match = REMAINS.fullmatch(name) or _LOCK.fullmatch(name)
    return match["name"] if match else None


def short_name(name: str) -> str:
    """Return a file name shortened to leave room for additions; short ones are unchanged."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME:
        return name
    kept = name
    while len(os.fsencode(kept)) > _LONGEST_NAME - 17:
        kept = kept[:-1]  # characters, since a part of one is no UTF-8
    return f"{kept}-{hashlib.sha256(encoded).hexdigest()[:16]}"


def is_shortened(name: str) -> bool:
    """Return whether `short_name` has shortened the name that it returned."""
    # A character has up to 4 bytes, and none is cut.
    length = len(os.fsencode(name))
    return _LONGEST_NAME - 3 <= length <= _LONGEST_NAME and bool(re.search("-[0-9a-f]{16}$", name))
