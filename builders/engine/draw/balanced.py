"""Uniform draws of distractors, and balanced selection of rows.

For probes whose rows all choose among the same few answers (not/really, smaller/larger): there are
no distractors to draw, but far more rows than are needed.

Guarantee:

- Exactly: :func:`select_equally` takes as many rows of each label in every stratum.
  :func:`select_matching` takes as many rows as are needed in each part and cell, or all that are
  allowed: no key (a word) is used in two parts, nor in more than ``most`` rows of those selected.
- Approximately: :func:`select_matching` brings the counts of further features in each part near to
  their targets, by a local search on chi-square: each row is the best for the counts so far, and
  each choice is reconsidered ``ROUNDS`` times after all have been made. With no features to match
  it selects the rows of least ``tie``, as :func:`select_equally` does.
- The result depends on the rows and on the order that ``tie`` gives to equals alone. All is done in
  integers, so that it is the same on every machine; a solver for linear programs would return one
  of many equally good vertices, another with every version.
- Cost: O(rows log rows) and O(selected * rows of a cell * features of a row).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints, mask_at
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
    """``nodes[i]`` are the distractors of row ``rows[i]``; -1 if there were too few candidates."""

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
    return np.arange(groups.size) - np.repeat(starts, np.diff(np.append(starts, groups.size)))


def first_of_each(cell: Ints, most: int, rng: RandomGenerator, identity: Ints) -> Bools:
    """Mark at most ``most`` lines of each cell, in seeded order."""
    order = np.lexsort((rng.bits(cell, identity), cell))
    return mask_at(cell.size, order[ranks_within(cell[order]) < most])


def sorted_by(group: Ints, race: Floats) -> Ints:
    """Return the order that sorts by group, then by race (0 and up, compared as float32).

    One sort of packed integers: several times faster than ``lexsort``. Ties in float32 fall
    back on the position, so that the order is the same everywhere.
    """
    low = race.astype(np.float32).view(np.uint32).astype(np.uint64)
    packed = (group.astype(np.uint64) << np.uint64(32)) | low
    return np.argsort(packed, kind="stable")


def _first(row: Ints, race: Floats, limit: int) -> Ints:
    """Return the positions of the ``limit`` smallest races of each row, in order of (row, race)."""
    order = sorted_by(row, race)
    return np.asarray(order[ranks_within(row[order]) < limit])


def _one_per_group(candidates: Candidates, race: Floats) -> Ints:
    """Return the position of the candidate with the smallest race in each (row, group)."""
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
    """Arrange the chosen nodes (sorted by row) as a matrix: ``count`` for each of ``rows``."""
    row, node = candidates.row[chosen], candidates.node[chosen]
    matrix = np.full((rows.size, count), -1, dtype=np.int64)
    matrix[np.searchsorted(rows, row), ranks_within(row)] = node
    return matrix


def draw_uniform(candidates: Candidates, rows: Ints, count: int, rng: RandomGenerator) -> Draw:
    """Draw ``count`` distinct distractors uniformly for each of ``rows`` (ascending).

    Each (row, node) is a candidate at most once; missing distractors are -1.
    """
    race = rng.uniform(candidates.row, candidates.node)
    chosen = _choose(candidates, race, count)
    return Draw(rows, _as_matrix(candidates, chosen, rows, count))


ROUNDS = 2
"""How often each choice is reconsidered after all have been made."""

_SCALE = 1 << 20

Cell = tuple[int, int]
"""A part (a split) and a cell (a kind of row), for which rows are needed."""


def select_equally(
    stratum: Ints, label: Ints, labels: int, share: float, tie: npt.NDArray[np.generic]
) -> Bools:
    """Mark equally many rows of each of ``labels`` labels in every stratum, by lowest ``tie``.

    At most ``share`` of a stratum's rows are taken.
    """
    cell = stratum * labels + label
    held = np.bincount(cell, minlength=labels * (int(stratum.max(initial=-1)) + 1))
    held = held.reshape(-1, labels)
    quota = np.round(held.sum(axis=1) * (share / labels)).astype(np.int64)
    quota = np.minimum(quota, held.min(axis=1))
    order = np.lexsort((tie, cell))
    return mask_at(cell.size, order[ranks_within(cell[order]) < quota[stratum[order]]])


@dataclass(frozen=True)
class Matching:
    """Rows to select from, and the desired properties of the selection.

    Attributes:
        cell: (rows,) the kind of each row.
        features: (rows, F) the numbers of the features that each row has.
        keys: (rows, M) the numbers of the keys (words) that each row shows.
        target: (parts, features) how often each feature should occur in each part.
        weight: (features,) integers: how much it matters that a feature's counts agree.
        owner: (keys,) the part in which each key is already used; -1 if in none.
        tie: (rows,) among equally good rows, the one with the lowest is taken.
    """

    cell: Ints
    features: Ints
    keys: Ints
    target: Ints
    weight: Ints
    owner: Ints
    tie: npt.NDArray[np.generic]


def select_matching(
    rows: Matching, need: Mapping[Cell, int], most: int
) -> tuple[list[int], list[int]]:
    """Select the rows for each part and cell that bring the features nearest to their targets.

    Returns the rows selected, at most ``most`` with one key, and the part of each: as many as
    ``need`` says, or as many as are allowed.
    """
    search = _Search(rows, most)
    left = {key: count for key, count in need.items() if count > 0}
    chosen: list[int] = []
    parts: list[int] = []
    while left:
        # The smallest cell first, so that no part takes all the best rows.
        part, cell = max(left, key=lambda key: (left[key] / need[key], key))
        at = search.take_best(part, cell)
        left[part, cell] -= 1
        if at < 0 or left[part, cell] == 0:
            del left[part, cell]
        if at >= 0:
            chosen.append(at)
            parts.append(part)
    for _ in range(ROUNDS):
        for i, part in enumerate(parts):
            search.give_back(chosen[i], part)
            chosen[i] = search.take_best(part, int(rows.cell[chosen[i]]))
    return chosen, parts


class _Search:
    """The state of a local search: what each part still lacks, and which rows are free."""

    def __init__(self, rows: Matching, most: int) -> None:
        self._rows, self._most = rows, most
        self._lack = rows.target.copy()
        self._weight = _SCALE * rows.weight // (rows.target + 1)
        self._owner = rows.owner.copy()
        self._uses = np.zeros(rows.owner.size, dtype=np.int64)
        self._free = np.ones(rows.cell.size, dtype=np.bool_)

    def give_back(self, at: int, part: int) -> None:
        """Return a row that was taken for a part to the free rows."""
        np.add.at(self._lack[part], self._rows.features[at], 1)
        self._uses[self._rows.keys[at]] -= 1
        self._free[at] = True

    def take_best(self, part: int, cell: int) -> int:
        """Take the best row of a cell for a part; -1 if none is left."""
        owners = self._owner[self._rows.keys]
        usable = self._free & (self._rows.cell == cell)
        usable &= ((owners == -1) | (owners == part)).all(axis=1)
        usable &= (self._uses[self._rows.keys] < self._most).all(axis=1)
        rows = np.flatnonzero(usable)
        if rows.size == 0:
            return -1
        features = self._rows.features[rows]
        # Twice by how much one more of each feature lessens the sum of squares.
        gain = (self._weight[part][features] * (2 * self._lack[part][features] - 1)).sum(axis=1)
        best = int(rows[np.lexsort((self._rows.tie[rows], -gain))[0]])
        np.subtract.at(self._lack[part], self._rows.features[best], 1)
        self._owner[self._rows.keys[best]] = part
        self._uses[self._rows.keys[best]] += 1
        self._free[best] = False
        return best
