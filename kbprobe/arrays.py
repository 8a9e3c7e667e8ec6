"""Array types, ragged ranges and sets of integer keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
AnyInts = npt.NDArray[np.signedinteger[Any]]
"""Integers of any width: arrays of a number for each row are as narrow as they can be."""

Bools = npt.NDArray[np.bool_]
UInts = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

Some = Ints | Bools | slice
"""Which elements of an array: their positions, a mask, or a stretch."""

DAMAGED_ARRAY = (OSError, ValueError, OverflowError, EOFError, SyntaxError, TokenError)
"""What ``np.load`` raises for a damaged file; its header is parsed as Python is."""

ParallelT = TypeVar("ParallelT", bound=tuple[Any, ...])
"""A tuple of parallel arrays, named or not."""


def lines_of(table: ParallelT, rows: Ints | Bools) -> ParallelT:
    """Return some lines of parallel arrays."""
    made: ParallelT = _maker(table)(column[rows] for column in table)
    return made


def joined(parts: Sequence[ParallelT]) -> ParallelT:
    """Lay the lines of several tuples of parallel arrays end to end."""
    made: ParallelT = _maker(parts[0])(map(np.concatenate, zip(*parts, strict=True)))
    return made


def _maker(table: tuple[Any, ...]) -> Any:
    """Return what makes such a tuple of its columns."""
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


def run_starts(lengths: Iterable[int] | Ints) -> Ints:
    """Return where each of several runs begins when they are laid end to end, and where they end.

    >>> run_starts([2, 3]).tolist()
    [0, 2, 5]
    """
    counted = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    return np.concatenate([[0], np.cumsum(counted)]).astype(np.int64)


def contains(sorted_keys: Ints, keys: Ints) -> Bools:
    """Tell for each of ``keys`` whether it occurs in ``sorted_keys`` (ascending).

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

    A table of hashes rules most keys out that do not occur: a search among a million sorted keys
    misses the cache at each step.

    >>> KeySet(np.array([1, 4, 9])).contains(np.array([4, 5])).tolist()
    [True, False]
    """

    def __init__(self, sorted_keys: Ints) -> None:
        self.keys = sorted_keys
        self._shift = np.uint64(64 - (16 * sorted_keys.size + 1).bit_length())
        self._table = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._table[self._hash(sorted_keys)] = True

    def contains(self, keys: Ints) -> Bools:
        """Return whether each of ``keys`` occurs."""
        return self.positions(keys) >= 0

    def positions(self, keys: Ints) -> Ints:
        """Return the position of each of ``keys`` among the keys of the set; -1: it is none."""
        place = np.full(keys.size, -1, dtype=np.int64)
        possible = np.flatnonzero(self._table[self._hash(keys)])
        at = np.minimum(np.searchsorted(self.keys, keys[possible]), self.keys.size - 1)
        there = self.keys[at] == keys[possible]
        place[possible[there]] = at[there]
        return place

    def _hash(self, keys: Ints) -> Ints:
        return _hashed(keys, self._shift)


class Answers:
    """Yes-or-no answers to integer keys (0 or more) that are asked for again and again.

    A table of hashes holds the latest key of each hash with its answer.

    >>> answers, even = Answers(10), np.array([2, 3])
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
        """Return the answers to ``keys``; ``decide`` is asked for those at some positions."""
        place = _hashed(keys, self._shift)
        answers = self._table[place]
        new = np.flatnonzero(answers >> 1 != keys)
        answers[new] = self._table[place[new]] = keys[new] * 2 + decide(new)
        return np.asarray(answers % 2 == 1)


def _hashed(keys: Ints, shift: np.uint64) -> Ints:
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> shift).view(np.int64)


def sorted_unique(keys: Ints) -> Ints:
    """Return the distinct keys, ascending.

    Several times faster here than ``numpy.unique``, which hashes integers before it sorts them. The
    stable sort merges stretches that are in order already, of which most keys consist.

    >>> sorted_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(keys, axis=None, kind="stable")
    if ordered.size == 0:
        return ordered
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])
