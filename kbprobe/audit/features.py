"""Features of texts that shortcuts see: n-grams, shared words, shared ends.

Everything stays in Arrow, NumPy and scipy.sparse. scikit-learn's CountVectorizer finds the same
n-grams; its import takes longer than the whole audit of a build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    UInts,
    contains,
    ragged_ranges,
    sorted_unique,
    weighted_counts,
)
from kbprobe.columns import to_numpy
from kbprobe.tokens import Tokens, tokenise

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

HASHED_WIDTH = 1 << 18
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

LONGEST_NGRAM = 4
_EDGES = ("\x02", "\x03")
WIDEST = 32
"""Maximum number of characters compared at either end of a word."""


def ngram_features(texts: pa.Array) -> csr_array:
    """Return hashed counts of each word and each pair of adjacent words, and the length in words.

    The last column is the length in units of ten words. Texts are rows. Hashing into 2**18 columns
    costs nothing here: a training split of 3,000 rows shows about 10**5 distinct n-grams.
    """
    from scipy.sparse import csr_array

    (tokens,) = tokenise(texts)
    size = len(texts)
    owner = np.repeat(np.arange(size, dtype=np.int64), tokens.lengths)
    word = tokens.ids.astype(np.uint64)
    with np.errstate(over="ignore"):
        pair = (word[:-1] * np.uint64(tokens.vocabulary) + word[1:]) * _FACTOR
        word = word * _FACTOR
    shift = np.uint64(64 - HASHED_WIDTH.bit_length() + 1)
    follows = owner[1:] == owner[:-1]
    # Laid out text by text: all its words, then all its pairs, then its length.
    pairs = np.maximum(tokens.lengths - 1, 0)
    indptr = np.concatenate([[0], np.cumsum(tokens.lengths + pairs + 1)])
    column = np.full(int(indptr[-1]), HASHED_WIDTH, dtype=np.int64)
    value = np.ones(int(indptr[-1]))
    starts = indptr[:-1]
    column[ragged_ranges(starts, tokens.lengths)] = word >> shift
    column[ragged_ranges(starts + tokens.lengths, pairs)] = pair[follows] >> shift
    value[indptr[1:] - 1] = tokens.lengths / 10.0
    return csr_array((value, column, indptr), shape=(size, HASHED_WIDTH + 1))


def character_features(texts: pa.Array) -> csr_array:
    """Return features: n-grams of one to four characters, including a text's edges, and words.

    All in lower case. Values are scaled to a squared sum of 1, so that long texts weigh no more.
    """
    from scipy.sparse import csr_array

    codes, indptr = _characters(texts)
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(indptr))
    (words,) = tokenise(texts)
    # The highest bit distinguishes an n-gram from a word's number.
    keys = [words.ids.astype(np.uint64)]
    owners = [np.repeat(np.arange(len(texts), dtype=np.int64), words.lengths)]
    run = np.zeros(codes.size, dtype=np.uint64)
    for length in range(1, LONGEST_NGRAM + 1):
        with np.errstate(over="ignore"):
            run = (run[: codes.size - length + 1] + codes[length - 1 :]) * _FACTOR
        inside = owner[: run.size] == owner[length - 1 :]
        keys.append(run[inside] | np.uint64(1 << 63))
        owners.append(owner[: run.size][inside])
    _, column = np.unique(np.concatenate(keys), return_inverse=True)
    width = int(column.max(initial=-1)) + 1
    cell = np.unique(np.concatenate(owners) * max(width, 1) + column)
    count = np.bincount(cell // max(width, 1), minlength=len(texts))
    values = np.repeat(1.0 / np.sqrt(np.maximum(count, 1)), count)
    indptr = np.concatenate([[0], np.cumsum(count)])
    return csr_array((values, cell % max(width, 1), indptr), shape=(len(texts), width))


def numbers(*columns: Floats) -> csr_array:
    """Return numbers as feature columns, scaled like the others, and a column of ones."""
    from scipy.sparse import csr_array

    table = np.stack([np.ones_like(columns[0]), *(_scaled(column) for column in columns)], axis=1)
    return csr_array(table)


def shared_ends(left: pa.Array, right: pa.Array) -> tuple[Floats, Floats, Floats, Floats]:
    """Compare texts pairwise by their ends.

    Returns:
        The characters that each pair shares at its start and at its end; then, as 0 or 1, whether
        they are all of the shorter text (happy, unhappy).
    """
    ends = []
    lengths = np.minimum(*(np.diff(_characters(texts)[1]) - len(_EDGES) for texts in (left, right)))
    for backwards in (False, True):
        same = _grid(left, backwards) == _grid(right, backwards)
        shared = np.minimum(np.cumprod(same, axis=1).sum(axis=1), lengths)
        ends.append(shared.astype(np.float64))
    whole: list[Bools] = [shared == np.minimum(lengths, WIDEST) for shared in ends]
    return ends[0], ends[1], whole[0].astype(np.float64), whole[1].astype(np.float64)


def _scaled(column: Floats) -> Floats:
    spread = float(column.std())
    return (column - column.mean()) / spread if spread else np.zeros_like(column)


def _characters(texts: pa.Array) -> tuple[UInts, Ints]:
    """Return the lower-cased characters of all texts, each between its edges, and its bounds."""
    first, last = _EDGES
    framed = pc.binary_join_element_wise(first, pc.utf8_lower(texts), last, "")
    codes = np.frombuffer("".join(framed.to_pylist()).encode("utf-32-le"), dtype=np.uint32)
    lengths = to_numpy(pc.utf8_length(framed)).astype(np.int64)
    return codes.astype(np.uint64), np.concatenate([[0], np.cumsum(lengths)])


def _grid(texts: pa.Array, backwards: bool) -> UInts:
    """Return (texts, WIDEST) the characters of each text from its start or from its end."""
    codes, indptr = _characters(texts)
    lengths = np.minimum(np.diff(indptr) - len(_EDGES), WIDEST)
    line = np.repeat(np.arange(len(texts)), lengths)
    step = ragged_ranges(np.zeros(len(texts), dtype=np.int64), lengths)
    at = (indptr[1:] - 2)[line] - step if backwards else (indptr[:-1] + 1)[line] + step
    grid = np.zeros((len(texts), WIDEST), dtype=np.uint64)
    grid[line, step] = codes[at]
    return grid


def rarity_of(tokens: Tokens) -> Floats:
    """Return the inverse document frequency of every word over the choice texts."""
    owner = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
    pairs = sorted_unique(owner * tokens.vocabulary + tokens.ids)
    frequency = np.bincount(pairs % tokens.vocabulary, minlength=tokens.vocabulary)
    return np.asarray(np.log((tokens.lengths.size + 1) / (frequency + 1)))


def overlap(
    tokens: Tokens, questions: Tokens, rarity: Floats, choices: Ints, question: Ints
) -> Floats:
    """Return the summed rarity of the words that each choice shares with its question."""
    question_of, word = questions.of(np.arange(questions.lengths.size, dtype=np.int64))
    held = sorted_unique(question_of * questions.vocabulary + word)
    cell, word = tokens.of(choices.ravel())
    row = cell // choices.shape[1]
    shared = contains(held, question[row] * questions.vocabulary + word)
    weights = np.where(shared, rarity[word], 0.0)
    return weighted_counts(cell, weights, choices.size).reshape(choices.shape)


def likeness(tokens: Tokens, rarity: Floats, choices: Ints) -> Floats:
    """Return the summed rarity of the words that each choice shares with the row's others."""
    cell, word = tokens.of(choices.ravel())
    owned = sorted_unique(cell * tokens.vocabulary + word)
    cell, word = owned // tokens.vocabulary, owned % tokens.vocabulary
    row = cell // choices.shape[1]
    _, in_row, times = np.unique(
        row * tokens.vocabulary + word, return_inverse=True, return_counts=True
    )
    weights = rarity[word] * (times[in_row] - 1)
    summed = np.bincount(cell, weights=weights, minlength=choices.size)
    norm = np.sqrt(np.bincount(cell, weights=rarity[word] ** 2, minlength=choices.size))
    return (summed / np.maximum(norm, 1e-9)).reshape(choices.shape)


