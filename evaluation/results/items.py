"""Answers of several runs to the same items: correlations, and keys that they contradict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints

NOT_SCORED = -1


class ItemAnswers(NamedTuple):
    """What several runs answered to the same items.

    Attributes:
        key: the choice that counts as right, shape [items].
        choices: the number of choices of each item, shape [items].
        chosen: each run's choice, :data:`NOT_SCORED` if there is none, shape [items, runs].
    """

    key: Ints
    choices: Ints
    chosen: Ints

    @property
    def scored(self) -> Bools:
        """Whether each item was scored in each run, shape [items, runs]."""
        scored: Bools = self.chosen != NOT_SCORED
        return scored

    @property
    def right(self) -> Bools:
        """Whether each run chose the key, shape [items, runs]."""
        right: Bools = self.chosen == self.key[:, None]
        return right


def rest_scores(answers: ItemAnswers) -> tuple[Ints, Ints]:
    """Count the right and scored items of each model, excluding the item: [items, models] each."""
    right, scored = answers.right.astype(np.int64), answers.scored.astype(np.int64)
    return right.sum(axis=0) - right, scored.sum(axis=0) - scored


def point_biserial(answers: ItemAnswers) -> Floats:
    """Correlate correctness on each item with the rest score, over the models that scored it.

    Returns:
        Shape [items]; NaN if all models are right or all are wrong, or if their rest scores are the
        same.
    """
    right, scored = answers.right.astype(np.float64), answers.scored
    rest_right, rest_scored = rest_scores(answers)
    rest = rest_right / np.maximum(rest_scored, 1)
    n = np.maximum(scored.sum(axis=1, keepdims=True), 1)

    def centred(values: Floats) -> Floats:
        values = np.where(scored, values, 0.0)
        return np.where(scored, values - values.sum(axis=1, keepdims=True) / n, 0.0)

    one, two = centred(right), centred(rest)
    spread = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
    together = (one * two).sum(axis=1)
    varies = spread > 1e-12
    found: Floats = np.divide(together, spread, out=np.full(spread.shape, np.nan), where=varies)
    return found


class Rivals(NamedTuple):
    """The strongest rival of each item's key, according to the models.

    Attributes:
        choice: the choice; :data:`NOT_SCORED` if no model chose anything but the key.
        evidence: natural log of the likelihood ratio of the models' answers, if the rival is right
            rather than the key.
    """

    choice: Ints
    evidence: Floats


def rivals(answers: ItemAnswers) -> Rivals:
    """Find the strongest rival of each item's key, by a weighted vote of the models.

    A model that is right with probability a, and otherwise chooses each of the C - 1 other choices
    equally often, makes the choice it gives a(C - 1)/(1 - a) times likelier to be right than
    another (Nitzan & Paroush, 1982): the logarithm is its weight. a is its accuracy on the other
    items, with half an item added to right and to wrong ones; a model that does no better than
    chance has no vote.
    """
    rest_right, rest_scored = rest_scores(answers)
    accuracy = (rest_right + 0.5) / (rest_scored + 1)
    others = np.maximum(answers.choices - 1, 1)[:, None]
    weight = np.maximum(np.log(accuracy * others / (1 - accuracy)), 0.0)
    items = np.arange(len(answers.key))
    votes = np.zeros((len(items), int(answers.choices.max())))
    heads = np.zeros(votes.shape, dtype=np.int64)
    at, model = np.nonzero(answers.scored)
    said = answers.chosen[at, model]
    np.add.at(votes, (at, said), weight[at, model])
    np.add.at(heads, (at, said), 1)
    for_key = votes[items, answers.key].copy()
    # Ties between choices go to the one that more models give.
    order = votes + 1e-9 * heads
    order[items, answers.key] = -1.0
    choice = order.argmax(axis=1)
    given = heads[items, choice] > 0
    evidence = np.where(given, votes[items, choice], 0.0) - for_key
    return Rivals(np.where(given, choice, NOT_SCORED), evidence)
