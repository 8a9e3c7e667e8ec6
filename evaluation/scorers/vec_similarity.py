"""VecSimilarity: how similar the words of question and choice are, without any training.

Richardson and Sabharwal 2020: the mean cosine of the word vectors of question and choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evaluation.items.types import SCORED_SETUPS, Item, choice_starts
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from evaluation.scorers.rows import RowScorer
from evaluation.vectors.options import VectorsOptions, vectors_content, word_vectors
from kbprobe.arrays import Floats

if TYPE_CHECKING:
    from kb_cache.vectors.types import WordVectors


class VecSimilarityScorer(RowScorer):
    """Scores a choice by the mean cosine over all pairs of a question word and a choice word.

    Words without a vector of their own are similar to themselves alone
    (:class:`evaluation.vectors.texts.WordTexts`); the notes count them as ``unknown_words``.
    """

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the mean cosine of each choice with its question."""
        from evaluation.vectors.texts import WordTexts

        questions = [item.question for item in items]
        choices = [text for item in items for text in item.choices]
        texts = WordTexts.of([*questions, *choices], self._vectors)
        vectors = texts.vectors.astype(np.float64)
        # A text without words is a zero vector, and similar to nothing.
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))
        # The mean of all products of two sets of vectors is the product of their means.
        sums = np.add.reduceat(units[texts.words], texts.starts[:-1])
        means = sums / texts.lengths[:, None]
        asked = np.repeat(texts.numbers(questions), np.diff(choice_starts(items)))
        return np.einsum("cd,cd->c", means[asked], means[texts.numbers(choices)]), texts.notes

    def score_name(self, items: Sequence[Item]) -> str:
        """Return ``mean cosine``."""
        return "mean cosine"


def _make(inputs: ScorerInputs) -> Scorer:
    return VecSimilarityScorer(word_vectors(inputs.options))


VEC_SIMILARITY = ScorerEntry(
    name="vec_similarity",
    label="VecSimilarity",
    version=1,
    needs=Capability.NOTHING,
    make=_make,
    options=VectorsOptions,
    setups=SCORED_SETUPS,
    content=vectors_content,
)
