"""Number words."""

from __future__ import annotations

MAX_NUMBER = 999
"""The highest number that is spelled out."""

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_word(number: int) -> str:
    """Spell out a number from 0 to 999.

    The words are those of ``inflect.number_to_words``, which takes two seconds to import; a test
    compares the two.

    >>> number_word(21), number_word(215)
    ('twenty-one', 'two hundred and fifteen')
    """
    if number < len(_UNITS):
        return _UNITS[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens] + (f"-{_UNITS[rest]}" if rest else "")
    hundreds, rest = divmod(number, 100)
    return f"{_UNITS[hundreds]} hundred" + (f" and {number_word(rest)}" if rest else "")
