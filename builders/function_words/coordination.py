"""fw_coordination: "and", "or" and "but" exchanged where only one of them fits.

Most clauses can be joined by any of the three. Words are therefore exchanged only in frames, each
with words that do not fit it:

- *nouns*: nouns, names, pronouns or numbers are joined ("cats but dogs");
- *pair*: "both", "between", "either" or "whether" asks for its partner ("both cats or dogs");
- *alike*: verbs, adverbs or prepositions are joined ("to buy but sell").
- *exception*: "but" behind "nothing", "all" or "no choice" ("nothing or trouble");
- *contrast*: "but" behind "not only", or before a statement of fact ("He knocked or nobody came");
- *expression*: in a fixed expression ("more but more", "two hundred but ten", "a week but so").
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from builders.english.word_lists import word_list
from builders.function_words.candidates import NO_FRAME, Swap
from builders.function_words.tokens import PACKAGE, TaggedTexts
from kbprobe.arrays import Bools

WORDS = ("and", "or", "but")

FAR = 12
"""Maximum number of words before a conjunction in which to look for a clause."""

REACH = 5
"""Maximum number of words from "both" or "between" to its partner."""

_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_FINITE = ("VBD", "VBZ", "VBP", "MD")


def coordination_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield every exchange of a conjunction for another that its frame does not allow.

    Conjunctions in none of the frames are exchanged for one of the others, and flagged.

    Args:
        tagged: the sentences.
        allowed: (texts,) the sentences that may be changed.
    """
    within = tagged.is_one_of(WORDS) & allowed[tagged.text] & ~tagged.first
    within &= ~tagged.near(tagged.is_one_of(WORDS) | tagged.is_word("/"), 1)
    taken = np.zeros_like(within)
    for frame, at, others in _frames(tagged, within):
        for token in np.flatnonzero(at & ~taken).tolist():
            for other in others:
                yield Swap((token,), (other,), frame)
        taken |= at
    for token in np.flatnonzero(within & ~taken).tolist():
        rest = [word for word in WORDS if word != tagged.words[tagged.code[token]]]
        yield Swap((token,), (rest[token % len(rest)],), "any", -1, (NO_FRAME,))


