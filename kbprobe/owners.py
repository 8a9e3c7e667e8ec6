"""Hidden names that identify the process writing a file, so that leftovers can be removed.

Hidden files and folders are named ``.NAME.new-HOST-PROCESS-STARTED-TIME-RANDOM`` from the moment
they are created, so that their owner is always known.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import time
from functools import cache
from pathlib import Path

REMAINS = re.compile(
    r"\.(?P<name>.+)\.(?P<what>new|old)-(?:(?P<host>[0-9a-f]{8})-(?P<process>[0-9]{1,10})"
    r"-(?P<started>[0-9]{1,20})-(?P<time>[0-9]{1,12})-[0-9a-f]{8})",
    re.DOTALL,
)
"""The hidden names of what is being written (new) or was replaced (old), with the owner."""
ABANDONED = 2 * 86400.0
"""Seconds without a change after which what another machine wrote counts as abandoned."""
_LONGEST_NAME = 180
"""Bytes of a target's name that are repeated in hidden names; file systems take 255 in all."""


def hidden_sibling(target: Path, what: str) -> Path:
    """Return an unused hidden path beside ``target`` that names this process as its owner."""
    process = os.getpid()
    owner = f"{host()}-{process}-{process_start(process) or 0}-{int(time.time())}"
    return target.with_name(f".{short_name(target.name)}.{what}-{owner}-{secrets.token_hex(4)}")


def short_name(name: str) -> str:
    """Return a file name that leaves room for what is added to it; short ones stay as they are."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME:
        return name
    kept = os.fsdecode(encoded[: _LONGEST_NAME - 17])
    return f"{kept}-{hashlib.sha256(encoded).hexdigest()[:16]}"


def is_shortened(name: str) -> bool:
    """Return whether `short_name` has shortened the name that it returned."""
    return len(os.fsencode(name)) == _LONGEST_NAME and bool(re.search("-[0-9a-f]{16}$", name))


def is_abandoned(path: Path) -> bool:
    """Tell whether the owner of something hidden has ended.

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
    """Tell whether a process of this machine runs; ``started`` guards against a reused number.

    Args:
        process: its number.
        started: as `process_start` gave it; 0: not known.
    """
    if os.name != "posix":
        return True  # The standard library offers no way to find out.
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

    -1 for one that has ended and was not waited for; None where the system does not tell.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # the name before it may hold anything
        return -1 if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


@cache
def host() -> str:
    """Return eight hexadecimal digits for this machine since it was started; containers differ.

    Virtual machines of one image may share all else, but not the id of their start.
    """
    parts = [socket.gethostname()]
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            # Process numbers mean something within their namespace alone.
            own = os.readlink(path) if "/ns/" in path else Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        parts.append(own.strip())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:8]
