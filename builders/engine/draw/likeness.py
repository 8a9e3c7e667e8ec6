"""How similar questions and choices are, as text encoders see them: what matched draws go by.

An encoder's vectors are small integers, so that dot products are exact in single precision and a
draw is the same on every machine. Those of WordNet's texts come with the package
(``.ci/text_vectors.py`` makes them); texts that are in no table have the vectors of the static
encoder (:mod:`kbprobe.similarity`). Models that a user names encode all texts anew: rounded to
integers, their vectors hardly differ between machines, but a few draws may.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbprobe.arrays import Bools, Ints
from kbprobe.files import regular_path
from kbprobe.similarity import TABLE, static_encoder, text_vectors
from kbprobe.tokens import tokenise

logger = logging.getLogger(__name__)

Codes = npt.NDArray[np.int8]
Products = npt.NDArray[np.float32]
Similarities = npt.NDArray[np.int32]

LENGTH = 256
"""The length of the static encoder's vectors."""

STATIC_SPREAD = 6500
"""The spread of their dot products."""

DEVIATION = 40
"""The standard deviation of the entries of an encoder's vectors as integers: those beyond three
deviations are clipped."""

SAMPLE, STRIDE = 20_000, 7919
"""The number of pairs by which the spread of dot products is estimated, and a prime by which one
side advances, so that hardly any pair is taken twice."""

UNIT = 64
"""Similarities are counted in this fraction of an encoder's spread."""

PART = 1 << 7
"""So many questions are compared at once: few enough for a processor's cache."""

LEAST_KNOWN = 0.75
"""The least share of questions in the tables; with fewer, all have the static encoder's vectors."""

MATCH = "--match"
"""The option that names encoders, for messages."""

LARGEST_SUM = 1 << 24
"""Integers up to this are exact in single precision."""


class Encoder(NamedTuple):
    """A text encoder.

    Attributes:
        name: its name.
        sha256: the digest of its weights and configuration, as results name them; of word vectors
            and of the static encoder, of their table.
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
        most_alike: see `ComparedTexts`.
    """

    views: tuple[View, ...]
    question: Ints
    choice: Ints
    most_alike: int | None = None

    @property
    def known(self) -> Bools:
        """(lines,) whether a line's question and its gold have vectors."""
        return (self.question >= 0) & (self.choice >= 0)

    @property
    def most_similarity(self) -> int:
        """How similar two choices of a question may be, in `similarities`; see ``most_alike``."""
        assert self.most_alike is not None
        return UNIT * self.most_alike * sum(view.encoder.weight for view in self.views)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each encoder's weights, by its name."""
        return {view.encoder.name: view.encoder.sha256 for view in self.views}


class ComparedTexts(NamedTuple):
    """The texts by which questions and golds are compared.

    Attributes:
        asked: the distinct texts of questions.
        shown: the distinct texts of choices.
        question: (lines,) the number of each line's question in ``asked``.
        choice: (lines,) the number of each line's gold in ``shown``.
        tables: those with the vectors of questions and of choices, by the same encoders; None:
            there are none.
        most_alike: how similar a choice may be to the gold, in spreads (`Encoder`) of the
            encoders' weighted mean; None: as similar as any.
    """

    asked: Sequence[str]
    shown: Sequence[str]
    question: Ints
    choice: Ints
    tables: tuple[VectorTable, VectorTable] | None = None
    most_alike: int | None = None


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


def likeness_of(compared: ComparedTexts, models: Sequence[str] = ()) -> Likeness:
    """Return how similar questions and golds are.

    Args:
        compared: their texts.
        models: folders or Hub ids of encoders; none: the vectors that come with the package, and
            where most of the texts have none, those of the static encoder.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        UsageError: a model cannot be loaded.
        KbprobeError: its files cannot be read or fetched.
    """
    if models:
        # Most builds name no model, and need not import what loads one.
        from kbprobe.audit.encoder import encoder_digest

        names = [Path(model).resolve().name if Path(model).exists() else model for model in models]
        names = names if len({*names}) == len(names) else [*models]
        digests = [encoder_digest(model, MATCH) for model in models]
        views = tuple(map(partial(_encoded, compared), models, names, digests))
        return Likeness(views, compared.question, compared.choice, compared.most_alike)
    if compared.tables:
        likeness = _looked_up(compared, *compared.tables)
        if np.count_nonzero(likeness.known) >= LEAST_KNOWN * likeness.known.size:
            return likeness
    return Likeness((_static(compared),), compared.question, compared.choice, compared.most_alike)


def _looked_up(compared: ComparedTexts, questions: VectorTable, choices: VectorTable) -> Likeness:
    left, right = questions.rows_of(compared.asked), choices.rows_of(compared.shown)
    number = [np.where(rows < 0, -1, np.cumsum(rows >= 0) - 1) for rows in (left, right)]
    views = tuple(
        View(
            encoder,
            questions.vectors(place, left[left >= 0]),
            choices.vectors(place, right[right >= 0]),
        )
        for place, encoder in enumerate(questions.encoders)
    )
    question, choice = number[0][compared.question], number[1][compared.choice]
    return Likeness(views, question, choice, compared.most_alike)


def in_units(products: Products, encoder: Encoder) -> Similarities:
    """Return dot products of an encoder's vectors, or differences of them, in ``UNIT``."""
    scaled = products * np.float32(UNIT / encoder.spread)
    units: Similarities = np.rint(scaled, out=scaled).astype(np.int32)
    return units


