"""Strategy 1: balanced candidates, distractors as often as golds.

Candidates come as parallel arrays (row, node): node may stand as a distractor in that row. Two
ways of choosing among them:

``uniform``
    every candidate alike, as Richardson & Sabharwal (TACL 2020, section 3.2) describe it. Golds
    are then recognisable by themselves: some nodes are nearly always gold ("animal"), others
    nearly always distractors, and a model that reads the choices alone learns which.

``balanced``
    a node is used as a distractor in proportion to how often it is gold, *within one split and
    one family*: with K choices, a model that sees a choice text knows only that it is gold in one
    of K of the rows that show it. Then no function of a single choice (its words, length,
    frequency, generality) beats chance, nor does its inverse. Where nodes are too rarely gold for
    that, labels of nodes (classes of frequency and length) are balanced instead.

Guarantee of ``draw_balanced``:

- Exactly: every row gets distinct candidates of its own, at most one of a group; every label shown
  is gold somewhere; the result depends on the rows and the random generator alone, not on the
  order of the candidates within a row or on workers.
- Approximately: a label with g golds is drawn about (K - 1) g times. Rows go until no label is gold
  more than ``excess`` times as often as its draws allow, or ``rounds`` are over.
- Cost: O(rounds * passes * candidates looked at), all in NumPy.

The weights are found by iterative proportional fitting over the rows' own candidates: a candidate
wins where an exponential variable divided by its weight is smallest, and weights of labels drawn
too rarely are raised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges, sorted_unique
from kbprobe.rng import RandomGenerator

MAX_CANDIDATES = 32
"""Candidates looked at for a row; of a longer list a random part is taken."""

FITTING_PASSES = 5
TRIMMING_ROUNDS = 4
EXCESS = 1.15
"""A label may be gold this many times as often as its uses as a distractor allow."""


class Candidates(NamedTuple):
    """Parallel arrays: ``node`` may be a distractor of ``row``; at most one of a ``group``."""

    row: Ints
    node: Ints
    group: Ints | None = None

    def take(self, which: Ints | Bools) -> Candidates:
        """Return some of the candidates."""
        group = None if self.group is None else self.group[which]
        return Candidates(self.row[which], self.node[which], group)


class Draw(NamedTuple):
    """``nodes[i]`` are the distractors of row ``rows[i]``; -1 where the candidates ran short."""

    rows: Ints
    nodes: Ints


def ranks_within(groups: Ints) -> Ints:
    """Number the members of each run of equal values: 0, 1, 2, ...

    >>> ranks_within(np.array([4, 4, 9, 9, 9])).tolist()
    [0, 1, 0, 1, 2]
    """
    if groups.size == 0:
        return np.empty(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    lengths = np.diff(np.append(starts, groups.size))
    return ragged_ranges(np.zeros(starts.size, dtype=np.int64), lengths)


def first_of_each(cell: Ints, most: int, rng: RandomGenerator, identity: Ints) -> Bools:
    """Mark at most ``most`` lines of each cell, in seeded order."""
    order = np.lexsort((rng.bits(cell, identity), cell))
    keep = np.zeros(cell.size, dtype=np.bool_)
    keep[order[ranks_within(cell[order]) < most]] = True
    return keep


def sorted_by(group: Ints, race: Floats) -> Ints:
    """Return the order that sorts by group, then by race (0 and up, compared as float32).

    One sort of packed integers: several times faster than ``lexsort``. Ties in float32 fall
    back on the position, so that the order is the same everywhere.
    """
    low = race.astype(np.float32).view(np.uint32).astype(np.uint64)
    packed = (group.astype(np.uint64) << np.uint64(32)) | low
    return np.argsort(packed, kind="stable")


def _first(row: Ints, race: Floats, limit: int) -> Ints:
    """Positions of the ``limit`` smallest races of each row, in order of (row, race)."""
    order = sorted_by(row, race)
    return np.asarray(order[ranks_within(row[order]) < limit])


def _one_per_group(candidates: Candidates, race: Floats) -> Ints:
    """Positions of each (row, group)'s candidate with the smallest race."""
    if candidates.group is None:
        return np.arange(candidates.row.size, dtype=np.int64)
    span = int(candidates.group.max(initial=0)) + 1
    _, pair = np.unique(candidates.row * span + candidates.group, return_inverse=True)
    order = sorted_by(pair, race)
    return np.asarray(order[ranks_within(pair[order]) == 0])


def _choose(candidates: Candidates, race: Floats, count: int) -> Ints:
    """Positions of the chosen candidates: smallest races, one of a group, ``count`` of a row."""
    allowed = _one_per_group(candidates, race)
    return allowed[_first(candidates.row[allowed], race[allowed], count)]


def _as_matrix(candidates: Candidates, chosen: Ints, rows: Ints, count: int) -> Ints:
    """Lay the chosen nodes (sorted by row) out as one line of ``count`` for each of ``rows``."""
    row, node = candidates.row[chosen], candidates.node[chosen]
    matrix = np.full((rows.size, count), -1, dtype=np.int64)
    matrix[np.searchsorted(rows, row), ranks_within(row)] = node
    return matrix


