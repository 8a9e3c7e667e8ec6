"""Draw sets of numbers for comparisons, and divide them between validation and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.rng import RandomGenerator

ENUMERATED = 1 << 20
"""Maximum number of possible sets that are enumerated; beyond it, sets are sampled."""


@dataclass(frozen=True)
class Integers:
    """The knowledge base of the age probes: the order of the integers."""

    name: str = "integers"
    version: str = "1"
    digest: str = "none: the order of the integers"
    licence: str = "CC0-1.0"


def drawn_sets(low: int, high: int, size: int, count: int, rng: RandomGenerator) -> Ints:
    """Draw different sets of different integers.

    Args:
        low: the lowest integer.
        high: the highest.
        size: integers in a set.
        count: how many sets, at most (0: all).
        rng: the random generator.

    Returns:
        (sets, size) integers, each row ascending, in the order drawn.

    Raises:
        UsageError: all sets are requested, and there are too many.
    """
    total = comb(high - low + 1, size)
    if total <= ENUMERATED:
        rank = np.argsort(rng.uniform(np.arange(total)), kind="stable")[: count or None]
    elif count == 0 or 4 * count > total:
        raise UsageError(f"there are {total:,} sets of {size} numbers; choose fewer rows")
    else:
        drawn = rng.below(total, np.arange(2 * count))
        rank = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:count]
    return low + _unranked(rank, high - low + 1, size)


def _unranked(rank: Ints, numbers: int, size: int) -> Ints:
    """Return the sets of 0 .. numbers - 1 with these ranks (combinatorial number system)."""
    sets = np.empty((rank.size, size), dtype=np.int64)
    for at in range(size, 0, -1):
        below = np.array([comb(number, at) for number in range(numbers)], dtype=np.int64)
        sets[:, at - 1] = np.searchsorted(below, rank, side="right") - 1
        rank = rank - below[sets[:, at - 1]]
    return sets


def divided(clusters: int, shares: Sequence[float], rng: RandomGenerator) -> Ints:
    """Divide clusters between validation and test at random: return 1 or 2 for each.

    Args:
        clusters: how many.
        shares: of train, validation and test; only those of validation and test matter.
        rng: the random generator.
    """
    _, validation, test = shares
    first = round(clusters * validation / (validation + test))
    split = np.full(clusters, 2, dtype=np.int64)
    split[np.argsort(rng.uniform(np.arange(clusters)), kind="stable")[:first]] = 1
    return split
