"""Locks that the system frees when their holder dies, and hidden names that identify writers.

The package filelock leaves lock files behind on POSIX systems; ours are next to users' files, so
they have to be removed.

Hidden files and folders are named ``.NAME.new-HOST-PROCESS-STARTED-TIME-RANDOM`` from the moment
they are created, so that their owner is always known.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from kbprobe.errors import CacheError

LOCK_TIMEOUT = 600.0
"""Seconds to wait for another process that holds a lock."""
PAUSE = 0.05
"""Seconds between two attempts."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
"""Errors raised by file systems without locks."""

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
        """Remove a lock file, unless another process has opened it in the meantime."""
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()

else:
    import fcntl

    def _no_lock(path: Path) -> OSError:
        problem = "a folder, link or pipe is where a lock file belongs; remove or rename it"
        return OSError(errno.EEXIST, problem, str(path))

    def try_lock(path: Path) -> int | None:
        """Open and lock a file; None where another process holds it, or has just removed it.

        Raises:
            OSError: it cannot be opened, or the file system has no locks.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
                raise _no_lock(path) from error
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _no_lock(path)
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
        """Remove a lock file while it is held; a waiting process notices and creates another."""
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
        path: the lock file; its folder is created.
        doing: what the holder does ("writing x"), for the message.
        timeout: seconds to wait for a holder that does not advance.
        advance: a value that changes as the holder's work progresses, such as the size of its
            output.

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
"""Used as the lock if the file system has none: two processes may then do the same work."""


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


REMAINS = re.compile(
    r"\.(?P<name>.+)\.(?P<what>new|old)-(?:(?P<host>[0-9a-f]{8})-(?P<process>[0-9]{1,10})"
    r"-(?P<started>[0-9]{1,20})-(?P<time>[0-9]{1,12})-[0-9a-f]{8})",
    re.DOTALL,
)
"""The pattern of hidden names of what is being written (new) or was replaced (old)."""
ABANDONED = 2 * 86400.0
"""Seconds without a change after which another machine's output counts as abandoned."""
_LONGEST_NAME = 180
"""Bytes of a target's name that hidden names repeat; file systems allow 255 bytes in all."""


def hidden_sibling(target: Path, what: str) -> Path:
    """Return an unused hidden path beside ``target`` that names this process as its owner."""
    process = os.getpid()
    owner = f"{host()}-{process}-{process_start(process) or 0}-{int(time.time())}"
    return target.with_name(f".{short_name(target.name)}.{what}-{owner}-{secrets.token_hex(4)}")


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


def is_abandoned(path: Path) -> bool:
    """Return whether the owner of a hidden file or folder has terminated.

    Another machine's, or another container's, processes cannot be looked up, nor those from before
    this machine was started: what they wrote is abandoned when nothing in it has changed for
    `ABANDONED` seconds.
    """
    match = REMAINS.fullmatch(path.name)
    if match is None:
        return False
    if match["host"] == host() and os.name == "posix":
        process = int(match["process"])
        if not is_alive(process, int(match["started"])):
            return True
        if process_start(process) is not None:
            return False
        # Without the start time, the number may have been reused by another process.
    try:
        inside = (Path(parent, name) for parent, _, names in os.walk(path) for name in names)
        newest = max(float(match["time"]), *(one.lstat().st_mtime for one in (path, *inside)))
    except OSError:
        return False  # It is being written, or removed.
    return time.time() - newest > ABANDONED


def is_alive(process: int, started: int = 0) -> bool:
    """Return whether a process is running here; ``started`` guards against a reused process id.

    Args:
        process: its number.
        started: its start time from `process_start`; 0 if unknown.
    """
    if os.name != "posix":
        return True  # The standard library has no way to find out.
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    now = process_start(process)
    return now != -1 and (not started or now is None or now == started)


def process_start(process: int) -> int | None:
    """Return when a process started, in clock ticks since the system did.

    -1 for one that has ended and was not waited for; None if the system does not provide it.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # the name before it may contain anything
        return -1 if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


@cache
def host() -> str:
    """Return eight hexadecimal digits for this machine since it was started; containers differ.

    Virtual machines from one image may share everything else, but not their boot id.
    """
    parts = [socket.gethostname()]
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            # Process ids are only meaningful within their namespace.
            own = os.readlink(path) if "/ns/" in path else Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        parts.append(own.strip())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:8]
