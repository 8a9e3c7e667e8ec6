"""Questions that compare two values on one scale: ages, years, objects by size.

Whether a probe asks such questions is inferred from its rows alone. Numbers have a natural order;
for words, such as names of objects, the order is derived from the right answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.columns import single_chunk, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

RATING_ROUNDS = 200

_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)

LEAST_WORDS = 4
PAIRS_A_WORD = 2
"""Words are ordered only if there are at least this many, compared in this many times as many
pairs (or in every pair): with fewer pairs, random answers seldom contradict each other."""


@dataclass(frozen=True)
class OrderedArguments:
    """Rows whose right answer says which of two values comes first.

    Attributes:
        names: the names of the first and the second argument.
        values: the distinct values, the lowest first.
        level: the place of each value in the order, from 0, shape [values]. Values with the same
            place are never compared with each other.
        first, second: the row's values, as indices into ``values``, shape [rows].
        answers: the right answer if the first value is lower, and if it is higher.
        gold: which of the two answers is right, shape [rows].
        distance: the distance between the row's two values, shape [rows]: the difference of whole
            numbers, otherwise the number of places.
        numeric: whether the values are numbers, ordered as such.
        places: whether ``distance`` counts places.
    """

    names: tuple[str, str]
    values: tuple[str, ...]
    level: Ints
    first: Ints
    second: Ints
    answers: tuple[str, str]
    gold: Ints
    distance: Ints
    numeric: bool
    places: bool


def ordered_arguments(predictions: pa.Table) -> OrderedArguments | None:
    """Find the order that all rows ask about.

    Returns:
        None unless every row has two arguments with the same two names and the same two choices,
        and the right answer depends only on the order of the two arguments. Numbers are ordered by
        size. Words must occur both as first and as second argument, and the right answers must
        order them without contradictions.
    """
    named, answered = _arguments(predictions), _answers(predictions)
    if named is None or answered is None:
        return None
    names, values, pairs = named
    answers, gold = answered
    first, second = pairs.T
    if (first == second).any() or np.ptp(gold) == 0:
        return None
    rating = np.zeros(len(values))
    numeric = all(_NUMBER.fullmatch(value) for value in values)
    if numeric:
        level = np.unique([float(value) for value in values], return_inverse=True)[1]
    else:
        # Either direction would do. The alphabetically last answer is used: smaller, younger.
        answers, gold = answers[::-1], 1 - gold
        # If few values occur on both sides, the two arguments are different kinds of things.
        mixed = 2 * np.intersect1d(first, second).size >= len(values)
        found = _levels(np.where(gold == 0, (first, second), (second, first)), len(values))
        if found is None or not mixed:
            return None
        level, rating = found
    higher = (level[first] > level[second]).astype(np.int64)
    if (level[first] == level[second]).any() or np.ptp(higher ^ gold):
        return None
    if higher[0] != gold[0]:
        answers, gold = answers[::-1], 1 - gold
    whole = numeric and all("." not in value and len(value) < 16 for value in values)
    scale = np.array([int(value) for value in values]) if whole else level
    # Sorted within a place by rating, then by name: values are sorted, and the sort is stable.
    order = np.lexsort((rating, level))
    rank = np.argsort(order)
    return OrderedArguments(
        names=names,
        values=tuple(values[at] for at in order),
        level=level[order],
        first=rank[first],
        second=rank[second],
        answers=answers,
        gold=gold,
        distance=np.abs(scale[first] - scale[second]),
        numeric=numeric,
        places=not whole,
    )


def _arguments(predictions: pa.Table) -> tuple[tuple[str, str], list[str], Ints] | None:
    """Return the names of the two arguments, the distinct values, and those of each row."""
    column = single_chunk(predictions["arguments"])
    if not len(column) or not _are_two(column):
        return None
    (names, called), (values, pairs) = (_coded(part) for part in column.flatten().flatten())
    if len(names) != 2 or not values or (called != called[0]).any():
        return None
    one, two = called[0]
    return (names[one], names[two]), values, pairs


def _answers(predictions: pa.Table) -> tuple[tuple[str, str], Ints] | None:
    """Return the two answers, sorted, if every row offers both, and which is right in each row."""
    column = single_chunk(predictions["choices"])
    if not _are_two(column):
        return None
    texts, offered = _coded(column.flatten())
    if len(texts) != 2 or (offered[:, 0] == offered[:, 1]).any():
        return None
    gold = offered[np.arange(len(offered)), to_numpy(predictions["answer"])]
    return (texts[0], texts[1]), gold


def _are_two(column: pa.Array) -> bool:
    import pyarrow.compute as pc

    return not column.null_count and pc.all(pc.equal(pc.list_value_length(column), 2)).as_py()


def _coded(texts: pa.Array) -> tuple[list[str], Ints]:
    """Return the sorted distinct texts (none if one is null), and indices of shape [rows, 2]."""
    encoded = texts.dictionary_encode()
    words = [] if texts.null_count else encoded.dictionary.to_pylist()
    if not words:
        return [], np.zeros((0, 2), dtype=np.int64)
    rank = np.argsort(sorted(range(len(words)), key=words.__getitem__))
    return sorted(words), rank[to_numpy(encoded.indices)].reshape(-1, 2)


def _levels(pairs: Ints, values: int) -> tuple[Ints, Floats] | None:
    """Order values so that the first of each pair comes before the second.

    ``pairs`` are lower and higher values, shape [2, rows].

    Returns:
        The place of each value and its rating. There are as few places as possible, and each value
        gets the possible place that fits its rating best. None if the pairs contradict each other
        or are too few.
    """
    low, high = np.unique(pairs, axis=1)
    enough = min(PAIRS_A_WORD * values, values * (values - 1) // 2)
    if values < LEAST_WORDS or low.size < enough:
        return None
    from_bottom, from_top = _longest(low, high, values), _longest(high, low, values)
    if from_bottom is None or from_top is None:
        return None
    places = int(from_bottom.max()) + 1
    rating = _ratings(low, high, values)
    wished = np.rint((places - 1) * (rating - rating.min()) / max(np.ptp(rating), 1e-9))
    last = places - 1 - from_top
    level = np.zeros(values, dtype=np.int64)
    for step in range(places):
        # All lower values have been placed, which set these bounds.
        here = from_bottom == step
        level[here] = np.clip(wished[here], level[here], last[here]).astype(np.int64)
        going = here[low]
        np.maximum.at(level, high[going], level[low[going]] + 1)
    return np.unique(level, return_inverse=True)[1], rating


def _ratings(low: Ints, high: Ints, values: int) -> Floats:
    """Rate values so that the higher of each pair is as close as possible to 1 above the lower.

    Massey's least-squares ratings, computed iteratively: a value that was compared with few others
    is rated relative to these.
    """
    ends, others = np.concatenate([low, high]), np.concatenate([high, low])
    lead = np.repeat([-1.0, 1.0], low.size)
    compared = np.bincount(ends, minlength=values)
    rating: Floats = np.zeros(values)
    for _ in range(RATING_ROUNDS):
        judged = np.bincount(ends, weights=rating[others] + lead, minlength=values) / compared
        # Move halfway: two groups compared only with each other would oscillate forever.
        rating = (rating + judged) / 2
    return np.round(rating, 6)


def _longest(low: Ints, high: Ints, values: int) -> Ints | None:
    """Return the length of the longest path up to each value; None if there is a cycle."""
    steps = np.zeros(values, dtype=np.int64)
    waiting = np.bincount(high, minlength=values)
    ready = waiting == 0
    while ready.any():
        waiting[ready] = -1
        going = ready[low]
        np.maximum.at(steps, high[going], steps[low[going]] + 1)
        waiting -= np.bincount(high[going], minlength=values)
        ready = waiting == 0
    return None if (waiting > 0).any() else steps
