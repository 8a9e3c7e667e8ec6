"""How similar a choice is to the question, and to the row's other choices; nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.similarity import cosines_of_means
from kbprobe.arrays import Floats
from kbprobe.errors import KbprobeError
from release.adversaries.types import Guesses, Rows

Cosines = Callable[[Sequence[str], Sequence[str]], Floats]
"""Returns the cosine of the vectors of each pair of texts."""


def likeness(rows: Rows, encoder: str = "") -> Iterator[Guesses]:
    """Yield what word vectors and an encoder find most similar: by meaning, not by knowledge.

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
    """Yield the measures that there are: word vectors, if any are installed, and the encoder."""
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
