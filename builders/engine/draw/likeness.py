"""How similar questions and choices are, as text encoders see them: what matched draws go by.

An encoder's vectors are small integers, so that dot products are exact in single precision and a
draw is the same on every machine. Those of WordNet's texts come with the package
(``.ci/text_vectors.py`` makes them); texts that are in no table have the vectors of the static
encoder (:mod:`kbprobe.similarity`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbprobe.arrays import Bools, Ints
from kbprobe.files import regular_path
from kbprobe.similarity import TABLE, static_encoder, text_vectors
from kbprobe.tokens import tokenise

Codes = npt.NDArray[np.int8]

LENGTH = 256
"""The length of the static encoder's vectors."""

STATIC_SPREAD = 6500
"""The spread of their dot products."""

LARGEST_SUM = 1 << 24
"""Integers up to this are exact in single precision."""


class Encoder(NamedTuple):
    """A text encoder.

    Attributes:
        name: its name.
        sha256: the digest of its weights and configuration, as results name them.
        weight: how much a draw prefers groups that are hard for it, relative to other encoders.
        spread: the standard deviation of dot products of its vectors for random pairs.
    """

    name: str
    sha256: str
    weight: int
    spread: int


class View(NamedTuple):
    """Questions and choices as an encoder sees them: (questions, dimensions) and (choices, ...)."""

    encoder: Encoder
    questions: Codes
    choices: Codes


class Likeness(NamedTuple):
    """What encoders say of the questions that distractors are drawn for.

    Attributes:
        views: one for each encoder.
        question: (lines,) the row of each line's question in the views; -1: it has no vector.
        choice: (lines,) the row of each line's gold, in the same way.
    """

    views: tuple[View, ...]
    question: Ints
    choice: Ints

    @property
    def known(self) -> Bools:
        """(lines,) whether a line's question and its gold have vectors."""
        return (self.question >= 0) & (self.choice >= 0)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each encoder's weights, by its name."""
        return {view.encoder.name: view.encoder.sha256 for view in self.views}


class VectorTable(NamedTuple):
    """Vectors of texts, by the hash of the text.

    Attributes:
        encoders: the encoders.
        hashes: (texts,) ascending.
        columns: for each encoder its dimensions, an array of all texts each.
    """

    encoders: tuple[Encoder, ...]
    hashes: npt.NDArray[np.uint64]
    columns: tuple[tuple[pa.Array, ...], ...]

    def rows_of(self, texts: Sequence[str]) -> Ints:
        """Return the row of each text; -1 if it is not in the table."""
        wanted = text_hashes(texts)
        if not self.hashes.size:
            return np.full(wanted.size, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.hashes, wanted), self.hashes.size - 1)
        return np.where(self.hashes[place] == wanted, place, -1).astype(np.int64)

    def vectors(self, encoder: int, rows: Ints) -> Codes:
        """Return (rows, dimensions) an encoder's vectors."""
        columns = self.columns[encoder]
        made = np.empty((rows.size, len(columns)), dtype=np.int8)
        for at, column in enumerate(columns):
            made[:, at] = np.frombuffer(column.buffers()[1], dtype=np.int8)[rows]
        return made


def text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return a number for each text."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


@lru_cache(maxsize=4)
def vector_table(path: Path) -> VectorTable:
    """Read a table of vectors."""
    table = pa.ipc.open_file(pa.memory_map(regular_path(path))).read_all()
    described = json.loads(table.schema.metadata[b"encoders"])
    encoders = tuple(
        Encoder(one["name"], one["sha256"], one["weight"], one["spread"]) for one in described
    )
    arrays = [column.combine_chunks() for column in table.columns[1:]]
    columns, start = [], 0
    for one in described:
        columns.append(tuple(arrays[start : start + one["dimensions"]]))
        start += one["dimensions"]
    hashes = np.frombuffer(table["text"].combine_chunks().buffers()[1], dtype=np.uint64)
    return VectorTable(encoders, hashes, tuple(columns))


def likeness_of(
    tables: tuple[VectorTable, VectorTable],
    asked: Sequence[str],
    shown: Sequence[str],
    question: Ints,
    choice: Ints,
) -> Likeness:
    """Look the texts of questions and choices up.

    Args:
        tables: those with the vectors of questions and of choices, by the same encoders.
        asked: the distinct texts of questions.
        shown: the distinct texts of choices.
        question: (lines,) the number of each line's question in ``asked``.
        choice: (lines,) the number of each line's gold in ``shown``.
    """
    questions, choices = tables
    left, right = questions.rows_of(asked), choices.rows_of(shown)
    number = [np.where(rows < 0, -1, np.cumsum(rows >= 0) - 1) for rows in (left, right)]
    views = tuple(
        View(
            encoder,
            questions.vectors(place, left[left >= 0]),
            choices.vectors(place, right[right >= 0]),
        )
        for place, encoder in enumerate(questions.encoders)
    )
    return Likeness(views, number[0][question], number[1][choice])


def dot_products(left: Codes, right: Codes) -> npt.NDArray[np.float32]:
    """Return (left, right) the dot products of vectors, exactly."""
    most = left.shape[1] * int(np.abs(left).max(initial=0)) * int(np.abs(right).max(initial=0))
    kind = np.float32 if most < LARGEST_SUM else np.float64
    product: npt.NDArray[np.floating] = np.matmul(left.astype(kind), right.astype(kind).T)
    return product.astype(np.float32)


def static_likeness(
    asked: Sequence[str], shown: Sequence[str], question: Ints, choice: Ints
) -> Likeness:
    """Return what the static encoder says; the arguments are those of `likeness_of`."""
    questions, choices = tokenise(pa.array(asked, pa.string()), pa.array(shown, pa.string()))
    words = static_encoder().words(questions.words)
    left, right = (_of_unit_length(text_vectors(texts, words)) for texts in (questions, choices))
    return Likeness((View(_static(), left, right),), question, choice)


@lru_cache(maxsize=1)
def _static() -> Encoder:
    digest = hashlib.sha256(Path(regular_path(TABLE)).read_bytes()).hexdigest()
    return Encoder("static", digest, 1, STATIC_SPREAD)


def _of_unit_length(vectors: npt.NDArray[np.int32]) -> Codes:
    """Scale vectors to the same length, as far as a byte allows."""
    wide = vectors.astype(np.int64)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide).astype(np.float64))
    scaled = wide * (LENGTH / np.maximum(length, 1))[:, None]
    return np.asarray(np.clip(np.rint(scaled), -127, 127).astype(np.int8))
