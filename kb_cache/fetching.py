"""Fetching knowledge bases into the cache, opening them, and listing the cache's contents.

Source files are found (or downloaded) and hashed, compiled while the entry's lock is held, written
to a temporary folder and moved into place. A snapshot records its source and options, so that a
damaged one is compiled again when it is opened.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb_cache import store
from kb_cache.base import (
    AnyKind,
    Download,
    FetchOptions,
    Holding,
    Source,
    find_kind,
    kind_of_entry,
    readable,
    usable_kinds,
)
from kb_cache.snapshot import (
    INFO_FILE,
    SnapshotInfo,
    SourceInfo,
    find_damage,
    read_info,
    read_tables,
    write_snapshot,
)
from kb_cache.store import EMBEDDED_DIR, StoreEntry, downloads_dir, entries, find, verify
from kbprobe.errors import (
    CacheError,
    KbprobeError,
    SnapshotError,
    UsageError,
    how_to_install,
    require,
)
from kbprobe.files import UNWRITABLE, refuse_working_directory, replacing_folder, state_of
from kbprobe.files.targets import own_files, taking
from kbprobe.reading import check_plain

if TYPE_CHECKING:
    import pyarrow as pa


logger = logging.getLogger(__name__)

#: Called with a phase ("Downloading", "Compiling"), how much is done, and how much there is.
PhaseProgress = Callable[[str, int, int | None], None]

REINSTALL = (
    "It is part of kbprobe itself; reinstall that with: "
    f"{how_to_install(flags='--force-reinstall --no-deps')}"
)


def fetch(
    kind: str,
    *,
    output: Path | None = None,
    progress: PhaseProgress = lambda *_: None,
    **options: Any,
) -> StoreEntry:
    """Compile a knowledge base into the cache, replacing an entry of the same name.

    Args:
        kind: "wordnet", "conceptnet", ... (`kb_cache.base.kind_names`).
        output: write to this folder instead of the cache, without recording the source's path.
        progress: called now and then.
        **options: the options of the kind, and ``source`` and ``name``.

    Raises:
        UsageError: an option is unknown or impossible, no name can be derived, the name belongs
            to an embedded snapshot, or ``output`` holds something else than a snapshot.
        SourceError: the source cannot be obtained or read, or is malformed.
        MissingDependencyError: a package that compiling needs is not installed.
        CacheError: the cache folder cannot be written.
    """
    declared = find_kind(kind)
    chosen = declared.options.parse(options, f"kb-cache fetch {kind}")
    # Report all errors that can be detected before downloading hundreds of megabytes.
    _require_packages(declared)
    _check_target(declared, chosen.name, output)
    path = declared.locate(chosen)
    if path is None:
        wanted = declared.download_for(chosen)
        if wanted is None:
            raise UsageError(f"kb-cache fetch {kind} needs the source: give it with --from PATH")
        path = download_source(wanted, progress)
    source = _read_source(declared, path, chosen)
    stated = chosen.name or source.version
    if not stated:
        raise UsageError(f"{source.path} does not say which version it is; give it a --name")
    name = declared.entry_name(stated)
    compiling = partial(_write, declared, source, chosen, name, progress=progress)
    _check_target(declared, stated, output)
    if output is not None:
        with taking(output, overwrite=True):
            compiling(output, record_path=False)
        return StoreEntry(name, output, embedded=False)
    entry = StoreEntry(name, store.entry_path(name), embedded=False)
    before = state_of(entry.folder)
    with store.entry_lock(name):
        if before == state_of(entry.folder) or verify(entry):
            compiling(entry.folder)
        else:  # Another process wrote it while this one waited.
            _refuse_other(entry, source, chosen)
    return entry


def _refuse_other(entry: StoreEntry, source: Source, options: FetchOptions) -> None:
    """Refuse a snapshot that was compiled from another source, or with other options."""
    there = read_info(entry.folder).source
    if there.files != dict(source.sha256) or there.options != options.recorded():
        raise UsageError(
            f"another process has just written {entry.name} from another source or with other "
            "options, and it is left as it is. Give this one another --name, or run the command "
            "again to replace it."
        )


def _read_source(kind: AnyKind, path: Path, options: FetchOptions) -> Source:
    """Look at a source; a pipe or a device is refused before any library opens it."""
    if path.exists() and not path.is_dir():
        with readable(path):
            check_plain(path)
    source: Source = kind.read(path, options)
    return source


def _require_packages(kind: AnyKind) -> None:
    for package in kind.packages:
        require(package, kind.extra, f"Compiling {kind.title}")


def _check_target(kind: AnyKind, stated: str, output: Path | None) -> None:
    """Refuse a folder that holds something else, and a name that cannot be an entry's.

    ``stated`` is the name; empty where it is not known yet.
    """
    if output is not None:
        refuse_working_directory(output)
        if output.exists() and any(output.iterdir()) and not (output / INFO_FILE).is_file():
            raise UsageError(f"{output} is not empty and not a snapshot; give another folder")
        return
    if not stated:
        return
    name = store.entry_path(kind.entry_name(stated)).name
    if (EMBEDDED_DIR / name).is_dir():
        raise UsageError(
            f"{name} comes with kbprobe; to keep another copy beside it, give it a name of its "
            "own with --name"
        )
    folder = store.entry_path(name)
    if folder.is_dir() and any(folder.iterdir()) and not store.is_snapshot(folder):
        raise UsageError(
            f"{folder} holds files that are not a snapshot of kbprobe; it is left alone. Give "
            "the entry another name with --name, or set KBPROBE_CACHE to another folder"
        )


def download_source(wanted: Download, progress: PhaseProgress = lambda *_: None) -> Path:
    """Download a source file into the cache, unless it is there.

    Raises:
        SourceError: it cannot be obtained, or is not what was expected.
        CacheError: the cache folder cannot be written.
    """
    from kb_cache.download import download

    target = downloads_dir() / wanted.url.rpartition("/")[2]
    shown = partial(progress, "Downloading")
    with store.usable(target.parent, UNWRITABLE):
        download(wanted.url, target, sha256=wanted.sha256, size=wanted.bytes, progress=shown)
        store.record_download(target, wanted.url)
    return target


def _write(
    kind: AnyKind,
    source: Source,
    options: FetchOptions,
    name: str,
    target: Path,
    *,
    progress: PhaseProgress = lambda *_: None,
    record_path: bool = True,
) -> None:
    """Compile into a folder: of the cache, which is replaced as a whole, or of the user."""
    _require_packages(kind)
    ours = None if record_path else own_files(target, INFO_FILE)
    with replacing_folder(target, ours) as folder:
        compiled = kind.compile(source, options, folder, partial(progress, "Compiling"))
        write_snapshot(
            folder,
            compiled,
            kind=kind.name,
            name=name,
            version=compiled.version or source.version or name.removeprefix(f"{kind.name}-"),
            source=SourceInfo(
                description=compiled.description,
                path=str(source.path) if record_path else None,
                files=dict(source.sha256),
                notes=compiled.notes,
                options=options.recorded(),
            ),
            language=kind.language_of(options, source),
            **kind.credits_of(options, source),
        )


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


def rebuild(entry: StoreEntry) -> None:
    """Compile a damaged cached snapshot again from the source that it records.

    Does nothing if the snapshot is undamaged, for instance because another process was faster.

    Raises:
        SnapshotError: the source is not recorded, is missing or has changed; the message gives the
            command that recreates the snapshot.
        SourceError: the source can no longer be read.
        CacheError: the cache folder cannot be written.
    """
    if entry.embedded:
        raise SnapshotError(REINSTALL)
    with store.entry_lock(entry.name):
        if verify(entry):
            kind, source, options = _recorded(entry)
            _write(kind, source, options, entry.name, entry.folder)


def _recorded(entry: StoreEntry) -> tuple[AnyKind, Source, FetchOptions]:
    """Return what a snapshot records of its source, and check that it is still the same."""
    try:
        info = read_info(entry.folder)
        kind = find_kind(info.kind)
    except (SnapshotError, UsageError) as error:
        guessed = kind_of_entry(entry.name)
        command = guessed.fetch_command(entry.name) if guessed else "kb-cache fetch KIND"
        raise SnapshotError(f"Its source is unknown; make it again with: {command}") from error
    path = info.source.path or ""
    there = bool(path) and Path(path).exists()
    again = f"make it again with: {kind.fetch_command(entry.name, path if there else '')}"
    if not there:
        raise SnapshotError(f"Its source {path or '(not recorded)'} is no longer there; {again}")
    try:
        recorded = {**info.source.options, "source": path, "name": entry.name}
        options = kind.options.parse(recorded, entry.name)
    except UsageError as error:
        raise SnapshotError(f"{error}; {again}") from error
    source = _read_source(kind, Path(path), options)
    if dict(source.sha256) != dict(info.source.files):
        raise SnapshotError(f"Its source {path} has changed since; if that is intended, {again}")
    return kind, source, options


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
    for one in rows:
        state = one["where"] if one["sound"] else f"{one['where']} (damaged: see kb-cache verify)"
        size = f"{one['bytes'] / 1e6:.1f} MB" if one["bytes"] else "-"
        lines.append(
            (one["name"], one["version"] or "-", one["kind"] or "-", contents(one), size,
             one["age"], state)
        )  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def contents(one: Mapping[str, Any]) -> str:
    """Describe the contents of a holding in its kind's format: "117,659 synsets"."""
    sizes = one["rows"]
    try:
        return find_kind(one["kind"] or "").contents.format(**sizes)
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