def others_mean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for each choice, the mean over the row's other choices that are not NaN.

    Args:
        values: (rows, K, ...).

    >>> others_mean(np.array([[1.0, 2.0, 6.0]])).tolist()
    [[4.0, 3.5, 1.5]]
    """
    known = ~np.isnan(values)
    total = np.where(known, values, 0)
    others = known.sum(axis=1, keepdims=True) - known
    rest = total.sum(axis=1, keepdims=True) - total
    return np.where(others > 0, rest / np.maximum(others, 1), np.nan).astype(values.dtype)


def ranks(values: Floats) -> Floats:
    """Return how many of a row's other choices are smaller, counting ties as half; (rows, K).

    >>> ranks(np.array([[1.0, 2.0, 1.0]])).tolist()
    [[0.5, 2.0, 0.5]]
    """
    value, other = values[:, :, None], values[:, None, :]
    rank = (value > other).sum(axis=2) + 0.5 * (value == other).sum(axis=2) - 0.5
    return np.where(np.isnan(values), np.nan, rank)


def cosines_within(vectors: csr_matrix, codes: Ints) -> list[Floats]:
    """Return the mean and the maximum cosine of each choice with the row's others."""
    width = codes.shape[1]
    cosine = np.full((*codes.shape, width), np.nan)
    for column in range(width):
        for other in range(column):
            both = np.flatnonzero((codes[:, column] >= 0) & (codes[:, other] >= 0))
            pairs = vectors[codes[both, column]].multiply(vectors[codes[both, other]])
            cosine[both, column, other] = cosine[both, other, column] = pairs.sum(axis=1).ravel()
    known = ~np.isnan(cosine)
    mean = np.where(known, cosine, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    greatest = np.where(known, cosine, -1).max(axis=2)
    return [np.where(codes >= 0, part, np.nan) for part in (mean, greatest)]


def word_tfidf(texts: list[str]) -> csr_matrix:
    """Return TF-IDF of the words of texts."""
    return _tfidf(texts, token_pattern=r"\w+")


def character_tfidf(texts: list[str]) -> csr_matrix:
    """Return TF-IDF of the n-grams of two to four characters within the words of texts."""
    return _tfidf(texts, analyzer="char_wb", ngram_range=(2, 4))


def _tfidf(texts: list[str], **ngrams: Any) -> csr_matrix:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(max_features=30_000, dtype=np.float32, **ngrams).fit_transform(texts)
