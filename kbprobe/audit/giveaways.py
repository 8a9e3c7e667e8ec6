"""Giveaways: golds that contain words of their question more often than distractors do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kbprobe.arrays import Bools, Ints, mask_at

MOST_TIMES = 1.5
"""Maximum ratio between how often golds and distractors contain a word of the question."""


class QuestionPart(NamedTuple):
    """A part of each question, with whose words choices are compared.

    Attributes:
        words: description of the words that count ("a word of the context").
        texts: a text for each question.
        contained: returns for pairs of texts, the second a choice's, whether it contains such a
            word; see :func:`builders.english.kin.holds_kin`.
    """

    words: str
    texts: pa.Array
    contained: Callable[[pa.Array, Ints, pa.Array, Ints], Bools]


class Giveaway(NamedTuple):
    """Shares of golds and distractors that contain words of the question, and rows counted."""

    golds: float
    distractors: float
    rows: int

    def is_leak(self, choices: int) -> bool:
        """Return whether the ratio is significantly greater than `MOST_TIMES`."""
        spread = self.golds * (1 - self.golds)
        spread += MOST_TIMES**2 * self.distractors * (1 - self.distractors) / (choices - 1)
        margin = 1.96 * float(np.sqrt(spread / max(self.rows, 1)))
        return self.golds - MOST_TIMES * self.distractors > margin


def giveaways(
    parts: Iterable[QuestionPart], question: Ints, texts: pa.Array, choices: Ints, answer: Ints
) -> Iterator[tuple[str, Giveaway]]:
    """Count the choices that share words with the question, for each part of the question.

    Args:
        parts: the parts of the questions.
        question: (rows,) the row's question.
        texts: the distinct choices' texts.
        choices: (rows, K) index into ``texts``.
        answer: (rows,) the gold's column.

    Yields:
        A description of what was counted, and the counts.
    """
    rows, width = choices.shape
    gold = mask_at(choices.shape, (np.arange(rows), answer))
    asked, line = np.unique(question, return_inverse=True)
    shown, choice = np.unique(choices, return_inverse=True)
    lines, choice_texts = np.repeat(line, width), texts.take(pa.array(shown))
    for part in parts:
        some = part.texts.take(pa.array(asked))
        holds = part.contained(some, lines, choice_texts, choice.ravel()).reshape(choices.shape)
        yield part.words, Giveaway(float(holds[gold].mean()), float(holds[~gold].mean()), rows)
