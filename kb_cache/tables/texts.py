"""What the texts of a table state, however they are spelt: labels, numbers and dates."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

LONG_PLURAL = 4
"""Labels of so many letters that end with "s" read like those without it."""

_OTHER = re.compile(r"[^\w+#*%&@$£€°′″]|_")
_UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe",
                               "þ": "th", "ı": "i"})  # fmt: skip
_NUMBER = re.compile(
    r"(?:(?:ca|circa|about|approx)\.?\s*|[~≈<>≤≥]\s*)?([$€£¥]?)\s*"
    r"([-+−]?(?:\d{1,3}(?:[ ']\d{3})+|[\d.,]*\d)(?:[eE][-+]?\d+)?)\s*"
    r"((?:[^\W\d_]|[%°′″$€£¥]).{0,20})?",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3})+|(?:,\d{2})+,\d{3})(?:\.\d+)?")
_GROUPED_BY_DOTS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
_SCALES = {"thousand": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_DATE = re.compile(r"([-+]?\d{4})[-/]\d\d?([-/]\d\d?)?(?:[T ].*)?|\d{1,2}[./-]\d{1,2}[./-](\d{4})")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAY = r"(\d{1,2}(?:st|nd|rd|th)?[.,]?\s+(?:of\s+)?)?"
_WRITTEN_DATE = re.compile(rf"{_DAY}(?:{_MONTHS})[a-z]*\.?,?\s+{_DAY}(\d{{4}})", re.IGNORECASE)

DATE, MONTH = "date", "month"
"""What stands for the unit of a date, and of one without a day."""


def plain(text: str) -> str:
    """Return a label without case, accents, punctuation and plural.

    >>> plain("São Tomé"), plain("Mixed-bloods"), plain("C++"), plain("Łódź"), plain("cities")
    ('saotome', 'mixedblood', 'c++', 'lodz', 'city')
    """
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_UNDECOMPOSED)
    letters = _OTHER.sub("", "".join(c for c in folded if not unicodedata.combining(c)))
    if len(letters) > LONG_PLURAL and letters.endswith("ies"):
        letters = f"{letters[:-3]}y"
    elif len(letters) >= LONG_PLURAL and letters.endswith("s") and letters[-2] not in "sui":
        letters = letters[:-1]
    return letters or text


class Quantity(NamedTuple):
    """A number or a date, of which the value is the year."""

    value: float
    unit: str


def quantity(text: str) -> Quantity | None:
    """Return the number or date that a text states; None if it states neither.

    >>> quantity("1,250 km"), quantity("$1.2 million"), quantity("two")
    (Quantity(value=1250.0, unit='km'), Quantity(value=1200000.0, unit='$'), None)
    >>> quantity("1969-07-20"), quantity("July 1969")
    (Quantity(value=1969.0, unit='date'), Quantity(value=1969.0, unit='month'))
    """
    if not any(character.isdigit() for character in text):
        return None
    if date := _DATE.fullmatch(text):
        return Quantity(float(date[1] or date[3]), DATE if date[2] or date[3] else MONTH)
    if date := _WRITTEN_DATE.fullmatch(text):
        return Quantity(float(date[3]), DATE if date[1] or date[2] else MONTH)
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    digits = re.sub(r"[ ']", "", found[2]).replace("−", "-")
    if _GROUPED.fullmatch(digits):
        digits = digits.replace(",", "")
    elif _GROUPED_BY_DOTS.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", ".")
    first, _, rest = (found[3] or "").strip().partition(" ")
    scale = _SCALES.get(first.casefold(), 1.0)
    unit = rest if scale > 1 else (found[3] or "").strip()
    try:
        return Quantity(scale * float(digits), f"{found[1]}{unit}")
    except ValueError:
        return None


def stated_by(text: str) -> Quantity | str:
    """Return what a text states: equal for texts that are only spelt in another way.

    Numbers are compared by value and unit, and all else as `plain` does; two dates are the same
    only if written in the same way.

    >>> stated_by("1,037 km") == stated_by("1037 km"), stated_by("ANNA") == stated_by("Anna")
    (True, True)
    >>> stated_by("1.037") == stated_by("1,037"), stated_by("-5") == stated_by("5")
    (False, False)
    """
    number = quantity(text)
    return plain(text) if number is None or number.unit in (DATE, MONTH) else number
