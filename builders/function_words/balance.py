"""Choosing changes so that nothing about the changed place tells which text of a pair is changed.

Every pair shows some features (a word, a word with its neighbour) in its original and others in its
changed text. A feature that originals show more often than changed texts gives the answer away.

Guarantee: within each part (a split), and in all parts together, originals and changed texts show a
feature equally often, but for the tolerance of its kind. Together, since a model learns from one
split what it uses on another: what is one too many in both would tell. The result depends on the
changes and on ``tie`` alone.
Cost: O(rounds * changes * features of a change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kbprobe.arrays import Floats

ROUNDS = 8
"""How often what did not fit at first is tried again, now that others have been chosen."""

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
    changes: Sequence[Change], tolerance: Mapping[str, Tolerance], tie: Floats
) -> list[int]:
    """Choose changes, as many as a search finds, that balance the features.

    Each is taken if it leaves all features within their tolerance; those that did not fit are
    tried again as long as more are found. Of several changes of a text the one is taken that
    leaves the least imbalance.

    Args:
        changes: what can be chosen.
        tolerance: kind of feature -> by how much originals and changed texts may differ in it.
        tie: (changes,) the order in which texts are tried, and equals preferred.

    Returns:
        Numbers of the changes chosen, ascending.
    """
    balance: Counter[tuple[int, Feature]] = Counter()
    deltas = [_delta(change) for change in changes]
    groups: dict[int, list[int]] = {}
    for at in sorted(range(len(changes)), key=lambda at: (tie[at], at)):
        groups.setdefault(changes[at].group, []).append(at)
    waiting = list(groups.values())
    chosen: list[int] = []
    for _ in range(ROUNDS):
        left = []
        for options in waiting:
            costs = [_cost(balance, deltas[at], tolerance) for at in options]
            fitting = [cost for cost in costs if cost is not None]
            if not fitting:
                left.append(options)
                continue
            best = options[costs.index(min(fitting))]
            for feature, by in deltas[best]:
                balance[feature] += by
            chosen.append(best)
        if len(left) == len(waiting):
            break
        waiting = left
    return sorted(chosen)


def _delta(change: Change) -> list[tuple[tuple[int, Feature], int]]:
    """Return by how much a change moves the balance of each feature."""
    counts: Counter[Feature] = Counter(change.original)
    counts.subtract(change.changed)
    moved = [(feature, by) for feature, by in counts.items() if by]
    return [((part, feature), by) for part in (change.part, WHOLE) for feature, by in moved]


def _cost(
    balance: Mapping[tuple[int, Feature], int],
    delta: Sequence[tuple[tuple[int, Feature], int]],
    tolerance: Mapping[str, Tolerance],
) -> int | None:
    """Return how much imbalance a change adds; None where a feature would exceed its tolerance."""
    cost = 0
    for feature, by in delta:
        before = balance.get(feature, 0)
        after = before + by
        part, (kind, _) = feature
        most = tolerance[kind].whole if part == WHOLE else tolerance[kind].part
        if abs(after) > max(most, abs(before) - 1):
            return None
        cost += abs(after) - abs(before)
    return cost
