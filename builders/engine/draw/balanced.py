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
- Approximately: a label with g golds is drawn (K - 1) g times; where swaps between candidates can
  even that out, exactly. Otherwise the golds would be the choices that the split shows least: what
  is drawn by chance is more often what happens to be drawn often. Rows go until no label is gold
  more than ``excess`` times as often as its draws allow, or ``rounds`` are over.
- Cost: O(rounds * passes * candidates looked at), all in NumPy.

The weights are found by iterative proportional fitting over the rows' own candidates: a candidate
wins where an exponential variable divided by its weight is smallest, and weights of labels drawn
too rarely are raised. Swaps then bring the numbers of draws to their targets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges, sorted_unique
from kbprobe.rng import RandomGenerator

MAX_CANDIDATES = 32
"""Candidates looked at for a row; of a longer list a random part is taken."""

FITTING_PASSES = 5
TRIMMING_ROUNDS = 4
EVENING_ROUNDS = 24
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
    weight: Ints | None = None,
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
        weight: (rows,) how many rows of the probe each stands for; one if None.
        excess: how many times as often as its draws allow a label may be gold; 1: no more often.
        rounds: how often rows are dropped and the rest drawn again, at most.

    Returns:
        The rows that could be balanced, ascending, and their distractors.
    """
    label = candidates.node
    if labels is not None:
        label, gold, size = labels[label], labels[gold], int(labels.max(initial=0)) + 1
    needed = count - max_short
    weight = np.ones_like(gold) if weight is None else weight
    alive = np.arange(gold.size, dtype=np.int64)
    for round_ in range(rounds):
        keep, alive = _supported(candidates, label, alive, gold, size, needed)
        if keep is not None:
            candidates, label = candidates.take(keep), label[keep]
        if alive.size == 0:
            return Draw(alive, np.empty((0, count), dtype=np.int64))
        golds = _weighed(gold[alive], weight[alive], size)
        near, chosen = _fit(candidates, label, weight, golds, count, rng.child(round_))
        looked_at = candidates.take(near)
        chosen = _evened_out(looked_at, label[near], weight, golds * count, chosen, rng)
        shown = near[chosen]
        if round_ == rounds - 1:
            break
        used = _weighed(label[shown], weight[candidates.row[shown]], size)
        allowed = np.ceil(used / count * excess).astype(np.int64)
        order = sorted_by(gold[alive], rng.child("trim", round_).uniform(alive))
        before = run_totals(gold[alive][order], weight[alive][order])
        over = before >= allowed[gold[alive][order]]
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


def _weighed(label: Ints, weight: Ints, size: int) -> Ints:
    """Sum the weights of each label."""
    return np.bincount(label, weights=weight, minlength=size).astype(np.int64)


def run_totals(groups: Ints, weight: Ints) -> Ints:
    """Sum the weights before each member of a run of equal values: 0, then the first's, ...

    >>> run_totals(np.array([4, 4, 9, 9, 9]), np.array([1, 1, 2, 3, 1])).tolist()
    [0, 1, 0, 2, 5]
    """
    total = np.cumsum(weight) - weight
    first = np.concatenate([[True], groups[1:] != groups[:-1]]) if groups.size else groups
    starts = np.flatnonzero(first)
    return total - np.repeat(total[starts], np.diff(np.append(starts, groups.size)))


def _evened_out(
    candidates: Candidates,
    label: Ints,
    weight: Ints,
    target: Ints,
    chosen: Ints,
    rng: RandomGenerator,
) -> Ints:
    """Swap chosen candidates for others of their rows until labels are drawn as often as wanted.

    In each round a row gives up its candidate whose label is drawn most beyond ``target``, for
    the one whose label lacks most, where that brings both nearer; only as many rows do so at a
    time as the labels can bear.
    """
    if candidates.row.size == 0:
        return chosen
    order = np.argsort(candidates.row, kind="stable")
    row, label = candidates.row[order], label[order]
    starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    owner = np.repeat(np.arange(starts.size), np.diff(np.append(starts, row.size)))
    weighs = weight[row]
    held = np.zeros(row.size, dtype=np.bool_)
    held[np.argsort(order, kind="stable")[chosen]] = True
    group = None if candidates.group is None else candidates.group[order]
    if group is not None:
        _, group = np.unique(np.stack([row, group]), axis=1, return_inverse=True)
    nothing = np.iinfo(np.int64).min
    for round_ in range(EVENING_ROUNDS):
        beyond = _weighed(label[held], weighs[held], target.size) - target
        tie = rng.child("even", round_).bits(row, label) >> np.uint64(44)
        rank = (beyond[label] << 20) + tie.astype(np.int64)
        free = ~held
        if group is not None:
            free &= np.bincount(group[held], minlength=int(group.max()) + 1)[group] == 0
        most = np.maximum.reduceat(np.where(held, rank, nothing), starts)
        least = np.maximum.reduceat(np.where(free, -rank, nothing), starts)
        able = (most != nothing) & (least != nothing)
        out = np.flatnonzero(held & (rank == most[owner]) & able[owner])
        into = np.flatnonzero(free & (-rank == least[owner]) & able[owner])
        # A tie within a row would pair lines wrongly: the first of each row counts.
        out = out[np.unique(owner[out], return_index=True)[1]]
        into = into[np.unique(owner[into], return_index=True)[1]]
        gain = beyond[label[out]] - beyond[label[into]] > weighs[out]
        out, into = out[gain], into[gain]
        if out.size == 0:
            break
        lot = rng.child("turn", round_).bits(row[out])
        for room in (beyond, -beyond):
            side = out if room is beyond else into
            by_label = np.lexsort((lot, label[side]))
            taken = run_totals(label[side][by_label], weighs[side][by_label])
            kept = np.zeros(side.size, dtype=np.bool_)
            kept[by_label] = (taken == 0) | (2 * taken < room[label[side]][by_label])
            out, into, lot = out[kept], into[kept], lot[kept]
        held[out], held[into] = False, True
    return order[held]


def _fit(
    candidates: Candidates,
    label: Ints,
    weights: Ints,
    golds: Ints,
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
    weighs = weights[looked_at.row]
    target = golds * count
    chosen = np.empty(0, dtype=np.int64)
    for step in range(FITTING_PASSES):
        chance = rng.child("pass", step).uniform(looked_at.row, looked_at.node)
        chosen = _choose(looked_at, -np.log(chance) / weight[label], count)
        used = _weighed(label[chosen], weighs[chosen], golds.size)
        # Damped, and rounded to float32 so that a last bit of difference between machines'
        # logarithms cannot travel from pass to pass.
        ratio = ((target + 1) / (used + 1)) ** 0.7
        weight = (weight * ratio).astype(np.float32).astype(np.float64)
    return near, chosen
