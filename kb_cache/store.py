"""The cache folder: its location, locks, atomic writes, and the existing snapshots.

Layout: ``CACHE/snapshots/NAME/`` holds a snapshot, ``CACHE/derived/NAME/`` tables derived from it
(`kb_cache.derived`). A folder is first written as ``.NAME.new-*`` and then renamed; a folder that
it replaces is ``.NAME.old-*`` until then. The remains of dead writers are removed by the next
writer of the same entry (`kbprobe.files.sweep`), or by `sweep`.

The folder may be one that people keep files of their own in: only what carries a record of kbprobe
is listed and removed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kb_cache.array_files import derived_dir
from kb_cache.snapshot import INFO_FILE, find_damage, read_info
from kbprobe import files
from kbprobe.errors import (
    CacheError,
    SnapshotError,
    UsageError,
    did_you_mean,
    how_to_install,
)
from kbprobe.files import remains, remove_tree
from kbprobe.files.cache import OTHER_CACHE, cache_dir, remove_files, usable
from kbprobe.files.locks import REMAINS, try_lock, unlock
from kbprobe.parsing import read_json
from kbprobe.reading import stamp_of

_SWAP = 5.0
"""Seconds that a writer may take to replace an old entry by a new one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_TABLE, _TABLE_HEAD = re.compile(rb"[0-9a-f]{64}ARROW1"), 70
"""How a file of a derived table begins, and how many bytes of it that takes."""


def snapshots_dir() -> Path:
    """Return the folder of all cached snapshots (which need not exist)."""
    return cache_dir() / "snapshots"


def entry_path(name: str) -> Path:
    """The folder of a cached snapshot (which need not exist).

    Raises:
        UsageError: the name cannot be a file name on every system.
    """
    if "/" in name or "\\" in name:
        raise UsageError(
            f"{name!r} cannot name a cache entry. To read a file, give it with --from FILE."
        )
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            f"{name!r} cannot name a cache entry: use letters, digits, '.', '_', '+' and '-', "
            "a letter or digit first"
        )
    return snapshots_dir() / name


def entry_names() -> list[str]:
    """Return the names of the cached snapshots, without half-written ones, sorted.

    An entry that a writer had moved aside before it died is put back first.
    """
    root = snapshots_dir()
    with usable(root):
        names, end = _entries(root), time.monotonic() + _SWAP
        while replaced := [name for name in all_remains("old") if name not in names]:
            files.sweep(root)
            names = _entries(root)
            if time.monotonic() > end:
                break
            if any(name not in names for name in replaced):  # being replaced at this moment
                time.sleep(0.02)
    return sorted(names)


def _entries(root: Path) -> set[str]:
    if not root.is_dir():
        return set()
    return {
        path.name for path in root.iterdir() if _NAME.fullmatch(path.name) and is_snapshot(path)
    }


def is_snapshot(folder: Path) -> bool:
    """Return whether a folder carries the record of a snapshot, which may be damaged."""
    try:
        record = read_json(folder / INFO_FILE)
    except OSError:  # there is none
        return False
    except UsageError:
        record = None
    if isinstance(record, dict) and {"kind", "digest", "files"} <= record.keys():
        return True
    from kb_cache.base import kind_of_entry

    return kind_of_entry(folder.name) is not None


def derived_tables(name: str = "*") -> list[Path]:
    """Return the files of tables derived from a snapshot, or from all (`kb_cache.derived`)."""
    return [path for path in sorted(derived_dir().glob(f"{name}/*.arrow")) if _is_table(path)]


def _is_table(path: Path) -> bool:
    if not path.is_file():
        return False
    with suppress(OSError), path.open("rb") as file:
        return _TABLE.match(file.read(_TABLE_HEAD)) is not None
    return False


def downloads() -> list[Path]:
    """Return the downloaded files, each followed by its record, and unfinished downloads."""
    found = []
    for record in sorted(downloads_dir().glob("*.json")):
        target = record.with_suffix("")
        with suppress(OSError, UsageError):
            content = read_json(record)
            if isinstance(content, dict) and isinstance(content.get("url"), str):
                found += [path for path in (target, record) if path.is_file()]
    return found


def record_download(target: Path, url: str) -> None:
    """Write the record of a downloaded file, unless there is one: without it nothing removes it."""
    record = target.with_name(f"{target.name}.json")
    if not os.path.lexists(record):
        files.write_file(record, json.dumps({"url": url}))


@contextmanager
def entry_lock(name: str) -> Iterator[None]:
    """Lock a cache entry, or wait for the process that holds it. Not reentrant.

    Remains of dead writers are restored or removed.

    Raises:
        CacheError: the folder cannot be written.
    """
    from kbprobe.files.targets import taking  # needs pydantic, which is slow to import

    target = entry_path(name)
    with usable(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "it cannot be written to", str(target.parent))
    remedy = "Give it another name with --name."
    with taking(target, overwrite=True, remedy=remedy, room=OTHER_CACHE):
        yield


def all_remains(what: str = "new|old") -> dict[str, list[Path]]:
    """Return what dead or living writers keep next to the cache's entries, by entry name."""
    found: dict[str, list[Path]] = {}
    for path in sorted(files.hidden(snapshots_dir())):
        match = REMAINS.fullmatch(path.name)
        if match and match["what"] in what.split("|"):
            found.setdefault(match["name"], []).append(path)
    return found


