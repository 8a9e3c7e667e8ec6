"""Choosing changes so that nothing about the changed place tells which text of a pair is changed.

Every pair shows some features (a word, a word with its neighbour) in its original and others in its
changed text. A feature that originals show more often than changed texts gives the answer away.

Guarantee: within each part (a split), and in all parts together, originals and changed texts show a
feature equally often, but for the tolerance of its kind. Together, since a model learns from one
split what it uses on another: what is one too many in both would tell.

The search is an iterated greedy one (Ruiz and Stützle, 2007): changes are taken as long as any
fits; then a few are given up at random and others tried, many times, and never fewer are kept. It
finds about nine tenths of what a linear program does, which would choose otherwise with every
version of its solver. Cost: O(rounds * changes * features of a change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

WHOLE = -1
"""The part that stands for all parts together."""

Feature = tuple[str, str]
"""A kind ("word", "before") and what is shown ("who", "people who")."""


class Effort(NamedTuple):
    """How long to search.

    Attributes:
        rounds: how often others are tried.
        given_up: share of the chosen changes that a round gives up.
    """

    rounds: int = 400
    given_up: float = 0.03


EFFORT = Effort()


class Tolerance(NamedTuple):
    """By how many pairs originals and changed texts may differ in a feature.

    Attributes:
        part: within each part.
        whole: in all parts together. A model that learns from one part and is tried on another
            gains where both lean to the same side, and loses where they lean to opposite sides:
            half of ``part`` keeps it at chance.
        alone: in all parts together as well, where the part itself leans so far: a model of it
            gains nothing in the others.
    """

    part: int
    whole: int
    alone: int = 0


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
    effort: Effort = EFFORT,
) -> list[int]:
    """Choose changes, as many as a search finds, that balance the features.

    Of several changes of a text the one is taken that leaves the least imbalance.

    Args:
        changes: what can be chosen; a group has the same number in every build.
        tolerance: kind of feature -> by how much originals and changed texts may differ in it.
        rng: the random generator.
        effort: how long others are tried.

    Returns:
        Numbers of the changes chosen, ascending.
    """
    # Of changes that are as good the first is taken: they stand in random order.
    order = np.argsort(rng.child("ways").uniform(np.arange(len(changes))), kind="stable").tolist()
    search = _Search([changes[at] for at in order], tolerance)
    group = np.unique(np.array([change.group for change in changes], dtype=np.int64))
    search.fill(group[np.argsort(rng.uniform(group), kind="stable")])
    for number in range(effort.rounds):
        if not search.chosen or len(search.chosen) == group.size:
            break
        search.try_others(group, effort.given_up, rng.child(number))
    return sorted(order[at] for at in search.chosen.values())


class _Search:
    """The changes chosen so far (group -> change), and the balance of each feature."""

    def __init__(self, changes: Sequence[Change], tolerance: Mapping[str, Tolerance]) -> None:
        self.chosen: dict[int, int] = {}
        group = np.array([change.group for change in changes], dtype=np.int64)
        self._groups, self._group = np.unique(group, return_inverse=True)
        self._options: dict[int, list[int]] = {}
        moves: list[tuple[int, int, int]] = []
        most: list[tuple[int, int]] = []
        number: dict[tuple[int, Feature], int] = {}
        for at, change in enumerate(changes):
            self._options.setdefault(change.group, []).append(at)
            counts = Counter(change.original)
            counts.subtract(change.changed)
            for feature, by in counts.items():
                for part in (change.part, WHOLE) if by else ():
                    key = part, feature
                    if key not in number:
                        number[key] = len(number)
                        allowed = tolerance[feature[0]]
                        limits = (
                            (allowed.whole, allowed.alone) if part == WHOLE else (allowed.part, 0)
                        )
                        most.append(limits)
                    moves.append((at, number[key], by))
        flat = np.array(moves, dtype=np.int64).reshape(-1, 3)
        self._mover, self._feature, self._by = np.ascontiguousarray(flat.T)
        self._bounds = np.searchsorted(self._mover, np.arange(len(changes) + 1)).tolist()
        self._most, self._alone = np.array(most, dtype=np.int64).reshape(-1, 2).T.copy()
        self._balance = np.zeros(len(number), dtype=np.int64)
        self._exceeding = 0
        """Features beyond their tolerance: giving a change up may unbalance what it balanced."""

    def fill(self, groups: Ints) -> list[int]:
        """Choose a change of each group in turn where one fits; return the groups that got one."""
        added: list[int] = []
        turn = np.full(self._groups.size, -1, dtype=np.int64)
        turn[np.searchsorted(self._groups, groups)] = np.arange(groups.size)
        turn = turn[self._group]
        last = -1
        while (turns := turn[self._fitting() & (turn > last)]).size:
            last = int(turns.min())
            group = int(groups[last])
            costs = [self._cost(at) for at in self._options[group]]
            least = min(cost for cost in costs if cost is not None)
            self._choose(group, self._options[group][costs.index(least)])
            added.append(group)
        return added

    def try_others(self, groups: Ints, given_up: float, rng: RandomGenerator) -> None:
        """Give up a few changes and fill up again; undo it if fewer are chosen then."""
        held = np.array(sorted(self.chosen), dtype=np.int64)
        count = max(1, round(given_up * held.size))
        lots = rng.child("given up").uniform(held)
        removed = held[np.argsort(lots, kind="stable")[:count]].tolist()
        before = {group: self._give_up(group) for group in removed}
        without = np.ones(groups.size, dtype=np.bool_)
        without[np.searchsorted(groups, np.fromiter(self.chosen, np.int64))] = False
        waiting = groups[without]
        added = self.fill(waiting[np.argsort(rng.child("tried").uniform(waiting), kind="stable")])
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
        moved = slice(self._bounds[at], self._bounds[at + 1])
        feature = self._feature[moved]
        before = self._balance[feature]
        most = np.maximum(self._most[feature], self._alone[feature])
        after = before + sign * self._by[moved]
        self._balance[feature] = after
        self._exceeding += int((abs(after) > most).sum() - (abs(before) > most).sum())

    def _fitting(self) -> Bools:
        """Mark the changes that exceed no tolerance."""
        fits = np.ones(self._group.size, dtype=np.bool_)
        fits[self._mover[self._exceeds(slice(None))]] = False
        return fits

    def _exceeds(self, moves: slice) -> Bools:
        """Tell which moves of features exceed their tolerance, and leave them further off."""
        feature = self._feature[moves]
        before = self._balance[feature]
        after = abs(before + self._by[moves])
        most = np.maximum(self._most[feature], abs(before) - 1)
        # Each move of a part is followed by that of the whole.
        most[1::2] = np.maximum(most[1::2], np.minimum(self._alone[feature[1::2]], after[::2]))
        return np.asarray(after > most)

    def _cost(self, at: int) -> int | None:
        """Return how much imbalance a change adds; None where it exceeds a tolerance."""
        moves = slice(self._bounds[at], self._bounds[at + 1])
        if self._exceeds(moves).any():
            return None
        before = self._balance[self._feature[moves]]
        return int((abs(before + self._by[moves]) - abs(before)).sum())
