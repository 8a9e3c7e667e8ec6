"""Choosing changes so that nothing about the changed place tells which text of a pair is changed.

Every pair shows some features (a word, a word with its neighbour) in its original and others in its
changed text. A feature that originals show more often than changed texts gives the answer away.

Guarantee: within each part (a split), and in all parts together, originals and changed texts show a
feature equally often, but for the tolerance of its kind. Together, since a model learns from one
split what it uses on another: what is one too many in both would tell.

The search is an iterated greedy one (Ruiz and Stützle, 2007): changes are taken as long as any
fits; then a few are given up at random and others tried, ROUNDS times, and never fewer are kept. It
finds about nine tenths of what a linear program does, which would choose otherwise with every
version of its solver. Cost: O(ROUNDS * changes * features of a change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.rng import RandomGenerator

ROUNDS = 400
GIVEN_UP = 0.03
"""Share of the chosen changes that a round gives up."""

WHOLE = -1
"""The part that stands for all parts together."""

Feature = tuple[str, str]
"""A kind ("word", "before") and what is shown ("who", "people who")."""


class Tolerance(NamedTuple):
    """By how many pairs originals and changed texts may differ in a feature.

    Attributes:
        part: within each part.
        whole: in all parts together. A model that learns from one part and is tried on another
            gains where both lean to the same side, and loses where they lean to opposite sides:
            half of ``part`` keeps it at chance.
    """

    part: int
    whole: int


class Change(NamedTuple):
    """One way to change one text.

    Attributes:
        group: the text; of a group one change at most is chosen.
        part: what is balanced by itself: the split.
        original, changed: the features that either text shows, as often as it shows them.
    """

    group: int
    part: int
    original: Sequence[Feature]
    changed: Sequence[Feature]


def choose_balanced(
    changes: Sequence[Change],
    tolerance: Mapping[str, Tolerance],
    rng: RandomGenerator,
    rounds: int = ROUNDS,
) -> list[int]:
    """Choose changes, as many as a search finds, that balance the features.

    Of several changes of a text the one is taken that leaves the least imbalance.

    Args:
        changes: what can be chosen; a group has the same number in every build.
        tolerance: kind of feature -> by how much originals and changed texts may differ in it.
        rng: the random generator.
        rounds: how often others are tried.

    Returns:
        Numbers of the changes chosen, ascending.
    """
    # Of changes that are as good the first is taken: they stand in random order.
    order = np.argsort(rng.child("ways").uniform(np.arange(len(changes))), kind="stable").tolist()
    search = _Search([changes[at] for at in order], tolerance)
    group = np.unique(np.array([change.group for change in changes], dtype=np.int64))
    search.fill(group[np.argsort(rng.uniform(group), kind="stable")].tolist())
    for number in range(rounds):
        if not search.chosen or len(search.chosen) == group.size:
            break
        search.try_others(group, rng.child(number))
    return sorted(order[at] for at in search.chosen.values())


class _Search:
    """The changes chosen so far (group -> change), and the balance of each feature."""

    def __init__(self, changes: Sequence[Change], tolerance: Mapping[str, Tolerance]) -> None:
        self.chosen: dict[int, int] = {}
        self._options: dict[int, list[int]] = {}
        self._moves: list[list[tuple[int, int]]] = []
        self._most: list[int] = []
        number: dict[tuple[int, Feature], int] = {}
        for at, change in enumerate(changes):
            self._options.setdefault(change.group, []).append(at)
            moves = []
            counts = Counter(change.original)
            counts.subtract(change.changed)
            for feature, by in counts.items():
                for part in (change.part, WHOLE) if by else ():
                    key = part, feature
                    if key not in number:
                        number[key] = len(number)
                        allowed = tolerance[feature[0]]
                        self._most.append(allowed.whole if part == WHOLE else allowed.part)
                    moves.append((number[key], by))
            self._moves.append(moves)
        self._balance = [0] * len(number)
        self._exceeding = 0
        """Features beyond their tolerance: giving a change up may unbalance what it balanced."""

    def fill(self, groups: Iterable[int]) -> list[int]:
        """Choose a change of each group in turn where one fits; return the groups that got one."""
        added = []
        for group in groups:
            costs = [self._cost(at) for at in self._options[group]]
            fitting = [cost for cost in costs if cost is not None]
            if fitting:
                self._choose(group, self._options[group][costs.index(min(fitting))])
                added.append(group)
        return added

    def try_others(self, groups: Ints, rng: RandomGenerator) -> None:
        """Give up a few changes and fill up again; undo it if fewer are chosen then."""
        held = np.array(sorted(self.chosen), dtype=np.int64)
        count = max(1, round(GIVEN_UP * held.size))
        lots = rng.child("given up").uniform(held)
        removed = held[np.argsort(lots, kind="stable")[:count]].tolist()
        before = {group: self._give_up(group) for group in removed}
        waiting = np.setdiff1d(groups, np.fromiter(self.chosen, np.int64))
        order = waiting[np.argsort(rng.child("tried").uniform(waiting), kind="stable")].tolist()
        added = self.fill(order)
        if self._exceeding or len(added) < len(before):
            for group in added:
                self._give_up(group)
            for group, at in before.items():
                self._choose(group, at)

    def _choose(self, group: int, at: int) -> None:
        self.chosen[group] = at
        self._move(at, 1)

    def _give_up(self, group: int) -> int:
        at = self.chosen.pop(group)
        self._move(at, -1)
        return at

    def _move(self, at: int, sign: int) -> None:
        for feature, by in self._moves[at]:
            before = self._balance[feature]
            after = before + sign * by
            self._balance[feature] = after
            most = self._most[feature]
            self._exceeding += (abs(after) > most) - (abs(before) > most)

    def _cost(self, at: int) -> int | None:
        """Return how much imbalance a change adds; None where it exceeds a tolerance."""
        cost = 0
        for feature, by in self._moves[at]:
            before = self._balance[feature]
            after = before + by
            if abs(after) > max(self._most[feature], abs(before) - 1):
                return None
            cost += abs(after) - abs(before)
        return cost
