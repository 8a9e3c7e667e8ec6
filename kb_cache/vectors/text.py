"""Reading word vectors from text: a word and its numbers in each line, as GloVe and word2vec do."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kb_cache.unpack import LineTooLong, UnpackedFile
from kb_cache.vectors.types import Float32s
from kbprobe.errors import SourceError

_BLOCK_BYTES = 1 << 22
_LONGEST_LINE = 1 << 20
#: Characters of decimal numbers, and separators.
_NUMERIC = b"0123456789.eE+- "
_DECIMAL = re.compile(rb"[+-]?\d*\.\d+([eE][+-]?\d+)?")


class Batch(NamedTuple):
    """Some words, still encoded, and their vectors, shape [words, dimensions]."""

    words: list[bytes]
    vectors: Float32s


def read_text(
    file: UnpackedFile, source: str, dimensions: int, header: int | None = None
) -> Iterator[Batch]:
    """Yield the words of a text file and their vectors.

    Words may hold spaces, as a few of GloVe's 840B do: the last ``dimensions`` fields of a line
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
    """Return whether there is nothing but decimal numbers and spaces."""
    return not text.translate(None, _NUMERIC)


def _parsed(lines: list[bytes], source: str, first: int, dimensions: int) -> Batch:
    """Read whole lines at once; where one is malformed, find it and say so."""
    fields = [line.rstrip(b" \r").rsplit(b" ", dimensions) for line in lines]
    words = [one[0] for one in fields]
    if all(len(one) == dimensions + 1 for one in fields):
        numbers = b" ".join([b" ".join(one[1:]) for one in fields])
        spaced = [word for word in words if b" " in word]
        sound = is_numeric(numbers) and b"  " not in numbers
        if sound and not any(_ends_in_decimal(word) for word in spaced):
            vectors = _floats(numbers)
            # A field that is no number ends the reading early, or counts as several.
            if vectors is not None and vectors.size == len(lines) * dimensions:
                shaped = vectors.reshape(len(lines), dimensions)
                if np.isfinite(shaped).all():
                    return Batch(words, shaped)
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
