"""Reading word vectors from the binary files of word2vec.

A first line states how many words there are, and the dimensions. Each word is followed by a space
and its numbers, as 32-bit floats; some writers put a line end after these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kb_cache.unpack import UnpackedFile
from kb_cache.vectors.text import Batch
from kb_cache.vectors.types import Float32s
from kbprobe.errors import SourceError

_BLOCK_BYTES = 1 << 22
_LONGEST_WORD = 1 << 12


def read_binary(
    file: UnpackedFile, source: str, dimensions: int, count: int, skip: int
) -> Iterator[Batch]:
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
            yield Batch(words, _numbers(vectors, source, dimensions, found - len(words)))
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
