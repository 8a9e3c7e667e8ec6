"""The available snapshots: embedded in the package, or in the cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kb_cache import store
from kb_cache.base import find_kind
from kb_cache.snapshot import INFO_FILE, find_damage, read_info
from kbprobe.errors import SnapshotError, UsageError, did_you_mean

EMBEDDED_DIR = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Entry:
    """A snapshot that exists: embedded in the package, or in the cache."""

    name: str
    folder: Path
    embedded: bool


def entries() -> list[Entry]:
    """All snapshots, embedded ones first, whether or not they are damaged."""
    known = {
        folder.name: Entry(folder.name, folder, embedded=True)
        for folder in sorted(EMBEDDED_DIR.iterdir())
        if (folder / INFO_FILE).is_file()
    }
    for name in store.entry_names():
        known.setdefault(name, Entry(name, store.entry_path(name), embedded=False))
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
    ends = [one for one in names if one.partition("-")[2] == name]
    return ends[0] if name not in names and len(ends) == 1 else name


def downloads_dir() -> Path:
    """The folder in which downloaded source files are kept (which need not exist)."""
    return store.cache_dir() / "downloads"


def find(name: str, kind: str | None = None) -> Entry:
    """Return the entry with a name; if ``kind`` is given, "KIND-" may be omitted.

    Raises:
        UsageError: there is none; the message lists the existing entries.
    """
    wanted = (name, f"{kind}-{name}") if kind else (name,)
    # Embedded snapshots are found without reading the cache, which may be unreadable or huge.
    for full in wanted:
        if (EMBEDDED_DIR / full / INFO_FILE).is_file() and Path(full).name == full:
            return Entry(full, EMBEDDED_DIR / full, embedded=True)
    known = {entry.name: entry for entry in entries()}
    for full in wanted:
        if full in known:
            return known[full]
    names = [n for n in known if kind is None or n.startswith(f"{kind}-")]
    short = [n.removeprefix(f"{kind}-") for n in names]
    hint = did_you_mean(name, names + short)
    remedy = f" {find_kind(kind).how_to_add(name)}" if kind else ""
    raise UsageError(
        f"there is no snapshot {name!r}.{hint} There are: {', '.join(names) or 'none'}.{remedy}"
    )


def verify(entry: Entry) -> list[str]:
    """Compare every byte of a snapshot with its checksums; return what is wrong, or []."""
    try:
        return find_damage(entry.folder, read_info(entry.folder), full=True)
    except SnapshotError as error:
        return [str(error)]
