"""fw_definiteness: all articles of a sentence exchanged, "the" for "a" or "an" and vice versa.

Many sentences remain acceptable ("A man saw a dog"). Only sentences are used in which at least one
article is the only one that fits:

- *plural*: "the" before a plural ("a dogs");
- *mass*: "the" before a mass noun ("an information");
- *unique*: "the" before a word that singles out ("a same day", "a largest city");
- *expression*: "a" in a fixed expression ("as the result", "the lot of people", "such the day");
- *rate*: "a" in the sense of "per" ("twice the week").
- *existence*: "a" after "there is" ("there is the hope").
- *measure*: "a" in a measure ("the week later", "the little late").
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from builders.english.articles import with_article
from builders.english.word_lists import word_list
from builders.function_words.candidates import NO_FRAME, Swap
from builders.function_words.tokens import PACKAGE, TaggedTexts
from kbprobe.arrays import Bools

LEAST = 2
"""Minimum number of articles of one kind in a sentence."""

FARTHEST = 6
"""Maximum number of words from "there" to its article."""

LONGEST = 4
"""Maximum number of words from an article to its noun."""


def definiteness_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield for each sentence the exchange of all of its articles.

    It is flagged if none of them is the only one that fits.

    Args:
        tagged: the sentences.
        allowed: (texts,) the sentences that may be changed.
    """
    article = tagged.has_tag("DT")
    the, a = tagged.is_word("the") & article, tagged.is_word("a", "an") & article
    # Letters and parts of names are not articles and would not be exchanged with them.
    stray = tagged.is_word("the", "a", "an") & ~article
    enough = (tagged.count(the) >= LEAST) | (tagged.count(a) >= LEAST)
    fits = allowed & enough & ~tagged.in_text(stray)
    frames = np.zeros(the.size, dtype=np.int64)
    names = []
    for number, (name, wrong) in enumerate(_frames(tagged, the, a), 1):
        names.append(name)
        frames[wrong & (frames == 0)] = number
    both = (the | a) & fits[tagged.text]
    tokens = np.flatnonzero(both)
    behind = tagged.words_behind(tokens)
    lines: dict[int, list[tuple[int, str]]] = {}
    for token, row, word in zip(tokens.tolist(), tagged.text[tokens].tolist(), behind, strict=True):
        other = "the" if a[token] else with_article(word or "one").partition(" ")[0]
        lines.setdefault(row, []).append((token, other))
    for places in lines.values():
        first = next((at for at, (token, _) in enumerate(places) if frames[token]), -1)
        yield Swap(
            tuple(token for token, _ in places),
            tuple(word for _, word in places),
            names[frames[places[first][0]] - 1] if first >= 0 else "any",
            first,
            () if first >= 0 else (NO_FRAME,),
        )


