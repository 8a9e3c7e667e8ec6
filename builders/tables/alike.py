"""Which answers are too much alike to be choices of the same question.

Two labels of one thing, or two numbers of which one is a rounding of the other, must not be told
apart: where one is right, the other is no distractor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError

SHORTEST, LONGEST, MOST_LABELS = 6, 40, 1_000_000
"""Labels of so many letters, of letters alone, are alike if one letter differs, where there are at
most so many labels."""

MOSTLY = 0.95
"""The least share of numbers (or dates) among answers that are compared as such."""

MOST_PAIRS = 50_000_000

_OTHER = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\D{0,12})")
_DATE = re.compile(r"([-+]?\d{4})-(\d\d)(?:-(\d\d))?(?:T.*)?")


def plain(text: str) -> str:
    """Return a label without case, accents, punctuation and plural.

    >>> plain("São Tomé"), plain("Mixed-bloods"), plain("C++"), plain("+")
    ('saotome', 'mixedblood', 'c', '+')
    """
    folded = unicodedata.normalize("NFKD", text).casefold()
    letters = _OTHER.sub("", "".join(c for c in folded if not unicodedata.combining(c)))
    if len(letters) > SHORTEST and letters.endswith("s") and not letters.endswith("ss"):
        letters = letters[:-1]
    return letters or text


def reads_of(texts: Sequence[str]) -> Ints:
    """Return a number for each text, equal for those that read alike."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(plain(text), len(numbers)) for text in texts], np.int64)


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
    within = np.arange(one.size) - np.repeat(np.cumsum(count) - count, count)
    other = np.repeat(np.repeat(starts, size), count) + within
    return one[one != other], other[one != other]


def of_equal(values: Ints) -> tuple[Ints, Ints]:
    """Return the positions of all ordered pairs of equal values."""
    order = np.argsort(values, kind="stable")
    one, other = _pairs_of_runs(values[order])
    return order[one], order[other]


def unit_of(text: str) -> str | None:
    """Return the unit of a number ('' if it has none); None if the text is no number.

    >>> unit_of("1,250 km"), unit_of("3.5"), unit_of("two"), unit_of("1969-07-20")
    ('km', '', None, None)
    """
    found = _NUMBER.fullmatch(text.strip())
    return None if found is None or _DATE.fullmatch(text) else found[2].strip()


def values_of(texts: Sequence[str]) -> tuple[Floats, bool] | None:
    """Return the numbers that nearly all texts state, NaN elsewhere, and whether they are years.

    None: they state neither numbers nor dates. A date is its year.
    """
    dates = [_DATE.fullmatch(text) for text in texts]
    if sum(map(bool, dates)) >= MOSTLY * len(texts) > 0:
        return np.array([float(one[1]) if one else np.nan for one in dates]), True
    numbers = [_NUMBER.fullmatch(text.strip()) for text in texts]
    if sum(map(bool, numbers)) < MOSTLY * len(texts) or not texts:
        return None
    values = np.array([float(one[1].replace(",", "")) if one else np.nan for one in numbers])
    stated = values[~np.isnan(values)]
    years = bool(
        ((stated == stated.round()) & (abs(stated) < 2100)).all() and (stated > 1000).all()
    )
    return values, years


def within(values: Floats, tolerance: float, years: bool) -> tuple[Ints, Ints]:
    """Return the pairs of numbers that are too near to each other, each once.

    Args:
        values: (texts,) numbers; NaN is near to none.
        tolerance: the least difference as a share of the larger number; of years, one year.
        years: whether the numbers are years.

    Raises:
        UsageError: there are too many.
    """
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    ascending = values[order]
    if years:
        reach = ascending
    else:
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
    other = one + 1 + np.arange(one.size) - np.repeat(np.cumsum(count) - count, count)
    return order[one], order[other]
