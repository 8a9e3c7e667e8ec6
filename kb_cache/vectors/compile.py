"""Compiling word vectors: the words as a table, their vectors as a matrix to map into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb_cache.base import Engine
from kb_cache.vectors.text import Batch
from kb_cache.vectors.types import MATRIX_FILE, MATRIX_FOLDER
from kbprobe.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa


MOST_UNDECODABLE = 0.001
"""Share of words that may be other than UTF-8: word2vec cut long ones within a character."""


def compile_vectors(
    batches: Iterable[Batch], source: str, folder: Path
) -> tuple[pa.Table, Engine, tuple[str, ...]]:
    """Write the matrix into a snapshot's folder, batch by batch.

    Of several vectors of a word the first counts.

    Args:
        batches: of words and vectors.
        source: its name in messages.
        folder: the snapshot's.

    Returns:
        The table of words, the matrix, and notes on what was left out.

    Raises:
        SourceError: there is no word, or too many are not UTF-8.
    """
    import pyarrow as pa

    known: dict[str, None] = {}
    read = empty = dimensions = 0
    undecodable: list[tuple[int, bytes]] = []
    digest = hashlib.sha256()
    (folder / MATRIX_FOLDER).mkdir()
    with (folder / MATRIX_FOLDER / MATRIX_FILE).open("wb") as file:
        for batch in batches:
            dimensions = batch.vectors.shape[1]
            kept = []
            for at, encoded in enumerate(batch.words):
                try:
                    word = encoded.decode()
                except UnicodeDecodeError:
                    undecodable.append((read + at + 1, encoded[:40]))
                    continue
                if not word:
                    empty += 1
                elif word not in known:
                    known[word] = None
                    kept.append(at)
            read += len(batch.words)
            rows = batch.vectors if len(kept) == len(batch.words) else batch.vectors[kept]
            content = np.ascontiguousarray(rows, dtype="<f4").tobytes()
            digest.update(content)
            file.write(content)
    if len(undecodable) > MOST_UNDECODABLE * read:
        number, first = undecodable[0]
        raise SourceError(
            f"{source}: {len(undecodable):,} of {read:,} words are not UTF-8, the first of them "
            f"word {number:,}, {first!r}; convert the file first"
        )
    if not known:
        raise SourceError(f"{source} holds no words")
    notes = []
    if repeated := read - empty - len(undecodable) - len(known):
        notes.append(f"{repeated:,} further vectors of words that have one were left out.")
    if undecodable:
        notes.append(f"{len(undecodable):,} vectors of words that are not UTF-8 were left out.")
    if empty:
        notes.append(f"{empty:,} vectors of the empty word were left out.")
    table = pa.table({"word": pa.array(known, pa.string())})
    counts = {"dimensions": dimensions}
    return table, Engine(MATRIX_FOLDER, digest.hexdigest(), counts), tuple(notes)
