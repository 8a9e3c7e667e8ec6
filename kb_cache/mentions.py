"""Finding where a word occurs in an example sentence, inflected or not.

A match is one stretch of text. A phrasal verb whose object stands between verb and particle
("put the coat on" for *put on*) is therefore not found; so are lemmas that the example merely
paraphrases. Both are counted among the failures that ``kb_cache.wordnet.compile`` reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from kbprobe.plugins import lemminflect

#: Lemmatisation rules by part of speech: ``(ending, replacement)`` pairs.
Rules = Mapping[str, Sequence[tuple[str, str]]]
#: Irregular forms by part of speech: surface form to its base forms.
Exceptions = Mapping[str, Mapping[str, Sequence[str]]]

_UNIVERSAL_POS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_TOKEN = re.compile(r"[^\W_]+")
_APOSTROPHES = "'’"
#: Characters that may always be between the tokens of a multiword lemma.
_GAP = frozenset(" \t\n-_")
# fmt: off
_POSSESSIVES = frozenset(("my", "your", "his", "her", "its", "our", "their", "whose"))
_REFLEXIVES = frozenset((
    "oneself", "myself", "yourself", "himself", "herself", "itself", "ourselves",
    "yourselves", "themselves",
))
_PERSONS = frozenset((
    "someone", "somebody", "me", "you", "him", "her", "us", "them", "anyone", "everyone", "one",
))
# fmt: on

# Qualities of a match, best first.
_EXACT, _OTHER_CASE, _INFLECTED, _IN_COMPOUND = range(4)


class Span(NamedTuple):
    """Character offsets: ``text[start:end]`` is the surface form."""

    start: int
    end: int


class _Token(NamedTuple):
    text: str
    lower: str
    start: int
    end: int


def _tokenise(text: str) -> list[_Token]:
    return [_Token(m[0], m[0].lower(), m.start(), m.end()) for m in _TOKEN.finditer(text)]


@dataclass
class Inflections:
    """Return whether a token is a form of a word: three sources, none of which is complete.

    WordNet's own exception lists and endings (what NLTK's morphy applies, here without the
    demand that the base be an entry by itself: *hunker* of *hunker down* is none), and
    lemminflect's dictionary, with its rules for words that it does not list.
    """

    rules: Rules
    exceptions: Exceptions
    _bases: dict[tuple[str, str], set[str]] = field(default_factory=dict, repr=False)

    def matches(self, token: str, word: str, pos: str) -> bool:
        """Return whether ``token`` is ``word`` or an inflected form of it (both lower case)."""
        pos = "a" if pos == "s" else pos
        if token == word or word in self._bases_of(token, pos):
            return True
        return token in _forms(word, _UNIVERSAL_POS[pos])

    def _bases_of(self, token: str, pos: str) -> set[str]:
        key = (token, pos)
        if key not in self._bases:
            bases = set(self.exceptions.get(pos, {}).get(token, ()))
            for ending, replacement in self.rules.get(pos, ()):
                # Two letters must remain: "as" is not a plural of "a", nor "being" a form of "b".
                if token.endswith(ending) and len(token) - len(ending) > 1:
                    bases.add(token[: -len(ending)] + replacement)
            self._bases[key] = bases
        return self._bases[key]


@dataclass
class ListedForms:
    """Return whether a token is a form of a word, in a language without rules: as far as listed.

    Attributes:
        forms: other forms by part of speech: surface form to the words that have it.
    """

    forms: Exceptions

    def matches(self, token: str, word: str, pos: str) -> bool:
        """Return whether ``token`` is ``word`` or a listed form of it (both lower case)."""
        return token == word or word in self.forms.get("a" if pos == "s" else pos, {}).get(
            token, ()
        )


@cache
def _forms(word: str, universal_pos: str) -> frozenset[str]:
    if not word.isalpha():
        return frozenset()
    known = lemminflect()
    by_tag = known.getAllInflections(word, universal_pos)
    by_tag = by_tag or known.getAllInflectionsOOV(word, universal_pos)
    return frozenset(form.lower() for forms in by_tag.values() for form in forms)


class MentionFinder:
    """Finds lemmas in texts; caches what it learns about a lemma."""

    def __init__(self, inflections: Inflections | ListedForms) -> None:
        self._inflections = inflections
        self._text = ""
        self._tokens: list[_Token] = []

    def find(self, text: str, lemma: str, pos: str) -> Span | None:
        """Return the best mention of ``lemma`` in ``text``, or None.

        An occurrence as written beats one in other case, which beats an inflected one, which
        beats one inside a hyphenated compound; among equals the first wins. Never is a match
        part of a word, nor of a contraction other than a possessive ("dog's" gives "dog").

        The lemma has underscores or spaces between its words; *one's*, *oneself* and *someone* in
        it stand for any such pronoun or possessive. ``pos`` is "n", "v", "a", "s" or "r".
        """
        if text != self._text:
            self._text, self._tokens = text, _tokenise(text)
        pattern = _tokenise(lemma)
        if not pattern:
            return None
        matches = self._matches(_Lemma(lemma, pattern, pos))
        best = min(matches, key=lambda match: (match[0], match[1].start), default=None)
        return best[1] if best else None

    def _matches(self, lemma: _Lemma) -> Iterable[tuple[int, Span]]:
        for first in range(len(self._tokens)):
            found = list(self._match_at(lemma, 0, first))
            joined = self._match_joined(lemma, first)
            for quality, last in found if joined is None else [*found, (_INFLECTED, joined)]:
                span = self._span(lemma, first, last)
                if span is None:
                    continue
                if quality == _EXACT and self._text[span.start : span.end] != lemma.spaced:
                    quality = _OTHER_CASE
                yield (_IN_COMPOUND if self._in_compound(span) else quality), span

    def _match_at(self, lemma: _Lemma, i: int, t: int) -> Iterable[tuple[int, int]]:
        """Match the tokens from ``i`` at the text's from ``t``: ``(quality, last text token)``."""
        for quality, used_pattern, used_tokens in self._match_one(lemma, i, t):
            next_i, next_t = i + used_pattern, t + used_tokens
            if next_i == len(lemma.tokens):
                yield quality, next_t - 1
            elif next_t < len(self._tokens) and self._gap_fits(lemma, next_i, next_t):
                for rest, last in self._match_at(lemma, next_i, next_t):
                    yield max(quality, rest), last

    def _match_one(self, lemma: _Lemma, i: int, t: int) -> Iterable[tuple[int, int, int]]:
        """Match one element of the lemma: ``(quality, lemma tokens used, text tokens used)``."""
        word, token = lemma.tokens[i].lower, self._tokens[t].lower
        if lemma.is_possessive(i):
            if token in _POSSESSIVES:
                yield _INFLECTED, 2, 1
            if t + 1 < len(self._tokens) and self._gap(t + 1) in _APOSTROPHES:
                if self._tokens[t + 1].lower == "s":
                    yield _EXACT if token == word else _INFLECTED, 2, 2
            elif self._text[self._tokens[t].end :][:1] in tuple(_APOSTROPHES):
                yield _INFLECTED, 2, 1
            return
        if token == word:
            yield _EXACT, 1, 1
        elif (
            lemma.stands_for(word, token)
            or self._inflections.matches(token, word, lemma.pos)
            # "made amends", "take turns": the noun of a verb phrase has its own number.
            or (lemma.pos == "v" and i > 0 and self._inflections.matches(token, word, "n"))
        ):
            yield _INFLECTED, 1, 1

    def _match_joined(self, lemma: _Lemma, first: int) -> int | None:
        """Match across another division into words: *by-line* as "byline", and the reverse."""
        text = self._tokens[first].lower
        if len(lemma.tokens) > 1:
            return first if self._inflections.matches(text, lemma.joined, lemma.pos) else None
        for last in range(first + 1, len(self._tokens)):
            if self._gap(last) != "-":
                return None
            text += self._tokens[last].lower
            if len(text) > len(lemma.joined) + 4:
                return None
            if self._inflections.matches(text, lemma.joined, lemma.pos):
                return last
        return None

    def _gap(self, t: int) -> str:
        """Return the text between token ``t`` and the previous one."""
        return self._text[self._tokens[t - 1].end : self._tokens[t].start]

    def _gap_fits(self, lemma: _Lemma, i: int, t: int) -> bool:
        between = self._gap(t)
        return len(between) <= 3 and all(char in _GAP or char in lemma.gaps[i] for char in between)

    def _span(self, lemma: _Lemma, first: int, last: int) -> Span | None:
        """Return the span from token to token, or None if it would cut a word."""
        text, start, end = self._text, self._tokens[first].start, self._tokens[last].end
        if lemma.head and text[:start].lower().endswith(lemma.head):
            start -= len(lemma.head)
        if lemma.tail and text[end:].startswith(lemma.tail):
            end += len(lemma.tail)
        before, after = text[max(start - 2, 0) : start], text[end : end + 2]
        if len(before) == 2 and before[1] in _APOSTROPHES and before[0].isalnum():
            return None
        if len(before) == 2 and before[1] in ".," and before[0].isdigit() and text[start].isdigit():
            return None
        if len(after) == 2 and after[0] in ".," and after[1].isdigit() and text[end - 1].isdigit():
            return None
        if len(after) == 2 and after[0] in _APOSTROPHES and after[1].isalnum():
            possessive = last + 1 < len(self._tokens) and self._tokens[last + 1].lower == "s"
            if not possessive:
                return None
        if lemma.is_acronym and not text[start:].startswith(lemma.spaced):
            return None
        return Span(start, end)

    def _in_compound(self, span: Span) -> bool:
        text = self._text
        left = text[: span.start].endswith("-") and text[max(span.start - 2, 0)].isalnum()
        right = text[span.end : span.end + 1] == "-" and text[span.end + 1 : span.end + 2].isalnum()
        return left or right


