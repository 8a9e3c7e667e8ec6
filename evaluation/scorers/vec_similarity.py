"""VecSimilarity: how similar the words of question and choice are, without any training.

``vec_similarity`` is the cosine of the mean vectors of the content words of question and choice.
``vec_similarity_published`` is the definition of Richardson and Sabharwal (2020), section
VecSimilarity: the mean cosine over all pairs of words. It includes function words, which make up
most of most questions, so that it answers far fewer questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evaluation.items.types import SCORED_SETUPS, Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import RowScorer, Scorer, ScorerEntry, ScorerInputs
from evaluation.vectors.options import VectorsOptions, vectors_content, word_vectors
from kbprobe.arrays import Floats

if TYPE_CHECKING:
    from kb_cache.vectors.texts import Similarities
    from kb_cache.vectors.types import WordVectors

    Compare = Callable[[Sequence[str], Sequence[str], WordVectors], Similarities]


class VecSimilarityScorer(RowScorer):
    """Scores a choice by its similarity to the question; the notes count ``unknown_words``."""

    def __init__(self, vectors: WordVectors, compare: Compare, score_name: str) -> None:
        self._vectors, self._compare, self._score_name = vectors, compare, score_name

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the similarity of each choice to its question."""
        questions = [item.question for item in items for _ in item.choices]
        choices = [text for item in items for text in item.choices]
        scores, unknown = self._compare(questions, choices, self._vectors)
        return scores, {"unknown_words": unknown} if unknown else {}

    def score_name(self, items: Sequence[Item]) -> str:
        """Return the kind of similarity: ``cosine of means`` or ``mean cosine``."""
        return self._score_name


def _make(inputs: ScorerInputs, published: bool) -> Scorer:
    from kb_cache.vectors.texts import cosines_of_means, means_of_cosines

    vectors = word_vectors(inputs.options)
    if published:
        return VecSimilarityScorer(vectors, means_of_cosines, "mean cosine")
    return VecSimilarityScorer(vectors, cosines_of_means, "cosine of means")


def _entry(name: str, label: str, version: int, published: bool) -> ScorerEntry:
    return ScorerEntry(
        name=name,
        label=label,
        version=version,
        needs=Capability.NOTHING,
        make=partial(_make, published=published),
        options=VectorsOptions,
        setups=SCORED_SETUPS,
        content=vectors_content,
    )


VEC_SIMILARITY = _entry("vec_similarity", "VecSimilarity", 2, published=False)
VEC_SIMILARITY_PUBLISHED = _entry(
    "vec_similarity_published", "VecSimilarity as published", 1, published=True
)
