"""Splitting by semantic cluster: all rows about one concept land in one split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

Member = TypeVar("Member", int, str)


def assign_splits(concept: Ints, shares: tuple[float, float, float], rng: RandomGenerator) -> Ints:
    """Return each row's split (0 train, 1 validation, 2 test), a function of its concept alone."""
    edges = np.cumsum(shares)[:2]
    return np.searchsorted(edges, rng.uniform(concept), side="right").astype(np.int64)


IN_OTHER_ORDER = "the pair is in a later split in the other order"


def in_other_order_later(one: Ints, other: Ints, split: Ints) -> Bools:
    """Mark the pairs that a later split has in the other order, which tells its answers.

    >>> split = np.array([0, 1, 2, 0])
    >>> in_other_order_later(np.array([7, 8, 8, 7]), np.array([8, 9, 7, 9]), split).tolist()
    [True, False, False, False]
    """
    size = max(one.max(initial=0), other.max(initial=0)) + 1
    marked = np.zeros(split.size, dtype=np.bool_)
    for code in np.unique(split)[:-1].tolist():
        here, later = split == code, split > code
        reversed_pairs = other[later] * size + one[later]
        marked[here] = np.isin(one[here] * size + other[here], reversed_pairs)
    return marked


FOLDS = 10
"""The number of folds for cross-validation."""


def assign_folds(cluster: Ints, rng: RandomGenerator) -> Ints:
    """Return each row's fold, 0 to 9: rows of one cluster share it, whatever else is built.

    >>> folds = assign_folds(np.array([7, 7, 8]), RandomGenerator.of(0))
    >>> bool(folds[0] == folds[1])
    True
    """
    return rng.below(FOLDS, cluster)


def connected_components(groups: Iterable[Sequence[Member]]) -> dict[Member, Member]:
    """Return, for each member of the groups, the smallest member of its connected component.

    Members of one group are connected, and so are members of a chain of overlapping groups.

    >>> connected_components([("cold", "hot"), ("hot", "warm"), ("dry",)])
    {'cold': 'cold', 'dry': 'dry', 'hot': 'cold', 'warm': 'cold'}
    """
    above: dict[Member, Member] = {}

    def least(member: Member) -> Member:
        while (up := above.setdefault(member, member)) != member:
            above[member] = member = above[up]
        return member

    for group in groups:
        for member in group:
            one, other = sorted((least(group[0]), least(member)))
            above[other] = one
    return {member: least(member) for member in sorted(above)}
