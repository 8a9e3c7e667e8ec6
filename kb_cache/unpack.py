"""Reading archives and large text files, plain or compressed, in bounded memory; their errors.

Nothing is unpacked to disk: members of an archive are selected by their base names, so a hostile
member path ("../../x") has no effect.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from kb_cache.base import Progress, readable
from kbprobe.errors import MissingDependencyError, SourceError, UsageError
from kbprobe.reading import open_file

if TYPE_CHECKING:
    from zipfile import ZipInfo


#: Unpacked content may be this many times as large as the file, or have this many bytes, whichever
#: is more. Text becomes five to fifty times as large; files made to fill a disk, a thousand times.
MOST_TIMES, ALWAYS = 200, 1 << 28
#: Bytes that are unpacked at a time.
_BLOCK = 1 << 20
#: The first bytes of compressed files, and how the names of such files end.
_KINDS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
#: Malformed lines that a note names.
_NAMED = 5


class TooLarge(ValueError):
    """A file unpacks to more than any text of its size: it was made to fill memory or disk."""

    def __init__(self, limit: int, most: int | None = None) -> None:
        """Set the exceeded limit: ``most``, whatever the file's size, or one by its size."""
        super().__init__(
            f"it holds more than {limit:,} bytes, the most that is read; give a part of it"
            if limit == most
            else f"it unpacks to more than {limit:,} bytes, as text of its size does not; if that "
            "is as it should be, unpack it, and give what was unpacked"
        )


#: Exceptions raised for damaged archives.
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, TooLarge)


def most_unpacked(size: int) -> int:
    """Return how many bytes a compressed file of this size may unpack to."""
    return max(ALWAYS, MOST_TIMES * size)


class Readable(Protocol):
    """A stream of bytes, such as `UnpackedFile` or a member of an archive."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, ``size`` at most."""


class Allowance:
    """The bytes that one source may hold, whatever number of files it is divided into."""

    def __init__(self, packed: int, most: int | None = None) -> None:
        """Allow what a source of ``packed`` bytes may unpack to, and ``most`` bytes at most."""
        self._most = most
        self._limit = min(most_unpacked(packed), most or most_unpacked(packed))
        self._spent = 0

    def read(self, stream: Readable) -> bytes:
        """Return the rest of a stream; what is beyond the limit is never in memory.

        Raises:
            TooLarge: it holds more than was left of the allowance.
        """
        content = io.BytesIO()
        while block := stream.read(_BLOCK):
            self._spent += len(block)
            if self._spent > self._limit:
                raise TooLarge(self._limit, self._most)
            content.write(block)
        return content.getvalue()


def packed_as(file: IO[bytes]) -> str:
    """Return how a file that is open at its beginning is compressed: ".gz", ".bz2", ".xz" or ""."""
    head = file.read(max(map(len, _KINDS)))
    file.seek(0)
    return next((ending for magic, ending in _KINDS.items() if head.startswith(magic)), "")


def unpacking(file: IO[bytes], ending: str) -> IO[bytes]:
    """Return a stream of the unpacked content of a file with this compression suffix."""
    if ending == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if ending == ".bz2":
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if ending == ".xz" else file


def read_unpacked(path: Path, most: int) -> bytes:
    """Return the content of a file, of at most ``most`` bytes, unpacked if it is compressed.

    Raises:
        SourceError: it cannot be read, is damaged, or holds more.
    """
    with readable(path), open_file(path) as file:
        try:
            return Allowance(path.stat().st_size, most).read(UnpackedFile(file))
        except DAMAGE as error:
            raise SourceError(f"cannot read {path}: {error}") from error


def read_named(path: Path, most: int | None = None) -> bytes:
    """Return the content of a file, unpacked if its name ends with ``.gz``.

    Raises:
        UsageError: it is no gzip file although it is called so, or holds more than ``most`` bytes,
            or than a compressed file of its size may.
    """
    ending = ".gz" if path.name.lower().endswith(".gz") else ""
    with readable(path), open_file(path) as file:
        try:
            return Allowance(path.stat().st_size, most).read(unpacking(file, ending))
        except TooLarge as error:
            raise UsageError(f"cannot read {path}: {error}") from error
        except DAMAGE as error:
            raise UsageError(f"{path} is no gzip file: {error}") from error


