"""Strategy 3: choice groups, K rows that show the same K choices, each of them the gold of one.

Guarantee:

- Exactly: whatever a model looks at in the choices alone (their words, length, rank, frequency, or
  all of them together), it picks the same choice in every row of a group and is right in one of
  K rows. Each gold is a distractor K - 1 times for each time it is gold. No row is in two groups;
  the result depends on the rows and the random generator alone.
- Approximately: as many rows as a greedy search finds a group for; the others are left over, and
  the family decides what becomes of them.
- Cost: O(groups * golds), and the family's own tests. It serves golds that few others may stand
  beside; for pools whose questions may nearly all share choices there is ``pools``.

A plan marks the rows of a group by one number, so that all show the choices in one order: each
place then holds the gold equally often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

TRIED = 256
"""How many golds are looked at to complete a group, and how many rows of a gold."""


class ChoiceGroup(NamedTuple):
    """Rows that share their choices: the golds of all ``members``, found at a ``level``."""

    members: tuple[int, ...]
    level: int


class GroupRules(Protocol):
    """What a family says of its rows (numbered from 0) and of their golds (numbered from 0).

    Attributes:
        gold: the gold of each row.
        row_keys, gold_keys: identities that random numbers depend on.
        levels: how many pools golds are looked for in, the narrowest first.
    """

    gold: Sequence[int]
    row_keys: Ints
    gold_keys: Ints
    levels: int

    def alike(self, level: int, gold: int) -> Bools:
        """Mark the golds of the pool of a level that may stand beside a gold, itself excluded."""
        ...

    def differ(self, one: int, other: int) -> bool:
        """Tell whether two golds may stand in one group."""
        ...

    def is_false(self, row: int, gold: int) -> bool:
        """Tell whether a gold is a wrong answer to a row's question."""
        ...


def search_groups(rules: GroupRules, size: int, rng: RandomGenerator) -> list[ChoiceGroup]:
    """Put rows of one split and of different golds together, ``size`` in each group.

    Golds with the most rows left come first, for they need the most partners; the pool of a level
    is exhausted before the next is looked at.
    """
    rows = _rows_by_gold(rules, rng)
    left = np.array([len(some) for some in rows], dtype=np.int64)
    tie = rng.child("gold").bits(rules.gold_keys)
    groups = []
    for level in range(rules.levels):
        stuck = np.zeros(left.size, dtype=np.bool_)
        while (waiting := np.where(stuck, 0, left)).any():
            first = int(np.lexsort((tie, -waiting))[0])
            members = _group_from(rules, rows, left, first, level, size, rng)
            stuck[first] = not members
            if members:
                groups.append(ChoiceGroup(members, level))
            for row in members:
                rows[rules.gold[row]].remove(row)
                left[rules.gold[row]] -= 1
    return groups


def _rows_by_gold(rules: GroupRules, rng: RandomGenerator) -> list[list[int]]:
    by_gold: list[list[int]] = [[] for _ in rules.gold_keys]
    for row in np.argsort(rng.child("rows").bits(rules.row_keys), kind="stable").tolist():
        by_gold[rules.gold[row]].append(row)
    return by_gold


def _group_from(
    rules: GroupRules,
    rows: Sequence[Sequence[int]],
    left: Ints,
    first: int,
    level: int,
    size: int,
    rng: RandomGenerator,
) -> tuple[int, ...]:
    """Find partners for a row of one gold; none where there are not enough."""
    for row in rows[first][:TRIED]:
        others = np.flatnonzero(rules.alike(level, first) & (left > 0))
        lot = rng.child("partners").bits(rules.row_keys[row], others)
        others = others[np.lexsort((lot, -left[others]))][:TRIED]
        members, golds = [row], [first]
        for other in others.tolist():
            if not all(
                rules.differ(gold, other) and rules.alike(level, gold)[other] for gold in golds
            ):
                continue
            if not all(rules.is_false(member, other) for member in members):
                continue
            partner = next(
                (
                    candidate
                    for candidate in rows[other][:TRIED]
                    if all(rules.is_false(candidate, gold) for gold in golds)
                ),
                None,
            )
            if partner is not None:
                members.append(partner)
                golds.append(other)
                if len(members) == size:
                    return tuple(members)
    return ()


def draw_left_over(
    rules: GroupRules, row: int, count: int, used: Ints, rng: RandomGenerator
) -> list[tuple[int, int]]:
    """Choose ``count`` distractors, or fewer, for a row that found no group: each with its level.

    They are the golds least used so far; ``used`` (golds,) tells how often each has been a
    distractor.
    """
    own = rules.gold[row]
    taken = [own]
    chosen: list[tuple[int, int]] = []
    for level in range(rules.levels):
        others = np.flatnonzero(rules.alike(level, own))
        lot = rng.bits(rules.row_keys[row], others)
        for other in others[np.lexsort((lot, used[others]))].tolist():
            if len(chosen) == count:
                return chosen
            if all(rules.differ(gold, other) for gold in taken) and rules.is_false(row, other):
                chosen.append((other, level))
                taken.append(other)
    return chosen[:count]
