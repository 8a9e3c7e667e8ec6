"""Denying a clause: *not* behind the auxiliary or copula, else *do* with *not*."""

from __future__ import annotations

from functools import lru_cache

from builders.function_words.nli.clauses import FINITE, Clause, fixed_words
from builders.function_words.nli.edits import Edit

_BE = frozenset(("am", "is", "are", "was", "were", "'m", "'re", "’m", "’re"))
_HAVE = frozenset(("have", "has", "had", "'ve", "’ve"))
_WILL = frozenset(("'ll", "’ll"))
_MODALS = frozenset(("can", "could", "might", "should", "will", "would"))
"""Modals of which the denial says the opposite: "may not" forbids, "must not" too."""

_DO = {"VBZ": "does not", "VBP": "do not", "VBD": "did not"}


def negated(clause: Clause) -> list[Edit] | None:
    """Return the edits that deny a clause, None where its form leaves doubt.

    Clauses with a negative word, or with one that a negation would turn strange (*some*, *also*),
    are in doubt, and so are verbs with an adverb before them and subjects of which it would be
    left open whether all or none are meant (*all animals do not ...*).
    """
    sentence, verb = clause.sentence, clause.verb
    lower, tags = sentence.lower, sentence.tags
    inside = lower[clause.first : clause.last]
    if not (fixed_words("negative_words") | fixed_words("words_not_negated")).isdisjoint(inside):
        return None
    subject = lower[clause.first : clause.subject_end]
    if clause.subject_end != verb or not fixed_words("scope_words").isdisjoint(subject):
        return None
    word, tag, after = lower[verb], tags[verb], _after(clause)
    behind = [Edit(verb + 1, verb + 1, "not")]
    if word in _BE:
        return behind
    if word in ("'s", "’s"):
        # "is" or "has": a participle behind it leaves that open.
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


def _after(clause: Clause) -> str:
    """The tag of what follows the finite verb, adverbs apart."""
    tags = clause.sentence.tags
    at = clause.verb + 1
    while at < clause.last and tags[at] == "RB":
        at += 1
    return tags[at] if at < clause.last else ""


@lru_cache(maxsize=1 << 14)
def verb_lemma(form: str) -> str:
    """Return the base of a finite verb form; empty where it is not known.

    >>> verb_lemma("has"), verb_lemma("bought"), verb_lemma("qzxed")
    ('have', 'buy', '')
    """
    import lemminflect

    found = lemminflect.getAllLemmas(form, upos="VERB").get("VERB", ())
    return str(found[0]) if found else ""
