"""What is in the cache, as ``kb-cache list`` shows it and ``verify`` and ``clear`` treat it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kb_cache import store
from kb_cache.base import Holding, find_kind, usable_kinds
from kb_cache.fetching import rebuild
from kb_cache.snapshot import INFO_FILE, find_damage, read_info
from kb_cache.store import StoreEntry, entries, verify
from kbprobe.errors import CacheError, KbprobeError, SnapshotError

_HEAD = ("NAME", "VERSION", "KIND", "CONTENT", "SIZE", "AGE", "WHERE")


class SnapshotHolding(Holding):
    """A snapshot."""

    def __init__(self, entry: StoreEntry) -> None:
        self.entry, self.name, self.embedded = entry, entry.name, entry.embedded

    def row(self) -> dict[str, Any]:
        """Return the entry of ``kb-cache list --json``."""
        folder, where = self.entry.folder, "embedded" if self.embedded else "cache"
        found = row(self.name, folder=str(folder), where=where, sound=False)
        try:
            info = read_info(folder)
            created = (folder / INFO_FILE).stat().st_mtime
        except (SnapshotError, OSError):
            return found
        return found | {
            "version": info.version, "kind": info.kind, "digest": info.digest,
            "licence": info.licence, "rows": info.rows, "bytes": info.bytes,
            "age": age(time.time() - created), "created": date(created),
            "sound": not find_damage(folder, info, full=False),
        }  # fmt: skip

    def damage(self) -> list[str]:
        """Compare every byte with its checksum."""
        return verify(self.entry)

    def repair(self) -> str:
        """Compile it again from its source."""
        rebuild(self.entry)
        return "rebuilt"

    def remove(self) -> bool:
        """Remove it, including the remains of interrupted writers."""
        if self.entry.embedded:
            raise CacheError(f"{self.name} is part of kbprobe itself and cannot be removed")
        return store.remove_entry(self.name)


def holdings() -> dict[str, Holding]:
    """Return everything in the cache by name: snapshots, and what kinds keep in addition."""
    found: list[Holding] = [SnapshotHolding(entry) for entry in entries()]
    for kind in usable_kinds():
        found += kind.holdings()
    return {holding.name: holding for holding in found}


def row(name: str, **known: Any) -> dict[str, Any]:
    """Return a row of ``kb-cache list --json`` with what is known; the rest is empty."""
    return {
        "name": name, "version": None, "kind": None, "digest": None, "licence": None, "rows": {},
        "bytes": 0, "age": "-", "created": None, "where": "cache", "sound": True, **known,
    }  # fmt: skip


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of ``kb-cache list``."""
    lines = [_HEAD]
    for entry in rows:
        where = entry["where"]
        size = f"{entry['bytes'] / 1e6:.1f} MB" if entry["bytes"] else "-"
        lines.append(
            (entry["name"], entry["version"] or "-", entry["kind"] or "-", contents(entry), size,
             entry["age"],
             where if entry["sound"] else f"{where} (damaged: see kb-cache verify)")
        )  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def contents(entry: Mapping[str, Any]) -> str:
    """Describe the contents of a holding in its kind's format: "117,659 synsets"."""
    sizes = entry["rows"]
    try:
        return find_kind(entry["kind"] or "").contents.format(**sizes)
    except (KbprobeError, KeyError):
        return ", ".join(f"{size:,} {name}" for name, size in sizes.items()) or "-"


def date(seconds: float) -> str:
    """Return a time (seconds since 1970) in ISO 8601 and UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def age(seconds: float) -> str:
    """Return an age in words: "3 days".

    >>> age(3 * 86400), age(5)
    ('3 days', 'new')
    """
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return "new"
