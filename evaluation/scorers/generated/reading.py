r"""Reading which choice a written answer names: strictly, or not at all.

Accepted are, in this order, a boxed letter; the letter or the choice's text after "answer is" or
"Answer:"; an answer that is a letter or the text of a choice; and one with a line that begins with
a letter as lists do (``B.``, ``(B)``, ``**B**``). Of boxes and statements the last counts, since
models reason first. An answer that names several choices names none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from evaluation.items.orders import LETTERS

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
"""Reasoning that a model writes before its answer; without an end there is no answer."""
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\(?:text|textbf|mathrm|mathbf)\s*\{)?\s*\(?([A-Za-z])\b")
_STATED = re.compile(r"\banswer(?:\s+is\b|\s*:)[\s:*]*", re.IGNORECASE)
_LETTER = re.compile(r"(?:(?:option|choice|letter)\s+)?[*_(\[\"'“]*([A-Z])", re.IGNORECASE)
_AFTER_LETTER = re.compile(r"[)\]*_\"'”.,;:!]|\s*$|\s+(?:because|since|as)\b")
"""What ends a letter: "the answer is a dog" names none."""
_LISTED = re.compile(r"^[\s*_(\[\"'“]*([A-Z])[)\]*_\"'”.:]+(?:\s+(.*))?$", re.MULTILINE)
_LONE = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


def read_choice(text: str, choices: Sequence[str]) -> int | None:
    r"""Return the place of the choice that an answer names; None if it names none, or several.

    Args:
        text: what a model wrote.
        choices: the texts of the choices, in the order in which they were shown as A, B, ....

    >>> shown = ["a dog", "a river", "a city"]
    >>> [read_choice(text, shown) for text in ("B", "(b).", "**C. a city**", "A river", "a dog")]
    [1, 1, 2, 1, 0]
    >>> read_choice("A robin is no dog. So the answer is \\boxed{B}.", shown)
    1
    >>> [read_choice(text, shown) for text in ("A dog or a river", "A. a dog\nB. a river", "D")]
    [None, None, None]
    """
    answer = _THOUGHT.sub("", text).strip()
    if boxed := _BOXED.findall(answer):
        return _place(boxed[-1], choices)
    if stated := list(_STATED.finditer(answer)):
        said = answer[stated[-1].end() :].partition("\n")[0]
        letter = _LETTER.match(said)
        if letter and _AFTER_LETTER.match(said, letter.end()):
            return _place(letter[1], choices)
        return _only(_named(said, choices))
    if lone := _LONE.fullmatch(answer):
        return _place(lone[1], choices)
    if named := _named(answer, choices):
        return _only(named)
    listed: set[int | None] = set()
    for letter, rest in _LISTED.findall(answer):
        place, same = _place(letter, choices), _named(rest, choices)
        listed |= {place} if place in same else {place, *same}
    return _only(listed)


def _only(places: set[int] | set[int | None]) -> int | None:
    return next(iter(places)) if len(places) == 1 else None


def _place(letter: str, choices: Sequence[str]) -> int | None:
    place = LETTERS.find(letter.upper())
    return place if 0 <= place < len(choices) else None


def _named(said: str, choices: Sequence[str]) -> set[int]:
    """Return the choices that a text is."""
    plain = _plain(said)
    return {place for place, text in enumerate(choices) if plain and _plain(text) == plain}


def _plain(text: str) -> str:
    """Return a text without case, surrounding punctuation, and the width of spaces."""
    return _EDGES.sub("", " ".join(text.casefold().split()))


def letter_shares(log_probs: Mapping[str, float], count: int) -> list[float]:
    """Return the probability that an answer's first token is each of the first letters.

    Args:
        log_probs: the most likely tokens, with their log-probabilities (nats).
        count: how many letters were shown.

    >>> [round(one, 3) for one in letter_shares({"A": -0.5, " A": -2.0, "The": -3.0}, 2)]
    [0.742, 0.0]
    """
    shares = [0.0] * count
    for token, log_prob in log_probs.items():
        letter = token.strip(" \n\t▁ĠĊ")
        if len(letter) == 1 and 0 <= (place := LETTERS.find(letter)) < count:
            shares[place] += math.exp(log_prob)
    return shares
