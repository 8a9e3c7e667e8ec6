"""Check whether golds contain words of the question, or related words, too often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.engine.audit.kin import holds_kin, shares_a_word
from kbprobe.arrays import Bools, Ints

MOST_TIMES = 1.5
"""Maximum ratio between how often golds and distractors contain a word of the question."""

CONTEXT = "context"


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
    shown: Mapping[str, pa.Array], question: Ints, texts: pa.Array, choices: Ints, answer: Ints
) -> Iterator[tuple[str, Giveaway]]:
    """Count the choices that share words with the question, for each part of the question.

    Args:
        shown: the parts of questions by name, a text for each question. Choices are compared with
            arguments by related words, and with the context (`CONTEXT`) by content words.
        question: (rows,) the row's line in ``shown``.
        texts: the distinct choices' texts.
        choices: (rows, K) index into ``texts``.
        answer: (rows,) the gold's column.

    Yields:
        What was counted, in words, and how often.
    """
    rows, width = choices.shape
    gold = np.zeros(choices.shape, dtype=np.bool_)
    gold[np.arange(rows), answer] = True
    used, line = np.unique(question, return_inverse=True)
    kept, choice = np.unique(choices, return_inverse=True)
    lines, held = np.repeat(line, width), texts.take(pa.array(kept))
    for name, values in shown.items():
        some = values.take(pa.array(used))
        if name == CONTEXT:
            what, found = "a word of the context", shares_a_word(some, lines, held, choice.ravel())
        else:
            what, found = f"kin of {name}", holds_kin(some, lines, held, choice.ravel())
        yield what, _counted(found.reshape(choices.shape), gold)


def _counted(found: Bools, gold: Bools) -> Giveaway:
    return Giveaway(float(found[gold].mean()), float(found[~gold].mean()), len(gold))
