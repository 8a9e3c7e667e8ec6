"""The choices' form alone: length, frequency, likeness, and place in WordNet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import KbprobeError
from release.adversaries.models import gold_scores, others_mean, ranks
from release.adversaries.types import Guesses, Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_WORD = re.compile(r"\w+")


def surface(rows: Rows) -> Guesses:
    """Gradient boosting over numbers of each choice, as such and compared with the row's others."""
    texts, codes = rows.used_choices
    columns = [_laid_out(values, codes) for values in _of_texts(texts, rows.word_list)]
    columns += _likeness(rows.character_ngrams, codes)
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


def _likeness(vectors: csr_matrix, codes: Ints) -> list[Floats]:
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
