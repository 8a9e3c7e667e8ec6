"""Scorers that read no model: guessing, frequent answers, and similarity of words.

Majority scores each choice by how often it is the answer in the training rows. Where all rows have
the same choices (labels, fixed answers) that is the most frequent answer; elsewhere the choice
whose text answers most training rows.

``vec_similarity`` is the cosine of the mean vectors of the content words of question and choice.
``vec_similarity_published`` is the definition of Richardson and Sabharwal (2020), section
VecSimilarity: the mean cosine over all pairs of words. It includes function words, which make up
most of most questions, so that it answers far fewer questions.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np

from evaluation.items.types import Item
from evaluation.scorers.base import RowScorer, ScorerInputs
from evaluation.vectors.options import word_vectors
from kb_cache.vectors.texts import Similarities, cosines_of_means, means_of_cosines
from kb_cache.vectors.types import WordVectors
from kbprobe.arrays import Floats

Compare = Callable[[Sequence[str], Sequence[str], WordVectors], Similarities]


class GuessingScorer(RowScorer):
    """Scores choices at random, by a hash of seed, id and choice, regardless of their order."""

    score_kind = "random number"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are ``GuessingOptions``."""
        return cls(inputs.options.guess_seed)

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Draw a number between 0 and 1 for each choice."""
        drawn = (drawn_share(self._seed, item.id, text) for item in items for text in item.choices)
        return np.fromiter(drawn, dtype=np.float64), {}


def drawn_share(seed: int, *texts: str) -> float:
    """Return a number strictly between 0 and 1, a hash of seed and texts.

    >>> round(drawn_share(0, "row-1", "a dog"), 3), round(drawn_share(1, "row-1", "a dog"), 3)
    (0.189, 0.906)
    """
    key = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return ((number >> 11) + 0.5) * 2.0**-53


class MajorityScorer(RowScorer):
    """Scores a choice by the log of how often its text is the answer in the training rows.

    To each count a number below 1 is added, a hash of seed and text: it breaks ties, the same way
    in all rows, and never by the choice's place.
    """

    score_kind = "log frequency"

    def __init__(self, items: Sequence[Item], seed: int) -> None:
        self._answers = Counter(item.choices[item.answer] for item in items)
        self._seed = seed

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the score of each choice."""
        texts = dict.fromkeys(text for item in items for text in item.choices)
        score = {
            text: math.log(self._answers[text] + drawn_share(self._seed, text)) for text in texts
        }
        scores = (score[text] for item in items for text in item.choices)
        return np.fromiter(scores, dtype=np.float64), {}


class VecSimilarityScorer(RowScorer):
    """Scores a choice by its similarity to the question; the notes count unknown words."""

    def __init__(self, vectors: WordVectors, compare: Compare, score_kind: str) -> None:
        self._vectors, self._compare, self.score_kind = vectors, compare, score_kind

    def choice_scores(self, items: Sequence[Item]) -> tuple[Floats, Mapping[str, int]]:
        """Return the similarity of each choice to its question."""
        questions = [item.question for item in items for _ in item.choices]
        choices = [text for item in items for text in item.choices]
        return self._compare(questions, choices, self._vectors)


def of_means(inputs: ScorerInputs) -> VecSimilarityScorer:
    """Make the scorer by the cosine of mean vectors."""
    return VecSimilarityScorer(word_vectors(inputs.options), cosines_of_means, "cosine of means")


def published(inputs: ScorerInputs) -> VecSimilarityScorer:
    """Make the scorer by the mean cosine of words."""
    return VecSimilarityScorer(word_vectors(inputs.options), means_of_cosines, "mean cosine")
