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
        SourceError: a word is not UTF-8, or there is none.
    """
    import pyarrow as pa

    known: dict[str, None] = {}
    read = empty = dimensions = 0
    digest = hashlib.sha256()
    (folder / MATRIX_FOLDER).mkdir()
    with (folder / MATRIX_FOLDER / MATRIX_FILE).open("wb") as file:
        for batch in batches:
            dimensions = batch.vectors.shape[1]
            kept = []
            for at, encoded in enumerate(batch.words):
                word = _decoded(encoded, source, read + at + 1)
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
    if not known:
        raise SourceError(f"{source} holds no words")
    notes = []
    if repeated := read - empty - len(known):
        notes.append(f"{repeated:,} further vectors of words that have one were left out.")
    if empty:
        notes.append(f"{empty:,} vectors of the empty word were left out.")
    table = pa.table({"word": pa.array(known, pa.string())})
    counts = {"dimensions": dimensions}
    return table, Engine(MATRIX_FOLDER, digest.hexdigest(), counts), tuple(notes)


def _decoded(word: bytes, source: str, number: int) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{source}, word {number:,}: {word[:40]!r} is not UTF-8; convert the file first"
        ) from error
