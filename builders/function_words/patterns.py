"""Patterns of words and tags around a token, as the files ``data/NAME_frames.txt`` give them.

A pattern is a list of conditions, all of which hold of a token:

- ``2:CLASS``: the token two positions later (``-1``: the one before) is of a class; ``CLASS`` alone
  is about the token itself;
- ``<5:CLASS``: one of the five tokens before it is, with no comma, colon or conjunction in between;
  beyond five, and in ``<3-5:CLASS``, only a colon or semicolon ends the search;
- ``?:CLASS``: a token of its text is.

``!`` before a condition denies it. A class is a word, a tag (``/NN``, ``/VB*``), an ending
(``*ly``), a word list (``@measures``) or a named pattern (``$noun``), or several of them: ``|``
stands for "or", ``&`` for "and", ``!`` for "not". Lines of a file name patterns, ``$NAME =
PATTERN``, where several lines are alternatives, or give frames: ``NAME PATTERN -> WORDS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from builders.english.word_lists import word_groups, word_list
from builders.function_words.tokens import PACKAGE, TaggedTexts
from kbprobe.arrays import Bools

REACH = 5
"""Words back from a token; farther away, commas and conjunctions do not end a search."""


class Patterns:
    """The patterns of a file, as masks of the tokens of some texts."""

    def __init__(self, tagged: TaggedTexts, name: str, **masks: Bools) -> None:
        """Read ``data/NAME_frames.txt``, in which ``masks`` are further named patterns."""
        self.tagged = tagged
        self._masks = masks
        self._named: dict[str, list[Sequence[str]]] = {}
        self._frames: list[tuple[str, Sequence[str], Sequence[str]]] = []
        for first, *rest in word_groups(f"{name}_frames", PACKAGE):
            if rest[0] == "=":
                self._named.setdefault(first[1:], []).append(rest[1:])
            else:
                end = [*rest, "->"].index("->")
                self._frames.append((first, rest[:end], rest[end + 1 :]))

    def frames(self) -> Iterator[tuple[str, Bools, Sequence[str]]]:
        """Yield the name of each frame, the tokens in it, and the words that do not fit there."""
        for name, pattern, words in self._frames:
            yield name, self._matches(pattern), words

    def named(self, name: str) -> Bools:
        """Mark the tokens that match a named pattern."""
        if name not in self._masks:
            found = [self._matches(pattern) for pattern in self._named[name]]
            self._masks[name] = np.logical_or.reduce(found)
        return self._masks[name]

    def _matches(self, pattern: Sequence[str]) -> Bools:
        return np.asarray(np.logical_and.reduce([self._holds(part) for part in pattern]))

    def _holds(self, condition: str) -> Bools:
        if condition[0] == "!":
            return ~self._holds(condition[1:])
        place, _, words = condition.partition(":")
        if not words or place[0] == "/":
            return self._of_class(condition)
        marked = self._of_class(words)
        if place == "?":
            return self.tagged.in_text(marked)[self.tagged.text]
        if place[0] == "<":
            first, _, last = place[1:].rpartition("-")
            return self._behind(marked, int(first or 1), int(last))
        return self.tagged.near(marked, int(place))

    def _behind(self, marked: Bools, first: int, last: int) -> Bools:
        """Mark the tokens with a marked token ``first`` to ``last`` positions before them."""
        tagged = self.tagged
        stop = tagged.has_tag(",", ":", "CC")
        if first > 1 or last > REACH:
            stop = tagged.is_word(";", ":")
        found, open_ = np.zeros_like(marked), np.ones_like(marked)
        for distance in range(first, last + 1):
            found |= open_ & tagged.near(marked, -distance)
            open_ &= ~tagged.near(stop, -distance)
        return found

    def _of_class(self, words: str) -> Bools:
        either = [
            np.logical_and.reduce([self._is(part) for part in both.split("&")])
            for both in words.split("|")
        ]
        return np.asarray(np.logical_or.reduce(either))

    def _is(self, one: str) -> Bools:
        tagged = self.tagged
        match one[0], one[1:]:
            case "!", other:
                return ~self._is(other)
            case "/", tag:
                return tagged.has_tag(tag)
            case "*", ending:
                return tagged.ends_with(ending)
            case "@", name:
                return tagged.is_one_of(word_list(name, PACKAGE))
            case "$", name:
                return self.named(name)
        return tagged.is_word(one)
