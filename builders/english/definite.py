"""Names that take *the*: institutions, states, islands."""

from __future__ import annotations

import re
from functools import cache

from builders.english.word_lists import word_list

_PATTERNS = {
    "any": r"^[^,]*\b{}\b",
    "start": r"^{}\b",
    "end": r"\b{}$",
    "whole": r"^{}$",
    "bare": r"^{}\b",
}


@cache
def _rules() -> tuple[tuple[bool, re.Pattern[str]], ...]:
    """Return patterns of names without an article (False), then of those with one (True)."""
    rules = []
    for entry in word_list("definite_names"):
        place, _, words = entry.partition(":")
        pattern = _PATTERNS[place].format(re.escape(words.replace("-", " ")))
        rules.append((place != "bare", re.compile(pattern, re.IGNORECASE)))
    return tuple(sorted(rules, key=lambda rule: (rule[0], rule[1].pattern)))


def takes_the(name: str) -> bool:
    """Return whether the name of an institution or a state takes *the*.

    >>> takes_the("University of Vienna"), takes_the("Harvard University")
    (True, False)
    >>> takes_the("Kingdom of Sardinia"), takes_the("Czechoslovakia")
    (True, False)
    >>> takes_the("The Wharton School"), takes_the("Royal Holloway, University of London")
    (False, False)
    """
    if name.lower().startswith("the "):
        return False
    return next((the for the, pattern in _rules() if pattern.search(name)), False)


def with_the(name: str, the: str = "the") -> str:
    """Return a name with *the*, if it takes it.

    >>> with_the("Isle of Man"), with_the("Netherlands", "The"), with_the("France")
    ('the Isle of Man', 'The Netherlands', 'France')
    """
    return f"{the} {name}" if takes_the(name) else name