def draw_uniform(candidates: Candidates, rows: Ints, count: int, rng: RandomGenerator) -> Draw:
    """Choose ``count`` distinct distractors for each of ``rows`` (ascending), all candidates alike.

    Each (row, node) is a candidate at most once; lines are filled up with -1 where they run short.
    """
    race = rng.uniform(candidates.row, candidates.node)
    chosen = _choose(candidates, race, count)
    return Draw(rows, _as_matrix(candidates, chosen, rows, count))


def draw_balanced(
    candidates: Candidates,
    gold: Ints,
    size: int,
    count: int,
    max_short: int,
    rng: RandomGenerator,
    *,
    labels: Ints | None = None,
    excess: float = EXCESS,
    rounds: int = TRIMMING_ROUNDS,
) -> Draw:
    """Choose distractors so that every label is gold in one of ``count + 1`` rows showing it.

    Args:
        candidates: each (row, node) at most once; a row's own gold never among them.
        gold: the gold node of each row; row numbers index this array.
        size: number of nodes in the knowledge base.
        count: distractors for each row.
        max_short: how many distractors a row may lack before it is dropped.
        rng: the random generator.
        labels: (size,) what is balanced, small integers; the nodes themselves if None.
        excess: how many times as often as its draws allow a label may be gold; 1: no more often.
        rounds: how often rows are dropped and the rest drawn again, at most.

    Returns:
        The rows that could be balanced, ascending, and their distractors.
    """
    label = candidates.node
    if labels is not None:
        label, gold, size = labels[label], labels[gold], int(labels.max(initial=0)) + 1
    needed = count - max_short
    alive = np.arange(gold.size, dtype=np.int64)
    for round_ in range(rounds):
        keep, alive = _supported(candidates, label, alive, gold, size, needed)
        if keep is not None:
            candidates, label = candidates.take(keep), label[keep]
        if alive.size == 0:
            return Draw(alive, np.empty((0, count), dtype=np.int64))
        golds = np.bincount(gold[alive], minlength=size)
        near, chosen = _fit(candidates, label, golds, count, rng.child(round_))
        shown = near[chosen]
        if round_ == rounds - 1:
            break
        used = np.bincount(label[shown], minlength=size)
        allowed = np.ceil(used / count * excess).astype(np.int64)
        order = sorted_by(gold[alive], rng.child("trim", round_).uniform(alive))
        over = ranks_within(gold[alive][order]) >= allowed[gold[alive][order]]
        if not over.any():
            break
        alive = np.sort(alive[order[~over]])
    return Draw(alive, _as_matrix(candidates, shown, alive, count))


def _supported(
    candidates: Candidates, label: Ints, alive: Ints, gold: Ints, size: int, needed: int
) -> tuple[Ints | None, Ints]:
    """Drop candidates that are gold nowhere (None: none is), and rows with too few, in turn."""
    kept: Ints | None = None
    row, group = candidates.row, candidates.group
    while True:
        is_alive = np.zeros(gold.size, dtype=np.bool_)
        is_alive[alive] = True
        is_gold = np.zeros(size, dtype=np.bool_)
        is_gold[gold[alive]] = True
        keep = is_alive[row] & is_gold[label]
        if not keep.all():
            at = np.flatnonzero(keep)
            kept = at if kept is None else kept[at]
            row, label, group = row[at], label[at], None if group is None else group[at]
        pairs = row
        if group is not None:
            span = int(group.max(initial=0)) + 1
            pairs = sorted_unique(row * span + group) // span
        supported = np.bincount(pairs, minlength=gold.size)[alive] >= max(needed, 1)
        if supported.all():
            return kept, alive
        alive = alive[supported]


def _fit(
    candidates: Candidates,
    label: Ints,
    golds: npt.NDArray[np.intp],
    count: int,
    rng: RandomGenerator,
) -> tuple[Ints, Ints]:
    """Fit the labels' weights so that each is drawn ``count`` times for each time it is gold.

    Returns positions of the candidates looked at, and positions *among those* of the chosen.
    """
    weight = golds.astype(np.float64)
    race = -np.log(rng.uniform(candidates.row, candidates.node)) / weight[label]
    near = np.sort(_first(candidates.row, race, MAX_CANDIDATES))
    looked_at, label = candidates.take(near), label[near]
    target = golds * count
    chosen = np.empty(0, dtype=np.int64)
    for step in range(FITTING_PASSES):
        chance = rng.child("pass", step).uniform(looked_at.row, looked_at.node)
        chosen = _choose(looked_at, -np.log(chance) / weight[label], count)
        used = np.bincount(label[chosen], minlength=golds.size)
        # Damped, and rounded to float32 so that a last bit of difference between machines'
        # logarithms cannot travel from pass to pass.
        ratio = ((target + 1) / (used + 1)) ** 0.7
        weight = (weight * ratio).astype(np.float32).astype(np.float64)
    return near, chosen
