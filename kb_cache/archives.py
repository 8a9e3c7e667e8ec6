"""Reading the files of a source from a folder, a zip or a (compressed) tar, into memory.

Nothing is unpacked to disk: members of an archive are selected by their base names, so a hostile
member path ("../../x") has no effect.
"""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from kb_cache.unpack import (
    ALWAYS,
    DAMAGE,
    Allowance,
    TooLarge,
    most_unpacked,
    packed_as,
    unpacking,
)
from kbprobe.errors import SourceError

#: Maximum number of members of a tar; those of WordNet and GCIDE have a few dozen.
MOST_MEMBERS = 100_000
Names = Callable[[str], bool]


def sha256_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 (hex) of files by name, sorted."""
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}


def read_files(
    path: Path, wanted: Names, marker: Names, *, layouts: Sequence[str], largest: int, title: str
) -> dict[str, bytes]:
    """Return the files of one folder of a source by base name; empty if there is no marker.

    Args:
        path: a folder, zip or tar.
        wanted: whether a file of that base name is read.
        marker: whether a file of that base name identifies the right folder.
        layouts: subfolders of ``path`` to look into, in this order. In an archive, the folder
            nearest the top is taken.
        largest: maximum size of a file in bytes.
        title: the name of the source in messages.

    Raises:
        SourceError: the path cannot be read, is neither folder nor archive, or has a member that
            is too large.
    """
    try:
        if path.is_dir():
            return _read_folder(path, wanted, marker, layouts)
        return _read_archive(path, wanted, marker, largest, title)
    except FileNotFoundError as error:
        raise SourceError(f"no such file or folder: {path}") from error
    except (OSError, zipfile.BadZipFile, tarfile.TarError, *DAMAGE, RuntimeError) as error:
        raise SourceError(f"cannot read {path}: {error}") from error


_MOST_IN_ALL = 4 << 30
"""Maximum total bytes read from an archive, a hundred times what WordNet and GCIDE need."""


def check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member of a zip that cannot be unpacked within limits.

    Raises:
        TooLarge: it unpacks to far more than texts do.
        zipfile.BadZipFile: it is packed with bzip2 or LZMA, which `zipfile` unpacks without limit.
    """
    limit = most_unpacked(member.compress_size)
    if member.file_size > limit:
        raise TooLarge(limit)
    if member.compress_type in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        raise zipfile.BadZipFile(
            f"{member.filename} is packed with bzip2 or LZMA, which is not read in a zip; unpack "
            "it, and give the folder"
        )


class _Bounded:
    """A file for `tarfile` that can be read up to a limit.

    A tar's headers say how much to read; nothing beyond the limit is unpacked.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file, self._limit, self.tell = file, limit, file.tell

    def read(self, size: int) -> bytes:
        self._check(self.tell() + size)
        return self._file.read(size)

    def seek(self, position: int) -> int:
        self._check(position)
        return self._file.seek(position)

    def _check(self, position: int) -> None:
        if position > self._limit:
            raise TooLarge(self._limit)


@contextmanager
def opened_tar(path: Path) -> Iterator[tarfile.TarFile | None]:
    """Open a tar, plain or compressed with gzip, bzip2 or xz; return None for other files.

    Raises:
        TooLarge: it unpacks to more than `most_unpacked`; also while it is read.
    """
    with path.open("rb") as file:
        stream = _Bounded(unpacking(file, packed_as(file)), most_unpacked(path.stat().st_size))
        try:
            tar = tarfile.open(fileobj=cast("Any", stream), mode="r:")  # noqa: SIM115
        except TooLarge:
            raise
        except (OSError, tarfile.TarError, *DAMAGE):
            yield None
            return
        with tar:
            yield tar


def is_tar(path: Path) -> bool:
    """Return whether a file is a tar, plain or compressed; see `opened_tar`."""
    try:
        with opened_tar(path) as tar:
            return tar is not None
    except TooLarge:  # only tars are read that far to identify them
        return True


def _sizes(tar: tarfile.TarFile, largest: int) -> dict[str, int]:
    """Return the sizes of a tar's files by path, without links and devices.

    Moving to the next member unpacks everything in between, so too large a member is refused
    before.
    """
    sizes, total = {}, 0
    for count, member in enumerate(tar, 1):
        if member.isfile():
            sizes[member.name] = member.size
        total += member.size
        if count > MOST_MEMBERS or member.size > max(largest, ALWAYS) or total > _MOST_IN_ALL:
            raise tarfile.ReadError(
                f"it holds more than {MOST_MEMBERS:,} members, more than {_MOST_IN_ALL >> 30} GiB, "
                f"or {member.name} of {member.size:,} bytes; unpack what is needed, and give that "
                "folder"
            )
    return sizes


def _read_folder(
    path: Path, wanted: Names, marker: Names, layouts: Sequence[str]
) -> dict[str, bytes]:
    for folder in (path / layout for layout in layouts):
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [file for file in files if file.is_file() and wanted(file.name)]
        if any(marker(file.name) for file in files):
            return {file.name: file.read_bytes() for file in files}
    return {}


def _read_archive(
    path: Path, wanted: Names, marker: Names, largest: int, title: str
) -> dict[str, bytes]:
    allowance = Allowance(path.stat().st_size, _MOST_IN_ALL)
    with ExitStack() as stack:
        if zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            members = {m.filename: m for m in archive.infolist() if not m.is_dir()}
            sizes = {name: member.file_size for name, member in members.items()}

            def read(name: str) -> bytes:
                check_member(members[name])
                with archive.open(name) as member:
                    return allowance.read(member)
        elif (tar := stack.enter_context(opened_tar(path))) is not None:
            sizes = _sizes(tar, largest)

            def read(name: str) -> bytes:
                member = tar.extractfile(name)
                return allowance.read(member) if member else b""
        else:
            raise SourceError(f"{path} is neither a folder nor an archive nor a file of {title}")
        places = {name: PurePosixPath(name) for name in sizes}
        homes = {place.parent for place in places.values() if marker(place.name)}
        home = min(homes, key=lambda folder: (len(folder.parts), str(folder)), default=None)
        chosen = {
            place.name: name
            for name, place in places.items()
            if place.parent == home and wanted(place.name)
        }
        for name in chosen.values():
            if sizes[name] > largest:
                raise SourceError(
                    f"{path}: {name} unpacks to {sizes[name]:,} bytes; no file of {title} is that "
                    "large"
                )
        return {base: read(name) for base, name in chosen.items()}