class _Lemma:
    """A lemma split into its tokens and the text between, before and after them."""

    def __init__(self, lemma: str, tokens: list[_Token], pos: str) -> None:
        self.tokens = tokens
        self.pos = pos
        self.spaced = lemma.replace("_", " ")
        self.joined = "".join(token.lower for token in tokens)
        self.gaps = [""] + [lemma[a.end : b.start] for a, b in pairwise(tokens)]
        self.head = lemma[: tokens[0].start]
        self.tail = lemma[tokens[-1].end :]
        # "IT", "US", "A" (ampere) are not "it", "us", "a".
        self.is_acronym = lemma.isupper() and lemma.isalpha()

    def stands_for(self, word: str, token: str) -> bool:
        """Return whether ``word`` is a placeholder of this lemma that ``token`` can fill."""
        if len(self.tokens) == 1:
            return False
        if word == "oneself":
            return token in _REFLEXIVES
        return word in ("someone", "somebody") and token in _PERSONS

    def is_possessive(self, i: int) -> bool:
        """Return whether tokens ``i`` and ``i + 1`` are *one's*, *someone's* or *somebody's*."""
        return (
            len(self.tokens) > 2
            and i + 1 < len(self.tokens)
            and self.tokens[i].lower in ("one", "someone", "somebody")
            and self.tokens[i + 1].lower == "s"
            and self.gaps[i + 1] in _APOSTROPHES
        )
