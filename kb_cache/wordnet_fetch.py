"""From a WordNet database to a snapshot in the cache."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from kb_cache import store
from kb_cache.catalogue import Entry, embedded_names
from kb_cache.errors import MissingDependencyError, UsageError
from kb_cache.snapshot import INFO_FILE, SnapshotInfo, SourceInfo, write_snapshot
from kb_cache.wordnet import KIND
from kb_cache.wordnet_source import WordNetSource, read_source

#: SPDX has no id for the licence under which Princeton publishes WordNet.
LICENCE = "LicenseRef-WordNet"

Progress = Callable[[int, int], None]


def fetch(path: Path | str, name: str | None = None, progress: Progress | None = None) -> Entry:
    """Compile a WordNet database into the cache, replacing an entry of the same name.

    Args:
        path: a folder or archive in the layout that NLTK reads.
        name: the entry's name; "wordnet-" is put before it where it lacks that. By default
            made of the version that the files state.
        progress: called with (synsets done, synsets in all).

    Raises:
        SourceError: the files cannot be read or are malformed.
        UsageError: the name belongs to an embedded snapshot, or no version is stated and no
            name given.
        CacheError: the cache folder cannot be written.
    """
    source = read_source(path)
    full_name = _full_name(source, name)
    if full_name in embedded_names():
        raise UsageError(
            f"{full_name} comes with kbprobe; to keep another copy beside it, give it a name "
            "of its own with --name"
        )
    with store.entry_lock(full_name):
        store.sweep(full_name)
        return _write_entry(source, full_name, progress)


def fetch_to(
    folder: Path, path: Path | str, name: str | None = None, progress: Progress | None = None
) -> Path:
    """Compile as `fetch` does, but into any folder, and without recording the source's path.

    Raises:
        SourceError: as `fetch`.
        UsageError: the folder holds something else than a snapshot, which would be lost.
    """
    source = read_source(path)
    if folder.exists() and any(folder.iterdir()) and not (folder / INFO_FILE).is_file():
        raise UsageError(f"{folder} is not empty and no snapshot; give another folder")
    write(source, _full_name(source, name), folder, progress=progress, record_path=False)
    return folder


def write_entry(path: Path | str, name: str) -> Entry:
    """Compile into the cache under a full name, for a caller who holds the entry's lock."""
    return _write_entry(read_source(path), name, None)


def _write_entry(source: WordNetSource, name: str, progress: Progress | None) -> Entry:
    target = store.entry_path(name)
    try:
        write(source, name, target, progress=progress, record_path=True)
    except PermissionError as error:
        raise store.unusable(target.parent, error) from error
    return Entry(name, target, embedded=False)


def write(
    source: WordNetSource,
    name: str,
    target: Path,
    *,
    progress: Progress | None = None,
    record_path: bool,
) -> SnapshotInfo:
    """Compile into any folder, which is replaced as a whole.

    Args:
        source: what to compile.
        name: the snapshot's name.
        target: the folder to write.
        progress: called with (synsets done, synsets in all).
        record_path: note the source's path, from which a damaged snapshot is rebuilt. Leave it
            out of snapshots that go to other machines.

    Raises:
        SourceError: a file is malformed.
        MissingDependencyError: NLTK or lemminflect is not installed.
    """
    for package in ("nltk", "lemminflect"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(package, "wordnet", "Compiling a WordNet")
    from kb_cache.wordnet_compile import compile_wordnet, created_by

    tables = compile_wordnet(source, progress)
    version = source.version or name.removeprefix(f"{KIND}-")
    with store.replacing(target) as folder:
        return write_snapshot(
            folder,
            kind=KIND,
            name=name,
            version=version,
            licence=LICENCE,
            created_by=created_by(),
            source=SourceInfo(
                description=f"WordNet {version} database files",
                path=str(source.path) if record_path else None,
                files=source.sha256,
                notes=source.notes,
            ),
            tables=tables,
            texts={"LICENSE.txt": source.licence},
        )


def source_files(path: Path | str) -> dict[str, str]:
    """The sha256 of every file that `fetch` would read, by name.

    Raises:
        SourceError: the source cannot be read.
    """
    return dict(read_source(path).sha256)


def _full_name(source: WordNetSource, name: str | None) -> str:
    chosen = name or source.version
    if chosen is None:
        raise UsageError(f"{source.path} does not say which version it is; give it a --name")
    return chosen if chosen.startswith(f"{KIND}-") else f"{KIND}-{chosen}"
