"""Words and word pairs of many texts at once, as integer ids in flat arrays.

Used by the audit: features of a model that reads the choices alone. Everything stays in Arrow and
NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import Floats, Ints, ragged_ranges
from kbprobe.columns import to_numpy
from kbprobe.function_words import FUNCTION_WORDS

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Tokens:
    """Lower-cased words of texts: those of text ``i`` are ``ids[indptr[i]:indptr[i + 1]]``.

    ``words`` are the distinct words, of all texts that were split together.
    """

    indptr: Ints
    ids: Ints
    words: pa.Array

    @property
    def vocabulary(self) -> int:
        """Number of distinct words."""
        return len(self.words)

    @property
    def lengths(self) -> Ints:
        """Number of words of each text."""
        return np.diff(self.indptr)

    def of(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return (position in ``texts``, word id) for every word of the given texts."""
        lengths = self.lengths[texts]
        position = np.repeat(np.arange(texts.size, dtype=np.int64), lengths)
        return position, self.ids[ragged_ranges(self.indptr[texts], lengths)]


def tokenise(*texts: pa.Array) -> tuple[Tokens, ...]:
    """Split texts into lower-cased words, with one vocabulary for all the arrays given.

    A word is a run of letters and digits in any script; the rest separates.
    """
    spaced = pc.replace_substring_regex(
        pc.utf8_lower(pa.concat_arrays([text.cast(pa.string()) for text in texts])),
        r"[^\pL\pN]+",
        " ",
    )
    lists = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(spaced))
    encoded = lists.flatten().dictionary_encode()
    ids = to_numpy(encoded.indices).astype(np.int64)
    offsets = to_numpy(lists.offsets).astype(np.int64)
    # An empty text splits into one empty word: drop those words.
    empty = pc.index(encoded.dictionary, "").as_py()
    if empty >= 0:
        kept = np.concatenate([[0], np.cumsum(ids != empty)])
        ids, offsets = ids[ids != empty], kept[offsets]
    ends = np.cumsum([len(text) for text in texts])
    bounds = [offsets[end - len(text) : end + 1] for text, end in zip(texts, ends, strict=True)]
    return tuple(
        Tokens(indptr - indptr[0], ids[indptr[0] : indptr[-1]], encoded.dictionary)
        for indptr in bounds
    )


def weighted_counts(labels: Ints, weights: Floats, size: int) -> Floats:
    """Sum the weights of each label 0 .. size - 1: ``bincount``, always in floats."""
    return np.asarray(np.bincount(labels, weights=weights, minlength=size), dtype=np.float64)


def content_words(*texts: pa.Array) -> tuple[Tokens, ...]:
    """Split texts into words without endings, function words left out, with one vocabulary."""
    ignored, *found = tokenise(*(_stems(text) for text in (pa.array([FUNCTION_WORDS]), *texts)))
    counted = np.ones(ignored.vocabulary, dtype=np.bool_)
    counted[ignored.ids] = False
    return tuple(
        Tokens(
            np.concatenate([[0], np.cumsum(counted[some.ids])])[some.indptr],
            some.ids[counted[some.ids]],
            some.words,
        )
        for some in found
    )


def _stems(texts: pa.Array) -> pa.Array:
    """Cut words to their common endings, then to five letters; drop those of one or two.

    Crude on purpose: "contaminated" must match "contamination". A false match costs one question,
    but a missed one gives an answer away. Each distinct word is cut once.
    """
    lists = pc.utf8_split_whitespace(pc.utf8_lower(texts.cast(pa.string())))
    words = lists.flatten().dictionary_encode()
    cut = pc.replace_substring_regex(
        words.dictionary, r"(\pL{3,}?)(?:ings?|ed|ers?|ies|y|es|s|e)\b", r"\1"
    )
    short = pc.replace_substring_regex(cut, r"\b(\pL{5})\pL+", r"\1")
    stems = pc.replace_substring_regex(short, r"\b\pL{1,2}\b", " ").take(words.indices)
    return pc.binary_join(pa.ListArray.from_arrays(lists.offsets, stems), " ")


HASHED_WIDTH = 1 << 18
_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def ngram_features(texts: pa.Array) -> csr_array:
    """Counts of each word and each pair of adjacent words, hashed, and the length in words.

    The last column is the length in units of ten words. Texts are rows. Hashing into 2**18 columns
    costs nothing here: a training split of 3,000 rows shows about 10**5 distinct n-grams.
    """
    from scipy.sparse import csr_array

    (tokens,) = tokenise(texts)
    size = len(texts)
    owner = np.repeat(np.arange(size, dtype=np.int64), tokens.lengths)
    word = tokens.ids.astype(np.uint64)
    with np.errstate(over="ignore"):
        pair = (word[:-1] * np.uint64(tokens.vocabulary) + word[1:]) * _PAIR_FACTOR
        word = word * _PAIR_FACTOR
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
