"""Lock files that the system frees when their holder dies, and that are removed when it is done.

The package filelock leaves lock files behind on POSIX systems; ours are next to users' files, so
they have to be removed.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kbprobe.errors import CacheError

LOCK_TIMEOUT = 600.0
"""Seconds to wait for another process that holds a lock."""
PAUSE = 0.05
"""Seconds between two attempts."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors of file systems that have no locks."""

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30
    """The byte that is locked: beyond the content, which others read."""

    def try_lock(path: Path) -> int | None:
        """Open and lock a file; None where another process holds it, or has just removed it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_BINARY, 0o666)
        except PermissionError:  # being removed
            return None
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def unlock(path: Path, descriptor: int) -> None:
        """Remove a lock file; one that another process has opened meanwhile stays for it."""
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()

else:
    import fcntl

    def try_lock(path: Path) -> int | None:
        """Open and lock a file; None where another process holds it, or has just removed it.

        Raises:
            OSError: it cannot be opened, or the file system has no locks.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, its holder may have removed it.
            if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in NO_LOCKS:
                path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def unlock(path: Path, descriptor: int) -> None:
        """Remove a lock file while it is held: a process that waits notices, and makes another."""
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


@contextmanager
def locked(
    path: Path,
    doing: str,
    timeout: float = LOCK_TIMEOUT,
    advance: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Hold a lock file. Not reentrant.

    Args:
        path: the lock file; its folder is made.
        doing: says for the message what the holder does ("writing x").
        timeout: seconds to wait for a holder that does not advance.
        advance: changes as the holder's work goes on, such as the size of what it writes.

    Raises:
        CacheError: another process held the lock for longer than ``timeout`` without advancing.
        OSError: the lock file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    end, reached = time.monotonic() + timeout, advance()
    while (descriptor := _try(path)) is None:
        if (now := advance()) != reached:
            end, reached = time.monotonic() + timeout, now
        if time.monotonic() > end:
            raise CacheError(
                f"another process has been {doing} for {timeout:.0f} s (it holds {path}); wait "
                "for it to finish, or stop it"
            )
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if descriptor != _WITHOUT:
            unlock(path, descriptor)


_WITHOUT = -1
"""Stands for a lock where the file system has none: two processes may then do the same work."""


def _try(path: Path) -> int | None:
    try:
        return try_lock(path)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return _WITHOUT
        raise


def sweep_locks(folder: Path, ending: str) -> list[Path]:
    """Remove the hidden lock files in a folder that nobody holds; return their paths."""
    gone = []
    for path in folder.glob(f".*{ending}") if folder.is_dir() else ():
        with suppress(OSError):
            descriptor = try_lock(path)
            if descriptor is not None:
                unlock(path, descriptor)
                gone.append(path)
    return gone
