"""Which answers are too much alike to be choices of the same question.

Two labels of one thing, or two numbers of which one is a rounding of the other, must not be told
apart: where one is right, the other is no distractor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.splits import connected_components
from kb_cache.tables.texts import DATE, MONTH, plain, quantity
from kbprobe.arrays import Floats, Ints, ragged_ranges
from kbprobe.errors import UsageError

SHORTEST, LONGEST, MOST_LABELS = 6, 40, 1_000_000
"""Labels of so many letters, of letters alone, are alike if one letter differs, where there are at
most so many labels."""

MOSTLY = 0.95
"""The least share of years among numbers that are compared as years."""

MOST_PAIRS = 50_000_000

_YEAR = re.compile(r"1\d{3}|20\d\d|2100")


def reads_of(texts: Sequence[str], other_names: Ints | None = None) -> Ints:
    """Return a number for each text, equal for those that read alike or name the same.

    ``other_names`` (2, pairs) are positions of texts that do.
    """
    numbers: dict[str, int] = {}
    reads = np.array([numbers.setdefault(plain(text), len(numbers)) for text in texts], np.int64)
    if other_names is None or not other_names.size:
        return reads
    same = connected_components(list(zip(*reads[other_names].tolist(), strict=True)))
    return np.array([same.get(read, read) for read in reads.tolist()], dtype=np.int64)


def one_letter_apart(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the pairs of texts that differ in one letter: left out, put in, or another.

    Of labels of 6 to 40 letters, of at most ``MOST_LABELS``: no pairs of more.
    """
    forms = [plain(text) for text in texts]
    numbers = [
        number
        for number, form in enumerate(forms)
        if SHORTEST <= len(form) <= LONGEST and form.isalpha()
    ]
    if len(numbers) > MOST_LABELS:
        numbers = []
    words = pa.array([forms[number] for number in numbers], pa.string())
    length = pc.utf8_length(words).to_numpy()
    keys, lines = [words], [np.arange(len(words))]
    for at in range(int(length.max(initial=0))):
        long = np.flatnonzero(length > at)
        some = words.take(pa.array(long))
        before, after = pc.utf8_slice_codeunits(some, 0, at), pc.utf8_slice_codeunits(some, at + 1)
        keys.append(pc.binary_join_element_wise(before, after, ""))
        lines.append(long)
    code = pa.concat_arrays(keys).dictionary_encode().indices.to_numpy().astype(np.int64)
    line = np.concatenate(lines)
    pairs = np.unique(np.stack([code, line]), axis=1)
    one, other = _pairs_of_runs(pairs[0])
    ends = np.array(numbers, dtype=np.int64)
    return ends[pairs[1][one]], ends[pairs[1][other]]


def _pairs_of_runs(values: Ints) -> tuple[Ints, Ints]:
    """Return the positions of all ordered pairs of two in each run of equal values."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if values.size else values
    size = np.diff(np.append(starts, values.size))
    if (size.astype(np.float64) ** 2).sum() > MOST_PAIRS:
        raise UsageError(
            f"{size.max():,} labels differ in case, punctuation or one letter only; tell them apart"
        )
    count = np.repeat(size, size)
    one = np.repeat(np.arange(values.size), count)
    other = ragged_ranges(np.repeat(starts, size), count)
    return one[one != other], other[one != other]


def of_equal(values: Ints) -> tuple[Ints, Ints]:
    """Return the positions of all ordered pairs of equal values."""
    order = np.argsort(values, kind="stable")
    one, other = _pairs_of_runs(values[order])
    return order[one], order[other]


def are_years(texts: Sequence[str]) -> bool:
    """Return whether nearly all of some numbers are years by their form.

    >>> are_years(["1969", "1895"]), are_years(["1,969", "12"])
    (True, False)
    """
    return sum(_YEAR.fullmatch(text) is not None for text in texts) >= MOSTLY * len(texts) > 0


def are_dated(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts are dates, or years by their form.

    >>> are_dated(["1969", "20 July 1969"]), are_dated(["1969", "the Moon"])
    (True, False)
    """
    dates = sum(
        _YEAR.fullmatch(text) is not None
        or ((found := quantity(text)) is not None and found.unit in (DATE, MONTH))
        for text in texts
    )
    return dates >= MOSTLY * len(texts) > 0


def within(values: Floats, tolerance: float) -> tuple[Ints, Ints]:
    """Return the pairs of numbers that are too near to each other, each once.

    Args:
        values: (texts,) numbers.
        tolerance: the least difference as a share of the larger number; 0: only equal ones.

    Raises:
        UsageError: there are too many.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    reach = np.where(
        ascending > 0, ascending / max(1 - tolerance, 1e-9), ascending * (1 - tolerance)
    )
    if tolerance >= 1:
        reach = np.where(ascending > 0, np.inf, 0.0)
    stop = np.searchsorted(ascending, reach, "right")
    count = np.maximum(stop - np.arange(order.size) - 1, 0)
    if count.sum() > MOST_PAIRS:
        raise UsageError(
            f"{count.sum():,} pairs of numbers are within --tolerance {tolerance} of each other; "
            f"lower it"
        )
    one = np.repeat(np.arange(order.size), count)
    return order[one], order[ragged_ranges(np.arange(order.size) + 1, count)]
