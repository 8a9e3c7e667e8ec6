"""The similarity baseline: which choice is most similar to the question, without any training.

A question about a hypernym can be answered by someone who only knows which words are about the same
things. How far that goes is measured on the same rows as a model's accuracy, so that a report can
say whether the model does better.

Similarity is that of a small static encoder, which comes with the package: each word piece has a
vector, derived from all-MiniLM-L6-v2 by ``.ci/static_encoder.py``, and a text has the mean of its
words'. Guarantees:

- Vectors, means and dot products are integers, and what is left to compute of each cosine (square
  roots, a product, a quotient) is rounded as IEEE 754 defines: the same on every machine.
- A text's words are those of :func:`kbprobe.tokens.tokenise`, divided into pieces as the model's
  tokenizer does: the longest piece first. A word that cannot be divided has no vector.
- Questions are centred, and so are choices, since all questions of a wording share its words.
- Cost: O(words of the distinct texts).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbprobe.arrays import Floats, Ints, run_starts
from kbprobe.files import regular_path
from kbprobe.tokens import Tokens

DIMENSIONS = 128
CONTINUED = "##"
"""Prefix of pieces that continue a word."""

TABLE = Path(__file__).parent / "data" / "static-encoder" / "pieces.arrow"
LONGEST_WORD = 100
"""Maximum number of characters of a word that has a vector, as in the model's tokenizer."""

FRACTION = 8
"""Binary digits after the point of a text's mean vector."""

PART = 1 << 15
"""Number of words, or of rows, whose vectors are gathered at once: bounds memory."""


class StaticEncoder(NamedTuple):
    """The vectors of word pieces.

    Attributes:
        number: piece -> its row.
        vectors: (pieces, DIMENSIONS) small integers.
    """

    number: dict[str, int]
    vectors: npt.NDArray[np.int8]

    def words(self, words: pa.Array) -> npt.NDArray[np.int32]:
        """Return (words, DIMENSIONS) the sum of each word's pieces; zero where it has none."""
        pieces = [self.pieces(word) for word in words.to_pylist()]
        sizes = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        rows = np.fromiter(chain.from_iterable(pieces), dtype=np.int64)
        some = np.flatnonzero(sizes)
        made = np.zeros((len(words), DIMENSIONS), dtype=np.int32)
        made[some] = np.add.reduceat(self.vectors[rows], run_starts(sizes)[some], dtype=np.int32)
        return made

    def pieces(self, word: str) -> list[int]:
        """Return the rows of a word's pieces, the longest first; none if it cannot be divided."""
        whole = self.number.get(word)
        if whole is not None:
            return [whole]
        decomposed = unicodedata.normalize("NFD", word)
        word = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word) <= LONGEST_WORD:
            for end in range(len(word), start, -1):
                if (piece := self.number.get(prefix + word[start:end])) is not None:
                    break
            else:
                return []
            pieces.append(piece)
            start, prefix = end, CONTINUED
        return pieces


@lru_cache(maxsize=1)
def static_encoder() -> StaticEncoder:
    """Return the encoder that comes with the package."""
    table = pa.ipc.open_file(pa.memory_map(regular_path(TABLE))).read_all()
    buffer = table["vector"].combine_chunks().buffers()[1]
    vectors = np.frombuffer(buffer, dtype=np.int8).reshape(-1, DIMENSIONS)
    pieces = table["piece"].to_pylist()
    return StaticEncoder({piece: row for row, piece in enumerate(pieces)}, vectors)


def similarities(texts: Tokens, questions: Tokens, choices: Ints, question: Ints) -> Floats:
    """Return the cosine of each choice and its question, (rows, K).

    Args:
        texts: the distinct texts of choices.
        questions: the distinct texts of questions, tokenised together with ``texts``.
        choices: (rows, K) index into the texts; -1 for none.
        question: (rows,) index into the questions.

    Returns:
        Minus infinity where there is no choice; 0 where a text has no vector.
    """
    words = static_encoder().words(texts.words)
    left, right = text_vectors(questions, words), text_vectors(texts, words)
    left_length, right_length = (
        np.sqrt(np.einsum("ij,ij->i", side, side, dtype=np.int64)) for side in (left, right)
    )
    made = np.full(choices.shape, -np.inf)
    for start in range(0, len(choices), PART):
        asked, block = question[start : start + PART], choices[start : start + PART]
        for column, shown in enumerate(block.T):
            dot = np.einsum("ij,ij->i", left[asked], right[shown], dtype=np.int64)
            length = left_length[asked] * right_length[shown]
            cosine = np.divide(dot, length, out=np.zeros(shown.size), where=length > 0)
            made[start : start + PART, column] = np.where(shown < 0, -np.inf, cosine)
    return made


def text_vectors(texts: Tokens, words: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the vectors of texts from those of words: their means, less the mean of all texts."""
    return _centred(_means(texts, words))


def _means(tokens: Tokens, words: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the mean vector of each text, in units of 2 ** -FRACTION."""
    known = np.asarray(words.any(axis=1))
    texts = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
    keep = known[tokens.ids]
    texts, ids = texts[keep], tokens.ids[keep]
    lengths = np.bincount(texts, minlength=tokens.lengths.size)
    made = np.zeros((lengths.size, DIMENSIONS), dtype=np.int32)
    some = np.flatnonzero(lengths)
    starts = run_starts(lengths[some])
    first = 0
    while first < some.size:
        last = max(int(np.searchsorted(starts, starts[first] + PART)) - 1, first + 1)
        gathered = words[ids[starts[first] : starts[last]]]
        local = starts[first:last] - starts[first]
        # Sums of a long text do not fit in 32 bits; means do.
        sums = np.add.reduceat(gathered, local, dtype=np.int64) << FRACTION
        made[some[first:last]] = sums // lengths[some[first:last], None]
        first = last
    return made


def _centred(vectors: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Subtract the mean of the vectors, rounded down, in place."""
    if len(vectors):
        vectors -= (vectors.sum(axis=0, dtype=np.int64) // len(vectors)).astype(np.int32)
    return vectors
