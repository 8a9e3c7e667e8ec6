"""Histories: which questions become right or wrong from one run to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Ints

NOT_SCORED = -1


class Histories(NamedTuple):
    """Answers to all questions at all revisions, and how they change.

    Attributes:
        answers: 1 right, 0 wrong, -1 not scored; shape [revisions, questions].
        learnt: the index of the last revision at which each question became right; -1 for none.
            Shape [questions], like the arrays below.
        forgotten: the index of the last revision at which each question became wrong; -1 for none.
        changes: how often each question became right or wrong.
    """

    answers: Ints
    learnt: Ints
    forgotten: Ints
    changes: Ints

    def settled(self, revision: int, right: bool) -> int:
        """Count the questions that become right (or wrong) at a revision and never change again."""
        here, back = (self.learnt, self.forgotten) if right else (self.forgotten, self.learnt)
        return int(((here == revision) & (back < revision)).sum())


def follow(answers: Ints) -> Histories:
    """Find the changes in answers of shape [revisions, questions].

    >>> follow(np.array([[0, 1], [1, -1], [0, 1], [1, 0]])).learnt.tolist()
    [3, -1]
    """
    learnt, forgotten = (np.full(answers.shape[1], -1) for _ in range(2))
    changes, known = np.zeros(answers.shape[1], dtype=np.int64), answers[0].copy()
    for place, now in enumerate(answers):
        scored = now != NOT_SCORED
        changed = scored & (known != NOT_SCORED) & (now != known)
        learnt[changed & (now == 1)] = place
        forgotten[changed & (now == 0)] = place
        changes += changed
        known[scored] = now[scored]
    return Histories(answers, learnt, forgotten, changes)
