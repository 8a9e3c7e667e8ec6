"""Opening snapshots; a damaged one is compiled again from its source."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kb_cache.snapshot import SnapshotInfo, read_info, read_tables
from kb_cache.store import REINSTALL, StoreEntry, find
from kbprobe.errors import KbprobeError, SnapshotError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


def open_snapshot(kind: str, name: str) -> tuple[SnapshotInfo, dict[str, pa.Table]]:
    """Read a snapshot of a kind, named as ``kb-cache list`` shows it, with or without "KIND-".

    A damaged one in the cache is rebuilt if its source still exists.

    Raises:
        SnapshotError: it is damaged and cannot be rebuilt; the message says what is damaged and
            what to do.
        UsageError: there is none of that name, or it is of another kind.
    """
    entry = find(name, kind)
    try:
        return _read(entry, kind)
    except SnapshotError as damage:
        if entry.embedded:
            raise SnapshotError(f"{damage}. {REINSTALL}") from damage
        logger.warning("%s; rebuilding it from its source", damage)
        from kb_cache.fetching import rebuild

        try:
            rebuild(entry)
        except KbprobeError as error:
            raise SnapshotError(f"{damage}. {error}") from error
    return _read(entry, kind)


def _read(entry: StoreEntry, kind: str) -> tuple[SnapshotInfo, dict[str, pa.Table]]:
    info = read_info(entry.folder)
    if info.kind != kind:
        raise UsageError(f"{entry.name} is a snapshot of kind {info.kind!r}, not {kind!r}")
    return info, read_tables(entry.folder, info)
