"""Similarity of texts by the vectors of their words, without training.

Words without a vector of their own are similar to themselves alone
(:class:`kb_cache.vectors.texts.WordTexts`). A text without words is similar to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kb_cache.vectors.texts import WordTexts, all_words
from kb_cache.vectors.types import WordVectors
from kbprobe.arrays import Floats
from kbprobe.function_words import FUNCTION_WORDS

_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())


class Similarities(NamedTuple):
    """Similarities of pairs of texts.

    Attributes:
        scores: of each pair, between -1 and 1, shape [pairs].
        unknown: how many different words had no vector.
    """

    scores: Floats
    unknown: int


def content_words(text: str) -> list[str]:
    """Return the words of a text without English function words; all words where none are left.

    Tokens of one or two characters, clitics and punctuation are left out as well.

    >>> content_words("What is the dog's bark?"), content_words("Which of them")
    (['dog', 'bark'], ['which', 'of', 'them'])
    """
    words = all_words(text)
    content = [
        word
        for word in words
        if len(word) > 2 and word not in _FUNCTION_WORDS and word[0].isalnum() and "'" not in word
    ]
    return content or words


def cosines_of_means(
    texts: Sequence[str], others: Sequence[str], vectors: WordVectors
) -> Similarities:
    """Return the cosine of the mean vectors of the content words of texts, pair by pair.

    Args:
        texts: the first of each pair, shape [pairs]; those that recur are read once.
        others: the second of each pair, shape [pairs].
        vectors: the word vectors.
    """
    read = WordTexts.of([*texts, *others], vectors, content_words)
    means = _units(_means(read, read.vectors.astype(np.float64)))
    return _products(read, means, texts, others)


def means_of_cosines(
    texts: Sequence[str], others: Sequence[str], vectors: WordVectors
) -> Similarities:
    """Return the mean cosine over all pairs of a word of one text and a word of the other.

    This is VecSimilarity as Richardson and Sabharwal (2020) define it: every word counts, function
    words as well. Arguments are those of :func:`cosines_of_means`.
    """
    read = WordTexts.of([*texts, *others], vectors)
    # The mean of all products of two sets of vectors is the product of their means.
    means = _means(read, _units(read.vectors.astype(np.float64)))
    return _products(read, means, texts, others)


def _units(vectors: Floats) -> Floats:
    """Scale vectors to a length of 1; those of length 0 stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))
    return units


def _means(read: WordTexts, vectors: Floats) -> Floats:
    """Return the mean vector of the words of each text, shape [texts, dimensions]."""
    means: Floats = np.add.reduceat(vectors[read.words], read.starts[:-1]) / read.lengths[:, None]
    return means


def _products(
    read: WordTexts, means: Floats, texts: Sequence[str], others: Sequence[str]
) -> Similarities:
    first, second = means[read.numbers(texts)], means[read.numbers(others)]
    return Similarities(np.einsum("pd,pd->p", first, second), read.unknown)
