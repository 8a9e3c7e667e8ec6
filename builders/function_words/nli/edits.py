"""Changes to words of a sentence, with correct case, spaces and articles; noun phrases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from builders.english.inflection import with_article
from builders.function_words.nli.clauses import FINITE, NOUNS, Clause, Sentence, fixed_words
from builders.function_words.nli.lexicon import WordKinds
from kbprobe.plugins import lemminflect


class Edit(NamedTuple):
    """The replacement of the tokens ``first:last``; an insertion before ``first`` if empty.

    An empty ``text`` removes the tokens.
    """

    first: int
    last: int
    text: str


def rewritten(sentence: Sentence, edits: Iterable[Edit], first: int = 0, last: int = 0) -> str:
    """Apply edits that do not overlap to a sentence, or to its tokens ``first:last`` as a sentence.

    The text between tokens is kept. The result begins with a capital and ends with a full stop;
    *a* and *an* are adapted to the replaced word after them.

    >>> words = ["It", "is", "an", "old", "car", "."]
    >>> tags = ["PRP", "VBZ", "DT", "JJ", "NN", "."]
    >>> starts = [0, 3, 6, 9, 13, 16]
    >>> ends = [2, 5, 8, 12, 16, 17]
    >>> car = Sentence("It is an old car.", starts, ends, words, tags)
    >>> rewritten(car, [Edit(2, 2, "not"), Edit(3, 4, "young")])
    'It is not a young car.'
    """
    last = last or len(sentence)
    changes = sorted((*edits, *_articles(sentence, edits := list(edits))))
    text, pieces, at = sentence.text, list[str](), sentence.start[first]
    for change in changes:
        if change.first == change.last:
            where = sentence.end[change.first - 1] if change.first > first else at
            new = f" {change.text}" if change.first > first else f"{change.text} "
            pieces += [text[at:where], new]
            at = where
            continue
        begin, end = sentence.start[change.first], sentence.end[change.last - 1]
        before, new = text[at:begin], change.text
        if not new:
            before = before.rstrip()
        elif new[0].isalpha() and change.first > first and begin == sentence.end[change.first - 1]:
            before += " "  # the old token was joined to the word before it: "she'll"
        if change.first == 0 and sentence.words[0][:1].isupper() and new:
            new = new[0].upper() + new[1:]
        pieces += [before, new]
        at = end
    pieces.append(text[at : sentence.end[last - 1]])
    made = "".join(pieces).strip().rstrip(",;: ")
    made = made[:1].upper() + made[1:]
    return made if made.endswith((".", "!", "?")) else f"{made}."


def _articles(sentence: Sentence, edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits of the articles before words that are replaced or inserted."""
    more = []
    for edit in edits:
        at = edit.first - 1
        if at < 0 or not edit.text or sentence.words[at].lower() not in ("a", "an"):
            continue
        article = with_article(edit.text.lower()).split(" ")[0]
        if article != sentence.words[at].lower():
            shown = article.capitalize() if sentence.words[at][0].isupper() else article
            more.append(Edit(at, at + 1, shown))
    return more


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

    def kind(self, lexicon: WordKinds) -> str:
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


_BE = frozenset(("am", "is", "are", "was", "were", "'m", "'re", "’m", "’re"))
_HAVE = frozenset(("have", "has", "had", "'ve", "’ve"))
_WILL = frozenset(("'ll", "’ll"))
_MODALS = frozenset(("can", "could", "may", "might", "must", "shall", "should", "will", "would"))
_FORBIDDING = frozenset(("may", "must", "shall"))

SCOPE, MODAL = "scope", "modal"
FLAGS = {
    SCOPE: "A subject with a quantifier is denied at the verb, which leaves open whether all or "
    'none are meant: "all dogs do not bark".',
    MODAL: 'A modal is denied that then forbids: "may not", "must not".',
}
"""Reasons to keep a row out of the clean tier."""

_DO = {"VBZ": "does not", "VBP": "do not", "VBD": "did not"}


class Denial(NamedTuple):
    """The edits that negate a clause, and its doubts (keys of `FLAGS`)."""

    edits: list[Edit]
    flags: tuple[str, ...] = ()


def negated(clause: Clause) -> Denial | None:
    """Return the edits that negate a clause, or None if its form is uncertain.

    This is the case for clauses with a negative word or with one that sounds odd under negation
    (*some*, *also*), and for verbs preceded by an adverb. If only the meaning is doubtful, the
    denial is flagged.
    """
    lower = clause.sentence.lower
    inside = lower[clause.first : clause.last]
    if is_denied(clause) or not fixed_words("words_not_negated").isdisjoint(inside):
        return None
    if clause.subject_end != clause.verb or (edits := _at_verb(clause)) is None:
        return None
    subject = lower[clause.first : clause.subject_end]
    scope = not fixed_words("scope_words").isdisjoint(subject)
    modal = lower[clause.verb] in _FORBIDDING
    return Denial(edits, (SCOPE,) * scope + (MODAL,) * modal)


def _at_verb(clause: Clause) -> list[Edit] | None:
    sentence, verb = clause.sentence, clause.verb
    lower, tags = sentence.lower, sentence.tags
    word, tag, after = lower[verb], tags[verb], _after(clause)
    behind = [Edit(verb + 1, verb + 1, "not")]
    if word in _BE:
        return behind
    if word in ("'s", "’s"):
        # "is" or "has": a following participle does not decide which.
        return behind if tag == "VBZ" and after not in ("VBN", "VBD") else None
    if tag == "MD":
        if word == "can":
            if lower[verb + 1 : verb + 2] == ["help"]:
                return None
            return [Edit(verb, verb + 1, "cannot")]
        if word in _WILL:
            return [Edit(verb, verb + 1, "will not")]
        return behind if word in _MODALS else None
    if word in _HAVE and after == "VBN":
        return behind
    if word in ("do", "does", "did") and after == "VB":
        return behind
    if word[0] in "'’" or after in FINITE or (word == "used" and after == "TO"):
        return None
    base = verb_lemma(sentence.words[verb].lower())
    return [Edit(verb, verb + 1, f"{_DO[tag]} {base}")] if base else None


def is_denied(clause: Clause) -> bool:
    """Return whether a clause already has a negative word."""
    inside = clause.sentence.lower[clause.first : clause.last]
    return not fixed_words("negative_words").isdisjoint(inside)


def _after(clause: Clause) -> str:
    """Return the tag of the token after the finite verb, skipping adverbs."""
    tags = clause.sentence.tags
    at = clause.verb + 1
    while at < clause.last and tags[at] == "RB":
        at += 1
    return tags[at] if at < clause.last else ""


@lru_cache(maxsize=1 << 14)
def verb_lemma(form: str) -> str:
    """Return the base of a finite verb form; empty if it is unknown.

    >>> verb_lemma("has"), verb_lemma("bought"), verb_lemma("qzxed")
    ('have', 'buy', '')
    """
    found = lemminflect().getAllLemmas(form, upos="VERB").get("VERB", ())
    return str(found[0]) if found else ""