def _frames(tagged: TaggedTexts, the: Bools, a: Bools) -> Iterator[tuple[str, Bools]]:
    """Yield (frame, the articles that cannot be exchanged in it)."""
    near = tagged.near
    noun = tagged.has_tag("NN", "NNS", "NNP", "NNPS")
    modifier = tagged.has_tag("JJ", "NN", "NNP", "VBN", "VBG", "RB")
    modifier &= ~tagged.is_one_of(word_list("quantities", PACKAGE))
    compound = (
        noun | tagged.has_tag("POS", "HYPH", "JJ", "VBG", "VBN") | tagged.is_word("-", "'s", "’s")
    )
    # Taggers mistake "axis" and "focus" for plurals.
    odd = tagged.ends_with("ss", "us", "is")
    plural = (
        tagged.has_tag("NNS", "NNPS") & ~odd & ~tagged.is_one_of(word_list("odd_plurals", PACKAGE))
    )
    mass = tagged.has_tag("NN") & tagged.is_one_of(word_list("mass_nouns", PACKAGE))
    number = tagged.has_tag("CD") & ~tagged.is_one_of(word_list("quantities", PACKAGE))
    for frame, head in (("plural", plural), ("mass", mass)):
        ends = head & ~near(compound, 1)
        found = near(ends, 1)
        between = np.ones_like(the)
        for length in range(1, LONGEST):
            between = between & near(modifier, length)
            found |= between & near(ends, length + 1)
        if frame == "plural":
            found |= near(number, 1) & near(ends, 2)
        yield frame, the & found
    unique = tagged.is_one_of(word_list("unique_adjectives", PACKAGE))
    superlative = tagged.has_tag("JJS") & ~tagged.is_word("best", "most", "least", "last")
    ends = noun | tagged.has_tag("IN", ".", ",", "TO", "CC")
    yield "unique", the & (near(unique, 1) | (near(superlative, 1) & near(ends, 2)))
    best = near(tagged.is_word("best"), 1) & near(noun, 2)
    best &= ~near(tagged.is_word("friend", "seller", "practice", "man", "interest"), 2)
    best |= near(tagged.is_word("very"), 1) & near(noun, 2)
    yield "unique", the & best
    attribute = tagged.is_one_of(word_list("attributes", PACKAGE))
    definite = tagged.is_word("the", "this", "that", "these", "those") | tagged.has_tag(
        "PRP$", "NNP"
    )
    yield "unique", the & near(attribute, 1) & near(tagged.is_word("of"), 2) & near(definite, 3)
    yield "expression", _in_expressions(tagged, the, "the", ~noun)
    yield "expression", _in_expressions(tagged, a, "a", np.ones_like(a))
    yield "name", the & _before_name(tagged)
    unit = tagged.is_one_of(word_list("measures", PACKAGE))
    counted = tagged.is_one_of(word_list("counted_words", PACKAGE)) | tagged.has_tag("CD")
    counted |= tagged.has_tag("NNS") & near(tagged.has_tag(".", ",", "IN", "CC", ":"), 3)
    yield "rate", a & near(unit, 1) & near(counted, -1)
    measure = tagged.is_word(
        "ago", "later", "earlier", "away", "apart", "long", "high", "deep", "old"
    )
    measured = near(unit, 1) & near(measure, 2)
    measured |= near(tagged.has_tag("JJ", "NN"), 1) & near(unit, 2) & near(measure, 3)
    yield "measure", a & measured
    little = near(tagged.is_word("little", "bit", "lot", "few"), 1)
    yield "measure", a & little & near(tagged.has_tag("JJR", "RBR", "RB", "JJ", "IN", "VBN"), 2)
    compared = near(tagged.has_tag("JJR"), 1) | near(tagged.is_word("more", "less"), 1)
    than = tagged.is_word("than")
    yield "expression", a & compared & (near(than, 3) | near(than, 4))
    extent = near(tagged.is_word("to"), -1) & near(tagged.is_word("extent", "degree"), 2)
    basis = near(tagged.is_word("on"), -1) & near(tagged.is_word("basis"), 2)
    yield "expression", a & near(tagged.has_tag("JJ", "JJR"), 1) & (extent | basis)
    degree = near(tagged.is_word("so", "too", "as", "how"), -2) & near(tagged.has_tag("JJ"), -1)
    yield "expression", a & degree
    single = near(tagged.is_word("not", "never"), -1) & near(tagged.is_word("single"), 1)
    yield "expression", a & single
    own = tagged.is_word("own") & near(tagged.has_tag("PRP$"), -1) & near(tagged.is_word("of"), -2)
    mine = tagged.is_word("mine", "yours", "hers", "ours", "theirs") & near(
        tagged.is_word("of"), -1
    )
    possessed = near(own, 4) | near(mine, 3) | near(own, 5) | near(mine, 4)
    yield "expression", a & possessed
    be = tagged.is_word("is", "are", "was", "were", "'s", "’s", "be", "been")
    for words in range(2, FARTHEST):
        yield "existence", a & near(be, -1) & near(tagged.has_tag("EX"), -words)


def _in_expressions(tagged: TaggedTexts, article: Bools, written: str, ends: Bools) -> Bools:
    """Mark the articles in fixed expressions that contain this form.

    ``ends`` marks the tokens that may follow an expression.
    """
    found = np.zeros_like(article)
    for expression in sorted(word_list(f"expressions_with_{written}", PACKAGE)):
        words = expression.split("-")
        at = words.index(written)
        matches = article & tagged.near(ends, len(words) - at)
        for place, word in enumerate(words):
            if place != at:
                matches &= tagged.near(tagged.is_word(word), place - at)
        found |= matches
    return found


def _before_name(tagged: TaggedTexts) -> Bools:
    """Mark the tokens before a name of several words, or of capitals, that modifies no noun."""
    name = tagged.has_tag("NNP")
    upper = tagged.texts.forms.where(
        [len(form) > 1 and form.isupper() for form in tagged.texts.forms.names]
    )
    more = tagged.has_tag("NN", "NNS", "NNP", "NNPS", "POS", "JJ", "HYPH", "VBG", "VBN", "CD")
    more |= tagged.is_word("-", "'s", "’s", "of")
    found = tagged.near(name & upper, 1) & ~tagged.near(more, 2)
    inside = tagged.near(name, 1)
    for words in range(2, LONGEST):
        inside = inside & tagged.near(name, words)
        found |= inside & ~tagged.near(more, words + 1)
    return found
