"""Common parts of corpus readers: the files of a source, their text, and skipped items."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kb_cache.base import readable
from kb_cache.unpack import DAMAGE, Allowance, TooLarge, check_member, opened_tar, unpacking
from kbprobe.errors import SourceError
from kbprobe.reading import open_file

#: Suffixes of the files to read, ignoring .gz and .bz2.
ENDINGS = (".txt", ".text", ".jsonl", ".ndjson", ".json", ".conllu", ".tsv", ".xml")
#: Bytes of a file, unpacked, and of all files: a corpus is compiled in memory.
LARGEST, LARGEST_IN_ALL = 1 << 30, 4 << 30
#: Files of a corpus, or members of its archive.
MOST_FILES = 1_000_000
#: Characters of a sentence or a passage; longer ones are tables, or text without line ends.
LONGEST = 10_000

_COMPRESSED = (".gz", ".bz2")
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, *DAMAGE)
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160), 0xFEFF])


@dataclass
class Skipped:
    """Counts of what a reader left out or repaired, by reason, with the place of the first."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, where: str, number: int = 1) -> None:
        """Count something; ``reason`` completes "12 ..."."""
        self.counts[reason] += number
        self.first.setdefault(reason, where)

    def notes(self) -> tuple[str, ...]:
        """Return the counts as sentences."""
        return tuple(
            f"{number:,} {reason} (first: {self.first[reason]})."
            for reason, number in self.counts.most_common()
        )


def read_all(path: Path) -> dict[str, bytes]:
    """Read a file, or the text files (by suffix) in a folder, zip or tar, by path in it.

    Files compressed with gzip or bzip2 are unpacked. Names that begin with a dot are left out.

    Raises:
        SourceError: it cannot be read, is damaged, or holds no such file.
    """
    if not path.exists():
        raise SourceError(f"no such file or folder: {path}")
    found: dict[str, bytes] = {}
    try:
        with readable(path), ExitStack() as stack:
            allowance = Allowance(_size(path), LARGEST_IN_ALL)
            for name, size, opened in _members(path, stack):
                if size > LARGEST:
                    raise SourceError(f"{path}: {name} has {size:,} bytes; divide it first")
                ending = next((end for end in _COMPRESSED if name.lower().endswith(end)), "")
                with opened() as file:
                    found[name[: len(name) - len(ending)]] = allowance.read(unpacking(file, ending))
                if len(found) > MOST_FILES:
                    raise _too_many(path)
    except TooLarge as error:
        raise SourceError(f"cannot read {path}: {error}") from error
    except (*_DAMAGE, RuntimeError) as error:
        raise SourceError(f"{path} is damaged or truncated: {error}. Get it again") from error
    if not found:
        raise SourceError(
            f"{path} holds no file of text: their names end in {', '.join(ENDINGS)}, with or "
            "without .gz or .bz2"
        )
    return dict(sorted(found.items()))


_Member = tuple[str, int, Callable[[], IO[bytes]]]


def _size(path: Path) -> int:
    """Return the size of a file, or of all files in a folder, in bytes."""
    files = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files)


def _too_many(path: Path) -> SourceError:
    return SourceError(f"{path} holds more than {MOST_FILES:,} files; fetch a part of it")


def _members(path: Path, stack: ExitStack) -> Iterator[_Member]:
    """Yield the name and size of each file to read, and a function that opens it."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            name = file.relative_to(path).as_posix()
            if file.is_file() and _wanted(name):
                if not file.resolve().is_relative_to(path.resolve()):
                    raise SourceError(
                        f"{file} is a link to {file.resolve()}, outside of the folder; copy the "
                        "file into the folder, or remove the link"
                    )
                yield name, file.stat().st_size, lambda f=file: open_file(f)  # type: ignore[misc]
    elif zipfile.is_zipfile(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        for member in archive.infolist():
            if not member.is_dir() and _wanted(member.filename):
                check_member(member)
                yield member.filename, member.file_size, lambda m=member: archive.open(m)  # type: ignore[misc]
    elif (tar := stack.enter_context(opened_tar(path))) is not None:
        for number, entry in enumerate(tar):
            if number >= MOST_FILES:
                raise _too_many(path)
            if entry.isfile() and _wanted(entry.name):
                yield entry.name, entry.size, lambda e=entry: tar.extractfile(e) or io.BytesIO()  # type: ignore[misc]
    elif path.suffix.lower() in (".zip", ".tar", ".tgz"):
        raise SourceError(f"{path} is damaged or truncated: it is not an archive. Get it again")
    else:
        yield path.name, path.stat().st_size, lambda: open_file(path)


def _wanted(name: str) -> bool:
    hidden = any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
    plain = name.lower()
    for ending in _COMPRESSED:
        plain = plain.removesuffix(ending)
    return not hidden and plain.endswith(ENDINGS)


def decoded(content: bytes, name: str, skipped: Skipped) -> str:
    r"""Return a file's text (UTF-8, UTF-16 with its mark, or Windows-1252), without controls.

    Lines that are not UTF-8 are read as Windows-1252 one by one, so that a file of mixed
    encodings loses nothing. Line ends become "\n".
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", errors="replace")
    else:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = _line_by_line(content, name, skipped)
    return text.translate(_CONTROLS).replace("\r\n", "\n").replace("\r", "\n")


def _line_by_line(content: bytes, name: str, skipped: Skipped) -> str:
    lines = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            where = f"{name}, line {number:,}"
            skipped.add("lines are not UTF-8 and were read as Windows-1252", where)
            lines.append(line.decode("cp1252", errors="replace"))
    return "\n".join(lines)


def texts_of(files: Mapping[str, bytes], skipped: Skipped) -> Iterator[tuple[str, str]]:
    """Yield name and text of every file; one without any text is counted."""
    for name, content in files.items():
        text = decoded(content, name, skipped)
        if text.strip():
            yield name, text
        else:
            skipped.add("empty files were left out", name)
