"""The folder of kbprobe's cache: where it is, and what happens if it cannot be used."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kbprobe.errors import CacheError, UsageError
from kbprobe.files import write_file
from kbprobe.parsing import read_json

CACHE_VARIABLE = "KBPROBE_CACHE"

OTHER_CACHE = f"Set {CACHE_VARIABLE} to a folder that you can write to and that has room."


def cache_dir() -> Path:
    """The cache folder (which need not exist): ``$KBPROBE_CACHE``, or the platform's own place."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("kbprobe"))


def read_note(note: Path) -> dict[str, Any] | None:
    """Return what :func:`write_note` wrote; None where there is nothing, or it is damaged."""
    try:
        content = read_json(note)
    except (OSError, UsageError):
        return None
    if not isinstance(content, dict):
        return None
    told = {name: value for name, value in content.items() if name != _SEAL}
    return told if content == _sealed(told) else None


def write_note(note: Path, told: Mapping[str, Any]) -> None:
    """Note a few values, as JSON with a checksum.

    A cache that cannot be written only costs time.
    """
    with suppress(OSError):
        write_file(note, json.dumps(_sealed(told)))


_SEAL = "seal"


def _sealed(told: Mapping[str, Any]) -> dict[str, Any]:
    return {**told, _SEAL: hashlib.sha256(json.dumps(told).encode()).hexdigest()}


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files of the cache, and the folders that are empty then.

    Raises:
        CacheError: one cannot be removed.
    """
    with usable(cache_dir()):
        for path in paths:
            path.unlink(missing_ok=True)
            remove_empty(path.parent)


def remove_empty(folder: Path) -> None:
    """Remove a folder in the cache, and those above, as long as they are empty."""
    with suppress(OSError):
        while folder != cache_dir() and folder.is_relative_to(cache_dir()):
            folder.rmdir()
            folder = folder.parent


def unusable(folder: Path, error: OSError) -> CacheError:
    """Return the error for a cache folder that cannot be read or written."""
    return CacheError(
        f"the cache folder {folder} cannot be used: {error.strerror or error}. {OTHER_CACHE}"
    )


@contextmanager
def usable(folder: Path, only: Collection[int] = ()) -> Iterator[None]:
    """Convert the operating system's errors in the block, all or some, to a `CacheError`."""
    try:
        yield
    except OSError as error:
        if only and error.errno not in only:
            raise
        raise unusable(folder, error) from error