def _frames(tagged: TaggedTexts, within: Bools) -> Iterator[tuple[str, Bools, tuple[str, ...]]]:
    """Yield (frame, tokens, words that do not fit there), the most certain first."""
    near = tagged.near
    and_, or_, but = (within & tagged.is_word(word) for word in WORDS)
    noun = tagged.has_tag(*_NOUNS)
    finite = tagged.has_tag(*_FINITE)
    clause = _before_clause(tagged)

    yield "pair", and_ & _behind(tagged, tagged.is_word("both")), ("or", "but")
    yield "pair", and_ & _behind(tagged, tagged.is_word("between")), ("or", "but")
    one = near(tagged.is_word("one", "way", "case", "side", "of"), 1)
    either = tagged.is_word("either") & ~one
    yield "pair", or_ & _behind(tagged, either), ("and", "but")
    yield "pair", or_ & _behind(tagged, either, FAR), ("and", "but")
    whether = tagged.is_word("whether")
    yield "pair", or_ & near(whether, -1), ("and", "but")
    yield "pair", or_ & _behind(tagged, whether, FAR), ("but",)
    yield "pair", or_ & near(tagged.is_word("neither"), -2), ("and", "but")

    only = tagged.is_word("only") & near(tagged.is_word("not"), -1)
    also = near(tagged.is_word("also"), 1)
    yield "contrast", but & also & _behind(tagged, only, FAR), ("and", "or")
    yield "contrast", but & ~clause & _behind(tagged, only, FAR), ("and", "or")
    none = tagged.is_one_of(word_list("words_before_but", PACKAGE))
    yield "exception", but & near(none, -1), ("and", "or")
    choice = tagged.is_word("choice", "option", "alternative", "help")
    yield "exception", but & near(choice, -1), ("and", "or")

    same = np.zeros_like(within)
    if within.size > 2:
        same[1:-1] = tagged.code[2:] == tagged.code[:-2]
    yield "expression", and_ & same, ("or", "but")
    yield (
        "expression",
        and_ & near(tagged.is_word("so"), 1) & near(tagged.is_word("on", "forth"), 2),
        ("or", "but"),
    )
    half = near(tagged.is_word("a"), 1) & near(tagged.is_word("half", "quarter", "third"), 2)
    yield "expression", and_ & half, ("or", "but")
    hundred = near(tagged.is_word("hundred", "thousand"), -1) & near(tagged.has_tag("CD"), 1)
    yield "expression", and_ & hundred, ("or", "but")
    so = near(tagged.is_word("so", "otherwise", "thereabouts"), 1) & near(
        tagged.has_tag(".", ",", "IN", "NN*", "CC", "TO"), 2
    )
    yield "expression", or_ & so & near(noun | tagged.has_tag("CD"), -1), ("but", "and")
    more = near(tagged.is_word("more", "less", "fewer"), 1) & near(noun | tagged.has_tag("CD"), -1)
    yield "expression", or_ & more, ("but",)

    vague = tagged.is_word("anything", "not", "otherwise", "something", "whatever")
    ends = tagged.has_tag(".", ",", ":", "CC", "IN", "''")
    yield "expression", or_ & near(vague, 1) & near(ends, 2), ("and", "but")
    yield "expression", or_ & near(tagged.is_word("sooner"), -1), ("and", "but")
    yield "expression", or_ & near(tagged.is_word("else"), 1), ("and", "but")
    number = tagged.has_tag("CD")
    counted = near(number, 1) & near(tagged.has_tag("NNS"), 2)
    yield "expression", or_ & near(number, -1) & counted, ("and", "but")
    unit = near(noun, -1) & near(tagged.is_word("a", "an"), -2)
    yield "expression", or_ & unit & near(tagged.is_word("two", "so"), 1), ("and", "but")
    yield (
        "expression",
        or_ & near(tagged.is_word("one"), -1) & near(tagged.is_word("more"), 1),
        ("and", "but"),
    )
    way = near(tagged.is_word("one"), -1) | near(tagged.is_word("one"), -2)
    other = near(tagged.is_word("other", "another"), 1) | near(tagged.is_word("other"), 2)
    yield "expression", or_ & way & other, ("and", "but")
    twice = near(tagged.is_word("once"), -1) & near(tagged.is_word("twice"), 1)
    yield "expression", or_ & twice, ("and", "but")
    alive = near(tagged.is_word("dead"), -1) & near(tagged.is_word("alive"), 1)
    yield "expression", or_ & alive, ("and", "but")

    # "But" does not join nouns, but fits before a clause ("I like cats but dogs bite").
    ends = tagged.has_tag(".", ",", "IN", "TO", "CC", ":", "VBG", "VBN", "WDT", "WP")
    and_, or_ = (word & ~_behind(tagged, tagged.is_word("not", "n't"), FAR) for word in (and_, or_))
    starts = ~_behind(tagged, finite, FAR)
    ends |= finite & starts
    head = tagged.has_tag("DT", "PRP$", "JJ", "NN", "NNS", "NNP", "CD", "VBN")
    right = near(noun, 1) & near(ends, 2)
    right |= near(head, 1) & near(noun, 2) & near(ends, 3)
    right |= near(head, 1) & near(head, 2) & near(noun, 3) & near(ends, 4)
    yield "nouns", (and_ | or_) & near(noun, -1) & right, ("but",)
    comma = tagged.is_word(",")
    listed = near(comma, -1) & near(noun, -2) & _behind(tagged, comma, REACH, skip=2)
    yield "nouns", (and_ | or_) & listed & right, ("but",)
    number = tagged.has_tag("CD")
    yield "nouns", (and_ | or_) & near(number, -1) & near(number, 1), ("but",)
    person = tagged.has_tag("PRP")
    yield (
        "nouns",
        (and_ | or_) & near(person | noun, -1) & near(person, 1) & near(ends, 2),
        ("but",),
    )
    for tag in ("VB", "VBG", "RP", "IN"):
        alike = tagged.has_tag(tag)
        yield "alike", or_ & near(alike, -1) & near(alike, 1), ("but",)
    manner = tagged.has_tag("RB") & tagged.ends_with("ly")
    yield "alike", or_ & near(manner, -1) & near(manner, 1), ("but",)

    # A question that offers alternatives.
    asked = tagged.in_text(tagged.is_word("?"))[tagged.text]
    inverted = near(tagged.is_one_of(word_list("auxiliaries", PACKAGE)), 1)
    yield "pair", or_ & asked & near(comma, -1) & (inverted | right), ("but",)
    yield "pair", or_ & asked & inverted, ("but",)

    # Two facts are not alternatives.
    hedges = tagged.is_word("?", "if", "whether", "either", "unless", "or", "may", "might", "could")
    facts = ~tagged.in_text(hedges)[tagged.text] & _behind(tagged, finite, FAR)
    yield "contrast", but & clause & facts, ("or",)
    negated = near(tagged.is_word("not"), 1) & near(
        noun | tagged.has_tag("DT", "IN", "JJ", "VBG", "PRP$"), 2
    )
    yield "contrast", but & negated & facts, ("or",)


def _before_clause(tagged: TaggedTexts) -> Bools:
    """Mark the tokens that are followed by a clause with its subject."""
    near, noun, finite = tagged.near, tagged.has_tag(*_NOUNS), tagged.has_tag(*_FINITE)
    fact = finite | tagged.has_tag("RB") & near(finite, 1)
    subject = tagged.has_tag("PRP", "NNP", "NNPS", "EX", "DT", "WP")
    found = near(subject, 1) & near(fact, 2)
    found |= near(tagged.has_tag("DT", "PRP$", "JJ", "NNP"), 1) & near(noun, 2) & near(fact, 3)
    found |= near(noun, 1) & near(fact, 2)
    for place in (2, 3):
        opening = near(tagged.has_tag("WRB", "IN"), 1) & near(tagged.has_tag("PRP"), place)
        found |= opening & near(fact, place + 1)
    return found


def _behind(tagged: TaggedTexts, marked: Bools, reach: int = REACH, skip: int = 0) -> Bools:
    """Mark the tokens with a marked token before them, at most ``reach`` words back.

    Args:
        tagged: the texts.
        marked: (tokens,) the tokens to look for.
        reach: maximum number of words; beyond REACH, commas and conjunctions do not end the search.
        skip: words right before a token that do not count.
    """
    found = np.zeros_like(marked)
    open_ = np.ones_like(marked)
    stop = tagged.is_word(";", ":") if reach > REACH or skip else tagged.has_tag(",", ":", "CC")
    for distance in range(1 + skip, reach + 1):
        found |= open_ & tagged.near(marked, -distance)
        open_ &= ~tagged.near(stop, -distance)
    return found
