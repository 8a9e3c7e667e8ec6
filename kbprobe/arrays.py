"""Array types, ragged ranges and sets of integer keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
AnyInts = npt.NDArray[np.signedinteger[Any]]
"""Integers of any width: arrays with one number per row use the narrowest type that fits."""

Bools = npt.NDArray[np.bool_]
UInts = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

Some = Ints | Bools | slice
"""An index into an array: positions, a boolean mask, or a slice."""

DAMAGED_ARRAY = (OSError, ValueError, OverflowError, EOFError, SyntaxError, TokenError)
"""What ``np.load`` raises for a damaged file, whose header it parses as Python code."""

ParallelT = TypeVar("ParallelT", bound=tuple[Any, ...])
"""A tuple of parallel arrays, named or not."""


def lines_of(table: ParallelT, rows: Ints | Bools) -> ParallelT:
    """Return a tuple of parallel arrays that has only the given rows."""
    made: ParallelT = _maker(table)(column[rows] for column in table)
    return made


def joined(parts: Sequence[ParallelT]) -> ParallelT:
    """Concatenate tuples of parallel arrays, column by column."""
    made: ParallelT = _maker(parts[0])(map(np.concatenate, zip(*parts, strict=True)))
    return made


def _maker(table: tuple[Any, ...]) -> Any:
    """Return the function that makes a tuple of the same type from its columns."""
    return getattr(table, "_make", tuple)


def ragged_ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate ``arange(start, start + length)`` of each pair without a Python loop.

    >>> ragged_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    total = int(lengths.sum())
    if total == 0:
        return np.empty(0, dtype=np.int64)
    ends = np.cumsum(lengths)
    shift = np.repeat(starts - (ends - lengths), lengths)
    ranges: Ints = np.arange(total, dtype=np.int64) + shift
    return ranges


def mask_at(size: int | tuple[int, ...], where: Any) -> Bools:
    """Return a mask of that shape which is true at an index.

    >>> mask_at(4, [1, 3]).tolist()
    [False, True, False, True]
    """
    mask = np.zeros(size, dtype=np.bool_)
    mask[where] = True
    return mask


def run_starts(lengths: Iterable[int] | Ints) -> Ints:
    """Return the start of each run when runs are concatenated, followed by the total length.

    >>> run_starts([2, 3]).tolist()
    [0, 2, 5]
    """
    counted = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    return np.concatenate([[0], np.cumsum(counted)]).astype(np.int64)


def occurrences(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return (position in ``wanted``, position in ``keys``) of every occurrence of ``wanted``.

    >>> [found.tolist() for found in occurrences(np.array([4, 7, 4]), np.array([7, 4]))]
    [[0, 1, 1], [1, 0, 2]]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, wanted)
    count = np.searchsorted(ordered, wanted, side="right") - first
    place = np.repeat(np.arange(wanted.size, dtype=np.int64), count)
    return place, order[ragged_ranges(first, count)]


def contains(sorted_keys: Ints, keys: Ints) -> Bools:
    """Return whether each of ``keys`` occurs in ``sorted_keys`` (ascending).

    >>> contains(np.array([1, 4, 9]), np.array([4, 5])).tolist()
    [True, False]
    """
    if sorted_keys.size == 0:
        return np.zeros(keys.shape, dtype=np.bool_)
    at = np.searchsorted(sorted_keys, keys)
    at[at == sorted_keys.size] = 0
    return np.asarray(sorted_keys[at] == keys)


class KeySet:
    """A set of integer keys, looked up many at a time.

    A hash table rules out most keys that are not in the set, because every step of a binary search
    among a million sorted keys is a cache miss.

    >>> KeySet(np.array([1, 4, 9])).contains(np.array([4, 5])).tolist()
    [True, False]
    """

    def __init__(self, sorted_keys: Ints) -> None:
        self.keys = sorted_keys
        self._shift = np.uint64(64 - (16 * sorted_keys.size + 1).bit_length())
        self._table = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._table[self._hash(sorted_keys)] = True

    def contains(self, keys: Ints) -> Bools:
        """Return whether each of ``keys`` is in the set."""
        return self.positions(keys) >= 0

    def positions(self, keys: Ints) -> Ints:
        """Return the position of each of ``keys`` in the set, or -1 where it is not in the set."""
        place = np.full(keys.size, -1, dtype=np.int64)
        possible = np.flatnonzero(self._table[self._hash(keys)])
        at = np.minimum(np.searchsorted(self.keys, keys[possible]), self.keys.size - 1)
        there = self.keys[at] == keys[possible]
        place[possible[there]] = at[there]
        return place

    def _hash(self, keys: Ints) -> Ints:
        return _hashed(keys, self._shift)


class AnswerCache:
    """A cache for a yes-or-no function of integer keys (0 or more).

    It is a hash table whose slots hold the latest key with that hash, and its answer.

    >>> answers, even = AnswerCache(10), np.array([2, 3])
    >>> answers.of(even, lambda new: even[new] % 2 == 0).tolist()
    [True, False]
    >>> answers.of(even[:1], lambda new: even[new] < 0).tolist()
    [True]
    """

    def __init__(self, distinct: int) -> None:
        bits = (2 * distinct + 1).bit_length()
        self._shift = np.uint64(64 - bits)
        self._table = np.full(1 << bits, -1, dtype=np.int64)

    def of(self, keys: Ints, decide: Callable[[Ints], Bools]) -> Bools:
        """Return the answer to each of ``keys``; ``decide`` computes missing ones by position."""
        place = _hashed(keys, self._shift)
        answers = self._table[place]
        new = np.flatnonzero(answers >> 1 != keys)
        answers[new] = self._table[place[new]] = keys[new] * 2 + decide(new)
        return np.asarray(answers % 2 == 1)


def _hashed(keys: Ints, shift: np.uint64) -> Ints:
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> shift).view(np.int64)


def shuffled_within(lots: UInts, key: Ints, *more: Ints | Bools) -> Ints:
    """Return the order by some keys, the first before the others, and then by lots.

    It is that of ``numpy.lexsort``, found several times as fast: lots, being random, are nearly
    always distinct, so that an unstable sort gives the same. Keys are 0 or more, and the product of
    how many values each can have is below 2**63.

    >>> shuffled_within(np.array([9, 4, 7], np.uint64), np.array([1, 0, 0])).tolist()
    [1, 2, 0]
    """
    for other in more:
        key = key * (int(other.max(initial=0)) + 1) + other
    order = np.argsort(lots)
    ordered = lots[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(lots, kind="stable")
    # Sixteen bits are sorted by their digits.
    narrow = key.astype(np.uint16) if int(key.max(initial=0)) < 1 << 16 else key
    return order[np.argsort(narrow[order], kind="stable")]


def sorted_unique(keys: Ints) -> Ints:
    """Return the distinct keys, ascending.

    Several times faster here than ``numpy.unique``, which hashes integers before it sorts them. The
    stable sort only has to merge sorted runs, and most keys come in long sorted runs.

    >>> sorted_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(keys, axis=None, kind="stable")
    if ordered.size == 0:
        return ordered
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def weighted_counts(labels: Ints, weights: Floats, size: int) -> Floats:
    """Sum the weights of each label 0 .. size - 1, like ``bincount`` but always as floats."""
    return np.asarray(np.bincount(labels, weights=weights, minlength=size), dtype=np.float64)
