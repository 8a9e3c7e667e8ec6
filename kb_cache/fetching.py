"""Fetching knowledge bases into the cache.

Source files are found (or downloaded) and hashed, compiled while the entry's lock is held, written
to a temporary folder and moved into place. A snapshot records its source and options, so that a
damaged one is compiled again when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kb_cache import store
from kb_cache.base import (
    AnyKind,
    Download,
    FetchOptions,
    Source,
    find_kind,
    kind_of_entry,
    readable,
)
from kb_cache.snapshot import INFO_FILE, SourceInfo, read_info, write_snapshot
from kb_cache.store import EMBEDDED_DIR, REINSTALL, StoreEntry, downloads_dir, verify
from kbprobe.errors import SnapshotError, UsageError, require
from kbprobe.files import UNWRITABLE, refuse_working_directory, replacing_folder, state_of
from kbprobe.files.cache import usable
from kbprobe.files.targets import own_files, taking
from kbprobe.reading import check_plain

#: Called with a phase ("Downloading", "Compiling"), how much is done, and how much there is.
PhaseProgress = Callable[[str, int, int | None], None]


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
    with usable(target.parent, UNWRITABLE):
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
