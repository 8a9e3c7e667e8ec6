"""Negate clauses: *not* after the auxiliary or copula, otherwise *do* with *not*."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from builders.function_words.nli.clauses import FINITE, Clause, fixed_words
from builders.function_words.nli.edits import Edit
from kbprobe.plugins import lemminflect

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
