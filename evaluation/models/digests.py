"""Hashes of large files, computed once: weights are identified by content, never by name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kb_cache.store import cache_dir
from kbprobe.files import file_sha256, write_file

_SHA256 = re.compile(r"[0-9a-f]{64}")


def file_digest(path: Path) -> str:
    """Return a file's sha256.

    Hub downloads of large files are stored under their sha256, so that nothing need be read.
    Others are read once: the result is remembered for as long as path, size, time of change and
    inode stay the same.
    """
    real = path.resolve()
    if _SHA256.fullmatch(real.name) and real.parent.name == "blobs":
        return real.name
    status = real.stat()
    state = [status.st_size, status.st_mtime_ns, status.st_ino]
    note = cache_dir() / "hashes" / hashlib.sha256(str(real).encode()).hexdigest()
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["state"] == state:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Not known, or not readable: then it is computed, and noted again.
    sha256 = file_sha256(real)
    # A cache that cannot be written only costs time.
    with suppress(OSError):
        write_file(note, json.dumps({"path": str(real), "state": state, "sha256": sha256}))
    return sha256


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return one sha256 for several files: of their names and contents, in order of name."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        digest.update(f"{path.name}\0{file_digest(path)}\n".encode())
    return digest.hexdigest()