def similarities(views: Sequence[View]) -> Similarities:
    """Return (questions, choices) similarities by all encoders, in ``UNIT`` times their weights."""
    return sum_by_weight(
        (view.encoder, dot_products(view.questions, view.choices)) for view in views
    )


def sum_by_weight(products: Iterable[tuple[Encoder, Products]]) -> Similarities:
    """Add dot products of several encoders, each in ``UNIT`` times its weight."""
    parts = (encoder.weight * in_units(product, encoder) for encoder, product in products)
    return reduce(partial(np.add, dtype=np.int32), parts)


def choice_similarities(views: Sequence[View], left: Ints, right: Ints) -> Similarities:
    """Return the similarities of choices in pairs, given by their rows in the views."""
    parts = [np.empty((0, *left.shape[1:]), dtype=np.int32)]
    for some in in_parts(len(left)):
        one, other = left[some], right[some]
        parts.append(
            sum_by_weight(
                (encoder, row_products("...d,...d->...", choices[one], choices[other]))
                for encoder, _, choices in views
            )
        )
    return np.concatenate(parts)


def gold_places(likeness: Likeness, choices: Ints) -> Ints:
    """Return (lines,) how many choices are more similar to the question than the gold.

    Args:
        likeness: of each line's question; its gold is the first of its choices.
        choices: (lines, K) the rows of the choices in the views.
    """
    parts = [np.empty(0, dtype=np.int64)]
    for some in in_parts(len(choices)):
        total = sum_by_weight(
            (
                encoder,
                row_products(
                    "id,ijd->ij", questions[likeness.question[some]], shown[choices[some]]
                ),
            )
            for encoder, questions, shown in likeness.views
        )
        parts.append((total > total[:, :1]).sum(axis=1))
    return np.concatenate(parts)


def in_parts(size: int) -> Iterator[slice]:
    """Yield the parts, of ``PART`` lines each, in which ``size`` lines are compared."""
    return (slice(start, start + PART) for start in range(0, size, PART))


def dot_products(left: Codes, right: Codes) -> Products:
    """Return (left, right) the dot products of vectors, exactly."""
    kind = _exact_kind(left, right)
    product: npt.NDArray[np.floating] = np.matmul(left.astype(kind), right.astype(kind).T)
    return product.astype(np.float32, copy=False)


def row_products(axes: str, left: Codes, right: Codes) -> Products:
    """Return dot products of vectors row by row, exactly."""
    kind = _exact_kind(left, right)
    product = np.einsum(axes, left.astype(kind), right.astype(kind))
    return np.asarray(product.astype(np.float32, copy=False))


def _exact_kind(left: Codes, right: Codes) -> type[np.floating]:
    """Return a type in which dot products of vectors are exact."""
    most = left.shape[-1] * int(np.abs(left).max(initial=0)) * int(np.abs(right).max(initial=0))
    return np.float32 if most < LARGEST_SUM else np.float64


def _static(compared: ComparedTexts) -> View:
    """Return the texts as the static encoder sees them."""
    asked, shown = (pa.array(texts, pa.string()) for texts in (compared.asked, compared.shown))
    questions, choices = tokenise(asked, shown)
    words = static_encoder().words(questions.words)
    left, right = (_of_unit_length(text_vectors(texts, words)) for texts in (questions, choices))
    return View(_static_encoder(), left, right)


@lru_cache(maxsize=1)
def _static_encoder() -> Encoder:
    digest = hashlib.sha256(Path(regular_path(TABLE)).read_bytes()).hexdigest()
    return Encoder("static", digest, 1, STATIC_SPREAD)


def _of_unit_length(vectors: npt.NDArray[np.int32]) -> Codes:
    """Scale vectors to the same length, as far as a byte allows."""
    wide = vectors.astype(np.int64)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide).astype(np.float64))
    scaled = wide * (LENGTH / np.maximum(length, 1))[:, None]
    return np.asarray(np.clip(np.rint(scaled), -127, 127).astype(np.int8))


def _encoded(compared: ComparedTexts, model: str, name: str, digest: str) -> View:
    """Return the texts as a transformers model sees them, questions and choices centred."""
    from kbprobe.audit.encoder import encode

    texts = [*compared.asked, *compared.shown]
    logger.info("encoding %s texts with %s (%s)", f"{len(texts):,}", name, MATCH)
    vectors = encode(texts, model, MATCH)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    sides = vectors[: len(compared.asked)], vectors[len(compared.asked) :]
    left, right = (side - side.mean(axis=0) for side in sides)
    scale = DEVIATION / max(float(np.concatenate([left, right]).std()), 1e-9)
    codes = [np.clip(np.rint(side * scale), -127, 127).astype(np.int8) for side in (left, right)]
    return View(Encoder(name, digest, 1, _spread(*codes)), *codes)


def _spread(questions: Codes, choices: Codes) -> int:
    """Return the standard deviation of the dot products of some pairs."""
    pairs = np.arange(SAMPLE, dtype=np.int64)
    left, right = questions[pairs % len(questions)], choices[pairs * STRIDE % len(choices)]
    products = np.einsum("ij,ij->i", left, right, dtype=np.int64)
    return max(math.isqrt(int((products**2).sum()) // SAMPLE), 1)
