"""Which answers are too much alike to be choices of the same question.

Two labels of one thing, or two numbers of which one is a rounding of the other, must not be told
apart: where one is right, the other is no distractor.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError

SHORTEST = 6
"""Labels with at least so many letters are alike if one letter differs."""

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


def one_letter_apart(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of texts that differ in one letter: left out, put in, or another."""
    shortened: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(map(plain, texts)):
        if len(text) < SHORTEST or any(letter.isdigit() for letter in text):
            continue
        for form in {text, *(text[:at] + text[at + 1 :] for at in range(len(text)))}:
            shortened[form].append(number)
    for some in shortened.values():
        yield from combinations(some, 2)


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