def installed_data(package: str, module: str, folder: str, extra: str, purpose: str) -> Path:
    """Return a folder of data of an installed package, given its importable name.

    Raises:
        MissingDependencyError: it is not installed; ``purpose`` needs it, ``extra`` installs it.
    """
    missing = MissingDependencyError(package, extra, purpose)
    try:
        package_version(package)
        spec = find_spec(module)
    except (PackageNotFoundError, ValueError) as error:
        raise missing from error
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (data := Path(place, folder)).is_dir():
            return data
    raise missing


class LineTooLong(ValueError):
    """A line is longer than any of the format: the file is something else."""


@dataclass
class MalformedLines:
    """The malformed lines of a source: counted, the first few named."""

    path: Path
    count: int = 0
    lines: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, line: int, why: str) -> None:
        """Count a line, given its number (the first is 1)."""
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append(f"line {line:,}: {why}")

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a note for the snapshot; empty if all lines were well-formed."""
        if not self.count:
            return ()
        which = "line was" if self.count == 1 else "lines were"
        return (f"{self.count:,} malformed {which} left out: {'; '.join(self.first)}",)


class UnpackedFile:
    """The content of a file, unpacked if it is compressed with gzip, bzip2 or xz.

    Its first bytes show how it is compressed, not its name: servers unpack files and keep the name.
    """

    def __init__(
        self,
        file: IO[bytes],
        progress: Progress | None = None,
        digest: hashlib._Hash | None = None,
        member: ZipInfo | None = None,
    ) -> None:
        """Take a file that is open at its beginning.

        ``progress`` is called with how many bytes of the file have been read, and its size;
        ``digest`` is updated with the content that is read. ``member`` says which member of a zip
        the file is: to seek its end would unpack all of it.
        """
        self._size = member.file_size if member else file.seek(0, 2)
        file.seek(0)
        self._file, self._progress, self._digest = file, progress, digest
        self._content = unpacking(file, packed_as(file))
        self._packed = member.compress_size if member else None
        self._read = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, ``size`` at most; a mark of UTF-8 (BOM) at first is skipped.

        Raises:
            TooLarge: the file unpacks to more than `most_unpacked`.
        """
        block = self._content.read(size)
        at_beginning = not self._read
        self._read += len(block)
        if self._content is not self._file and self._read > ALWAYS:
            limit = most_unpacked(self._file.tell() if self._packed is None else self._packed)
            if self._read > limit:
                raise TooLarge(limit)
        if self._digest:
            self._digest.update(block)
        if self._progress:
            self._progress(self._file.tell(), self._size)
        return block.removeprefix(BOM_UTF8) if at_beginning else block

    def blocks(self, size: int, longest: int) -> Iterator[bytes]:
        """Yield blocks of whole lines; the last line may lack its end.

        Args:
            size: the approximate size of a block in bytes.
            longest: bytes of a line; without a limit, a file without line ends fills the memory.

        Raises:
            LineTooLong: a line is longer.
        """
        rest = b""
        while block := self.read(size):
            lines, end, begun = block.rpartition(b"\n")
            if end:
                yield rest + lines + end
                rest = begun
                continue
            rest += begun
            if len(rest) > longest:
                raise LineTooLong(f"a line of more than {longest:,} bytes")
        if rest:
            yield rest


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
            return _read_folder(path, wanted, marker, layouts, largest)
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
    with open_file(path) as file:
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
    path: Path, wanted: Names, marker: Names, layouts: Sequence[str], largest: int
) -> dict[str, bytes]:
    for folder in (path / layout for layout in layouts):
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [file for file in files if file.is_file() and wanted(file.name)]
        if any(marker(file.name) for file in files):
            return {file.name: _read_plain(file, largest) for file in files}
    return {}


def _read_plain(path: Path, largest: int) -> bytes:
    with open_file(path) as file:
        return Allowance(os.fstat(file.fileno()).st_size, largest).read(file)


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