def remove_entry(name: str) -> bool:
    """Remove a cached snapshot and remains of dead writers; return whether there was any.

    Raises:
        CacheError: it cannot be removed.
    """
    target = entry_path(name)
    if not is_snapshot(target) and not remains(target):
        return False
    with entry_lock(name):
        remove_files(derived_tables(name))
        for folder in ([target] if is_snapshot(target) else []) + remains(target):
            remove_tree(folder)
            if folder.exists():
                raise CacheError(f"{folder} cannot be removed: look at its permissions")
    return True


def sweep() -> list[Path]:
    """Remove remains of interrupted commands in the whole cache and among temporary files.

    Unfinished downloads that no process is continuing are removed as well.

    Returns:
        The paths that were removed, or put back.

    Raises:
        CacheError: the cache folder cannot be read.
    """
    root, done = cache_dir(), []
    with usable(root):
        unfinished = {p for p in downloads() if p.name.endswith((".part", ".part.json"))}
        for parent, _, names in os.walk(root):
            done += files.sweep(Path(parent))
            for name in names:
                path = Path(parent, name)
                # Locks of other programs that share the folder are not hidden.
                ours = name.startswith(".") or Path(parent) == root / "locks"
                if ours and name.endswith(".lock"):
                    done += _unheld(path)
                elif Path(parent) == root / "downloads" and path in unfinished:
                    target = name.removesuffix(".json").removesuffix(".part")
                    done += _unheld(path.with_name(f".{target}.lock"), path)
        done += files.sweep(Path(tempfile.gettempdir()))
    return done


def _unheld(lock: Path, partial: Path | None = None) -> list[Path]:
    """Remove a lock file that nobody holds, or the partial download that nobody continues."""
    with suppress(OSError):
        if (taken := try_lock(lock)) is not None:
            if partial is not None:
                partial.unlink(missing_ok=True)
            unlock(taken)
            return [partial or lock]
    return []


EMBEDDED_DIR = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class StoreEntry:
    """A snapshot that exists: embedded in the package, or in the cache."""

    name: str
    folder: Path
    embedded: bool


def entries() -> list[StoreEntry]:
    """All snapshots, embedded ones first, whether or not they are damaged."""
    known = {
        folder.name: StoreEntry(folder.name, folder, embedded=True)
        for folder in sorted(EMBEDDED_DIR.iterdir())
        if (folder / INFO_FILE).is_file()
    }
    for name in entry_names():
        known.setdefault(name, StoreEntry(name, entry_path(name), embedded=False))
    return list(known.values())


def snapshot_names(kind: str, embedded: str = "") -> list[str]:
    """Return the names of a kind's snapshots, without "KIND-", sorted.

    If ``embedded`` names a snapshot that comes with kbprobe, only that one is returned, without
    reading the cache, which may be unreadable or huge.
    """
    prefix = f"{kind}-"
    if embedded and (EMBEDDED_DIR / f"{prefix}{embedded}" / INFO_FILE).is_file():
        return [embedded]
    names = {entry.name for entry in entries() if entry.name.startswith(prefix)}
    return sorted(name.removeprefix(prefix) for name in names)


def full_name(name: str, known: Iterable[str]) -> str:
    """Complete a name that lacks "KIND-" if it is the end of exactly one known name.

    >>> full_name("mine", ["conceptnet-mine", "wordnet-3.0"])
    'conceptnet-mine'
    >>> full_name("mine", ["conceptnet-mine", "wikidata-mine"])
    'mine'
    """
    names = list(known)
    ends = [full for full in names if full.partition("-")[2] == name]
    return ends[0] if name not in names and len(ends) == 1 else name


def downloads_dir() -> Path:
    """The folder in which downloaded source files are kept (which need not exist)."""
    return cache_dir() / "downloads"


def find(name: str, kind: str | None = None) -> StoreEntry:
    """Return the entry with a name; if ``kind`` is given, "KIND-" may be omitted.

    Raises:
        UsageError: there is none; the message lists the existing entries.
    """
    wanted = (name, f"{kind}-{name}") if kind else (name,)
    # Embedded snapshots are found without reading the cache, which may be unreadable or huge.
    for full in wanted:
        if (EMBEDDED_DIR / full / INFO_FILE).is_file() and Path(full).name == full:
            return StoreEntry(full, EMBEDDED_DIR / full, embedded=True)
    known = {entry.name: entry for entry in entries()}
    for full in wanted:
        if full in known:
            return known[full]
    names = [n for n in known if kind is None or n.startswith(f"{kind}-")]
    short = [n.removeprefix(f"{kind}-") for n in names]
    hint = did_you_mean(name, names + short)
    remedy = ""
    if kind:
        from kb_cache.base import find_kind

        remedy = f" {find_kind(kind).how_to_add(name)}"
    raise UsageError(
        f"there is no snapshot {name!r}.{hint} There are: {', '.join(names) or 'none'}.{remedy}"
    )


def stamp_of_source(name: str, kind: str) -> tuple[int, int]:
    """Return when a file, or else the snapshot of that name, was last written, and its size."""
    path = Path(name)
    if path.exists():
        return stamp_of(path)
    named = (entry.folder for entry in entries() if entry.name in (name, f"{kind}-{name}"))
    return stamp_of(next(named, path) / INFO_FILE)


def verify(entry: StoreEntry) -> list[str]:
    """Compare every byte of a snapshot with its checksums; return what is wrong, or []."""
    try:
        return find_damage(entry.folder, read_info(entry.folder), full=True)
    except SnapshotError as error:
        return [str(error)]


REINSTALL = (
    "It is part of kbprobe itself; reinstall that with: "
    f"{how_to_install(flags='--force-reinstall --no-deps')}"
)
"""What to do about a damaged snapshot that comes with the package."""
