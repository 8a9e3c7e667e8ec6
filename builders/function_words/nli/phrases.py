"""Noun phrases after prepositions, recognized by their tags."""

from __future__ import annotations

from typing import NamedTuple

from builders.function_words.nli.clauses import NOUNS, Sentence
from builders.function_words.nli.lexicon import Lexicon

_INSIDE = NOUNS | {"DT", "PRP$", "JJ", "JJR", "JJS", "CD", "POS", "PDT", "VBN"}

_BEHIND = _INSIDE - {"DT", "PRP$", "PDT"} | {"POS"}


class Phrase(NamedTuple):
    """A noun phrase: the tokens ``first:last``, with its last noun as ``head``."""

    sentence: Sentence
    first: int
    last: int
    head: int

    @property
    def word(self) -> str:
        """The head, in lower case."""
        return self.sentence.words[self.head].lower()

    @property
    def definite(self) -> bool:
        """Whether it begins with a definite article, a demonstrative or a possessive."""
        first = self.sentence.words[self.first].lower()
        return self.sentence.tags[self.first] == "PRP$" or first in ("the", "this", "that")

    @property
    def determined(self) -> bool:
        """Whether it begins with any article or possessive."""
        return self.sentence.tags[self.first] in ("DT", "PRP$")

    def kind(self, lexicon: Lexicon) -> str:
        """Return what it names: a kind of WordNet's nouns, "name" or "pronoun"."""
        tag = self.sentence.tags[self.head]
        if tag == "PRP":
            return "person" if self.word in ("me", "him", "her", "us", "you") else "pronoun"
        words = self.sentence.words
        if tag in ("NNP", "NNPS"):
            begin = self.head
            while begin > self.first and self.sentence.tags[begin - 1] in ("NNP", "NNPS"):
                begin -= 1
            whole = lexicon.noun_kind(" ".join(words[begin : self.head + 1]))
            last = lexicon.noun_kind(words[self.head])
            if whole in ("location", "time"):
                return whole
            return "location" if begin == self.head and last == "location" else "name"
        if tag == "CD":
            return "year" if words[self.head].isdigit() and len(words[self.head]) == 4 else "number"
        return lexicon.noun_kind(words[self.head])


def noun_phrase(sentence: Sentence, at: int) -> Phrase | None:
    """Return the noun phrase that begins at a token, or None."""
    tags = sentence.tags
    if at < len(tags) and tags[at] == "PRP":
        return Phrase(sentence, at, at + 1, at)
    end = at
    while end < len(tags) and tags[end] in (_INSIDE if end == at else _BEHIND):
        if tags[end] in ("JJ", "CD") and end > at and tags[end - 1] in NOUNS:
            break
        end += 1
    while end > at and tags[end - 1] not in NOUNS | {"CD"}:
        end -= 1
    return Phrase(sentence, at, end, end - 1) if end > at else None
