"""Uniform draws of distractors, and helpers to sort and rank within groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kbprobe.arrays import Bools, Floats, Ints, ragged_ranges
from kbprobe.rng import RandomGenerator


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
    """Draw ``count`` distinct distractors uniformly for each of ``rows`` (ascending).

    Each (row, node) is a candidate at most once; lines are filled up with -1 where they run short.
    """
    race = rng.uniform(candidates.row, candidates.node)
    chosen = _choose(candidates, race, count)
    return Draw(rows, _as_matrix(candidates, chosen, rows, count))
