"""Reading large text files, plain or compressed, in bounded memory; and what is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kb_cache.base import Progress

if TYPE_CHECKING:
    import hashlib

#: What is unpacked may be so many times as large as the file, or have so many bytes, whichever is
#: more. Text becomes five to fifty times as large; files made to fill a disk, a thousand times.
MOST_TIMES, ALWAYS = 200, 1 << 28
#: Malformed lines that a note names.
_NAMED = 5


class TooLarge(ValueError):
    """A file unpacks to more than any text does: it was made to fill memory or disk."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"it unpacks to more than {limit:,} bytes, {MOST_TIMES} times its size; if that is as "
            "it should be, unpack it, and give the unpacked file"
        )


#: What reading a damaged archive raises.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, TooLarge)


def most_unpacked(size: int) -> int:
    """Return how many bytes a compressed file of so many may unpack to."""
    return max(ALWAYS, MOST_TIMES * size)


def unpacked(content: bytes, ending: str) -> bytes:
    """Return what a file holds that is compressed as its name's ending says, .gz or .bz2.

    Raises:
        TooLarge: it unpacks to more than `most_unpacked`.
        OSError, EOFError, zlib.error: it is damaged.
    """
    packed = io.BytesIO(content)
    limit = most_unpacked(len(content))
    with gzip.open(packed) if ending == ".gz" else bz2.open(packed) as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise TooLarge(limit)
    return found


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
        """A note for the snapshot; nothing if all lines were well-formed."""
        if not self.count:
            return ()
        which = "line was" if self.count == 1 else "lines were"
        return (f"{self.count:,} malformed {which} left out: {'; '.join(self.first)}",)


class UnpackedFile:
    """The content of a file, unpacked if it is compressed with gzip or bzip2.

    Its first bytes tell how it is compressed, not its name: servers unpack files and keep the name.
    """

    def __init__(
        self,
        file: IO[bytes],
        progress: Progress | None = None,
        digest: hashlib._Hash | None = None,
        size: int | None = None,
    ) -> None:
        """Take a file that is open at its beginning.

        ``progress`` is called with how many bytes of the file have been read, and its size;
        ``digest`` is updated with the content that is read. ``size`` is the file's, where it is
        known: to seek the end of an archive's member would unpack all of it.
        """
        head = file.read(3)
        self._size = file.seek(0, 2) if size is None else size
        file.seek(0)
        self._file, self._progress, self._digest = file, progress, digest
        self._content: IO[bytes] | gzip.GzipFile | bz2.BZ2File = file
        self._read = 0
        if head.startswith(b"\x1f\x8b"):
            self._content = gzip.GzipFile(fileobj=file)
        elif head.startswith(b"BZh"):
            self._content = bz2.BZ2File(file)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            TooLarge: the file unpacks to more than `most_unpacked`.
        """
        block = self._content.read(size)
        self._read += len(block)
        if self._content is not self._file and self._read > ALWAYS:
            limit = most_unpacked(self._file.tell())
            if self._read > limit:
                raise TooLarge(limit)
        if self._digest:
            self._digest.update(block)
        if self._progress:
            self._progress(self._file.tell(), self._size)
        return block

    def blocks(self, size: int, longest: int) -> Iterator[bytes]:
        """Yield blocks of whole lines; the last line may lack its end.

        Args:
            size: of a block in bytes, about.
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
