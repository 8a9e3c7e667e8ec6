"""Adversaries that see only the choices: their form, their meaning, and their similarity."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kb_cache.frequency import zipf_frequencies
from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.similarity import cosines_of_means
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import KbprobeError
from release.adversaries.models import gold_scores, others_mean, ranks, reduced
from release.adversaries.types import Guesses, Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_WORD = re.compile(r"\w+")


def surface(rows: Rows) -> Guesses:
    """Gradient boosting over numbers of each choice, as such and compared with the row's others."""
    texts, codes = rows.used_choices
    columns = [_laid_out(values, codes) for values in _of_texts(texts, rows.word_list)]
    columns += _cosines(rows.character_ngrams, codes)
    columns += _of_nodes(rows)
    features = [one for x in columns for one in (x, x - others_mean(x), ranks(x))]
    return Guesses("surface", gold_scores(rows, np.stack(features, axis=2)))


def _laid_out(values: Floats, codes: Ints) -> Floats:
    return np.where(codes >= 0, values[codes], np.nan)


def _of_texts(texts: list[str], language: str) -> list[Floats]:
    """Return characters, words, and the least and mean Zipf frequency of the words of each text."""
    words = [_WORD.findall(text.lower()) for text in texts]
    known = sorted({word for several in words for word in several})
    zipf = dict(zip(known, zipf_frequencies(known, language), strict=True))
    frequencies = [[zipf[word] for word in several] or [0.0] for several in words]
    return [
        np.array([len(text) for text in texts], dtype=np.float64),
        np.array([len(several) for several in words], dtype=np.float64),
        np.array([min(several) for several in frequencies]),
        np.array([sum(several) / len(several) for several in frequencies]),
    ]


def _cosines(vectors: csr_matrix, codes: Ints) -> list[Floats]:
    """Return the mean and the greatest cosine of each choice and the row's others."""
    width = codes.shape[1]
    cosine = np.full((*codes.shape, width), np.nan)
    for one in range(width):
        for other in range(one):
            both = np.flatnonzero((codes[:, one] >= 0) & (codes[:, other] >= 0))
            pairs = vectors[codes[both, one]].multiply(vectors[codes[both, other]])
            cosine[both, one, other] = cosine[both, other, one] = pairs.sum(axis=1).ravel()
    known = ~np.isnan(cosine)
    mean = np.where(known, cosine, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    greatest = np.where(known, cosine, -1).max(axis=2)
    return [np.where(codes >= 0, part, np.nan) for part in (mean, greatest)]


def _of_nodes(rows: Rows) -> list[Floats]:
    """Return each synset's depth and hyponyms, if the choices' nodes are synsets of WordNet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kb_cache.wordnet.load import load_wordnet

    if not rows.wordnet:
        return []
    try:
        wordnet = load_wordnet(rows.wordnet)
    except KbprobeError:
        return []
    names, local = np.unique(rows.nodes[rows.used], return_inverse=True)
    found = pc.index_in(pa.array(names.tolist()), wordnet.synsets["name"].combine_chunks())
    synset = np.array([-1 if one is None else one for one in found.to_pylist()])
    if (synset < 0).all():
        return []
    below = np.bincount(wordnet.hyponyms.walk(synset).source, minlength=synset.size)
    of_names = (wordnet.isa.depths()[synset].astype(np.float64), np.log1p(below))
    shape = rows.nodes[rows.used].shape
    return [np.where(synset < 0, np.nan, column)[local].reshape(shape) for column in of_names]


def meaning(rows: Rows, encoder: str = "") -> Guesses:
    """Gradient boosting over a vector of each choice, as such and less the mean of the others.

    Args:
        rows: what to train on and what to score.
        encoder: a model of transformers whose mean-pooled vectors are taken; "": TF-IDF of words
            and character n-grams. Either is reduced to a few dimensions (SVD).
    """
    texts, codes = rows.used_choices
    if encoder:
        from release.adversaries.encoder import encode

        vectors = reduced(encode(texts, encoder))
    else:
        vectors = reduced(_tfidf(rows))
    shown = np.where((codes >= 0)[:, :, None], vectors[codes], np.float32(np.nan))
    features = np.concatenate([shown, shown - others_mean(shown)], axis=2)
    return Guesses("meaning", gold_scores(rows, features))


def _tfidf(rows: Rows) -> Any:
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=r"\w+", max_features=30_000, dtype=np.float32)
    parts = [words.fit_transform(rows.used_choices[0]), rows.character_ngrams]
    return hstack(parts, format="csr")


Cosines = Callable[[Sequence[str], Sequence[str]], Floats]
"""Returns the cosine of the vectors of each pair of texts."""


def likeness(rows: Rows, encoder: str = "") -> Iterator[Guesses]:
    """Pick the most similar choice by word vectors and by an encoder, without any knowledge.

    The choice most similar to the question is reported: what a question is about may tell its
    answer. The choice most similar to the others must not be the gold more often than by chance.
    """
    for name, cosines in _measures(encoder):
        choices = rows.choices[rows.scored]
        shown = rows.shown[rows.scored]
        row, column = np.nonzero(shown)
        texts = [rows.texts[code] for code in choices[row, column]]
        asked = [rows.questions[rows.question[line]] for line in rows.scored[row]]
        similar = np.full(choices.shape, -np.inf)
        similar[row, column] = cosines(asked, texts)
        yield Guesses(f"similar:{name}", similar, trained=False, judged=False)
        total = np.where(shown, 0.0, -np.inf)
        for other in range(1, choices.shape[1]):
            next_to = (column + other) % choices.shape[1]
            both = shown[row, next_to]
            pairs = [rows.texts[code] for code in choices[row, next_to][both]]
            found = cosines([text for text, keep in zip(texts, both, strict=True) if keep], pairs)
            np.add.at(total, (row[both], column[both]), found)
        yield Guesses(f"central:{name}", total, trained=False)


def _measures(encoder: str) -> Iterator[tuple[str, Cosines]]:
    """Yield the available measures: word vectors, if any are installed, and the encoder."""
    try:
        vectors = load_vectors(None)
    except KbprobeError:
        pass
    else:
        yield "words", lambda left, right: cosines_of_means(left, right, vectors).scores
    if encoder:
        yield "encoder", lambda left, right: _encoded(left, right, encoder)


def _encoded(left: Sequence[str], right: Sequence[str], encoder: str) -> Floats:
    from release.adversaries.encoder import encode

    texts = sorted({*left, *right})
    number = {text: at for at, text in enumerate(texts)}
    vectors = encode(texts, encoder)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    one, other = ([number[text] for text in side] for side in (left, right))
    return np.asarray(np.einsum("ij,ij->i", vectors[one], vectors[other]), dtype=np.float64)
