"""Choose changes such that the changed place does not reveal which text of a pair is changed.

Every pair shows some features (a word, a word with its neighbour) in its original and others in its
changed text. A feature that originals show more often than changed texts gives the answer away.

Guarantee: within each part (a split), and in all parts together, originals and changed texts show a
feature equally often, up to the tolerance of its kind. All parts together matter, since a model
uses in one split what it has learned from another.

The search is iterated greedy (Ruiz and Stützle, 2007): changes are added as long as any fits; then,
repeatedly, a few are removed at random and others tried, unless that leaves fewer. It finds about
nine tenths as many changes as a linear program, whose choice would depend on the version of the
solver. Cost: O(rounds * changes * features of a change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

WHOLE = -1
"""The part that represents all parts together."""

Feature = tuple[str, str]
"""A kind of feature ("word", "before") and its value ("who", "people who")."""


class SearchEffort(NamedTuple):
    """How long to search.

    Attributes:
        rounds: number of rounds in which other changes are tried.
        given_up: share of the chosen changes that is removed in each round.
    """

    rounds: int = 400
    given_up: float = 0.03


EFFORT = SearchEffort()


class Tolerance(NamedTuple):
    """How many pairs originals and changed texts may differ by in a feature.

    Attributes:
        part: within each part.
        whole: in all parts together. A model trained on one part and tested on another gains if
            both are unbalanced in the same direction, and loses if in opposite directions; half of
            ``part`` keeps it at chance.
        alone: also accepted in all parts together if the part itself deviates by no more than this:
            a model trained on it gains nothing in the others.
    """

    part: int
    whole: int
    alone: int = 0


class TextChange(NamedTuple):
    """One way to change one text.

    Attributes:
        group: the text; at most one change of a group is chosen.
        part: the split, which is balanced separately.
        original, changed: the features of either text, repeated as often as they occur.
    """

    group: int
    part: int
    original: Sequence[Feature]
    changed: Sequence[Feature]


def choose_balanced(
    changes: Sequence[TextChange],
    tolerance: Mapping[str, Tolerance],
    rng: RandomGenerator,
    effort: SearchEffort = EFFORT,
) -> list[int]:
    """Choose as many changes as possible such that features are balanced.

    Of several changes of a text, the one that leaves the least imbalance is chosen.

    Args:
        changes: the candidates; a group has the same number in every build.
        tolerance: kind of feature -> how much originals and changed texts may differ in it.
        rng: the random generator.
        effort: how long to search.

    Returns:
        Indices of the chosen changes, ascending.
    """
    # Of equally good changes the first is chosen; the order is random.
    order = np.argsort(rng.child("ways").uniform(np.arange(len(changes))), kind="stable").tolist()
    search = _BalanceSearch([changes[at] for at in order], tolerance)
    search.fill(rng)
    for number in range(effort.rounds):
        if not search.chosen or len(search.chosen) == search.groups.size:
            break
        search.try_others(effort.given_up, rng.child(number))
    return sorted(order[at] for at in search.chosen.values())


class _Tested(NamedTuple):
    """Moves, and what decides whether each exceeds a tolerance.

    Attributes:
        moves: (moves,) their numbers.
        feature: (2, moves) the features of each, in its part and in all parts.
        by: (moves,) how much each moves both.
        most: (2, moves) the tolerances of these features.
        alone: (moves,) that of all parts together if the part deviates by no more.
    """

    moves: Ints
    feature: Ints
    by: Ints
    most: Ints
    alone: Ints


class _BalanceSearch:
    """The changes chosen so far (index of a group -> change), and the balance of each feature.

    A *move* is a feature of a part, the same in all parts together, and by how much a change moves
    both. Many changes share their moves, so those are tested once for all changes, and again only
    when their features have moved.
    """

    def __init__(self, changes: Sequence[TextChange], tolerance: Mapping[str, Tolerance]) -> None:
        self.chosen: dict[int, int] = {}
        group = np.array([change.group for change in changes], dtype=np.int64)
        self.groups, self._group = np.unique(group, return_inverse=True)
        mover: list[int] = []
        moved: list[int] = []
        most: list[tuple[int, int]] = []
        number: dict[tuple[int, Feature], int] = {}
        moves: dict[tuple[int, int, int], int] = {}
        for at, change in enumerate(changes):
            counts = Counter(change.original)
            counts.subtract(change.changed)
            for feature, by in counts.items():
                if not by:
                    continue
                allowed = tolerance[feature[0]]
                for part in (change.part, WHOLE):
                    if (part, feature) not in number:
                        number[part, feature] = len(number)
                        limits = (
                            (allowed.whole, allowed.alone) if part == WHOLE else (allowed.part, 0)
                        )
                        most.append(limits)
                move = number[change.part, feature], number[WHOLE, feature], by
                mover.append(at)
                moved.append(moves.setdefault(move, len(moves)))
        self._moved = np.array(moved, dtype=np.int64)
        self._bounds = np.searchsorted(mover, np.arange(len(changes) + 1))
        flat = np.array([*moves], dtype=np.int64).reshape(-1, 3)
        self._features, self._by = np.ascontiguousarray(flat[:, :2].T), flat[:, 2].copy()
        self._most, self._alone = np.array(most, dtype=np.int64).reshape(-1, 2).T.copy()
        self._of_feature = Graph.from_edges(
            max(len(number), len(moves)), self._features[1], np.arange(len(moves), dtype=np.int64)
        )
        self._movers = Graph.from_edges(
            max(len(changes), len(moves)), self._moved, np.array(mover, dtype=np.int64)
        )
        self._accepted = np.maximum(self._most, self._alone)
        self._balance = np.zeros(len(number), dtype=np.int64)
        self._over = self._exceeds(self._tested(np.arange(len(moves))))
        exceeded = np.bincount(mover, self._over[self._moved], len(changes))
        self._exceeded = exceeded.astype(np.int64)
        """How many moves of each change exceed a tolerance."""
        self._open = np.ones(self.groups.size, dtype=np.bool_)
        self._state: tuple[npt.NDArray[Any], ...]
        self._state = self._open, self._balance, self._over, self._exceeded
        self._touched = cache(self._touched_by)

    def fill(self, rng: RandomGenerator) -> int:
        """Choose a fitting change for each group without one, in random order; return how many."""
        before, last = len(self.chosen), -1.0
        possible = np.flatnonzero(self._open[self._group])
        lots = rng.uniform(self.groups[self._group[possible]])
        while True:
            # Groups whose turn has passed wait for the next round.
            waiting = (self._exceeded[possible] == 0) & (lots > last)
            possible_now = possible[waiting]
            if not possible_now.size:
                break
            lots_now = lots[waiting]
            last = lots_now.min()
            options = possible_now[lots_now == last].tolist()
            at = min(options, key=self._cost) if len(options) > 1 else options[0]
            group = int(self._group[at])
            self.chosen[group] = at
            self._open[group] = False
            self._move(at, 1)
        return len(self.chosen) - before

    def try_others(self, given_up: float, rng: RandomGenerator) -> None:
        """Remove a few changes and fill up again; undo this if it leaves fewer."""
        held = np.flatnonzero(~self._open)
        count = max(1, round(given_up * held.size))
        lots = rng.child("given up").uniform(self.groups[held])
        chosen, before = dict(self.chosen), [state.copy() for state in self._state]
        removed = held[np.argsort(lots, kind="stable")[:count]]
        self._open[removed] = True
        for group in removed.tolist():
            self._move(self.chosen.pop(group), -1)
        added = self.fill(rng.child("tried"))
        # Giving a change up may unbalance what it balanced.
        if added < count or (abs(self._balance) > self._accepted).any():
            self.chosen = chosen
            for state, old in zip(self._state, before, strict=True):
                state[:] = old

    def _move(self, at: int, sign: int) -> None:
        """Move the balance of a change's features, and test their moves again."""
        moves = self._moves(at)
        # The features of a change are distinct.
        self._balance[self._features[:, moves]] += sign * self._by[moves]
        touched = self._touched(at)
        over = self._exceeds(touched)
        flipped = np.flatnonzero(over != self._over[touched.moves])
        if flipped.size:
            position, changes = self._movers.expand(touched.moves[flipped])
            np.add.at(self._exceeded, changes, np.where(over[flipped], 1, -1)[position])
            self._over[touched.moves] = over

    def _moves(self, at: int) -> Ints:
        return self._moved[self._bounds[at] : self._bounds[at + 1]]

    def _touched_by(self, at: int) -> _Tested:
        """Return all moves of the features of a change."""
        return self._tested(self._of_feature.expand(self._features[1, self._moves(at)])[1])

    def _tested(self, moves: Ints) -> _Tested:
        feature = self._features[:, moves]
        return _Tested(
            moves, feature, self._by[moves], self._most[feature], self._alone[feature[1]]
        )

    def _exceeds(self, tested: _Tested) -> Bools:
        """Mark the moves of features that exceed their tolerance and increase the imbalance."""
        before = self._balance[tested.feature]
        after = abs(before + tested.by)
        most = np.maximum(tested.most, abs(before) - 1)
        most[1] = np.maximum(most[1], np.minimum(tested.alone, after[0]))
        return np.asarray((after > most).any(axis=0))

    def _cost(self, at: int) -> int:
        """Return how much imbalance a change adds."""
        moves = self._moves(at)
        before = self._balance[self._features[:, moves]]
        return int((abs(before + self._by[moves]) - abs(before)).sum())
