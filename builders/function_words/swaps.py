"""Function words where only a different one fits: question words, conjunctions and articles.

A sentence in which the new word fits as well is useless: "I know when he came" for "I know how he
came". Words are therefore exchanged only in *frames*, each with words that do not fit it:

fw_wh_words:

- *subject*: the word is the subject of the next verb ("people who live here"): no adverb fits.
- *clause*: a whole clause follows ("the day when it rained"): neither "who" nor "what" fits.
- *degree*: an adjective or adverb of degree follows ("how old it is"): only "how" fits.
- *noun*: a noun of kind follows ("what kind of"), or an article ("what a day").
- *question*: an auxiliary and its subject follow, and nothing is missing ("Why do you like it?").
- *object*: the next verb lacks its object ("what they need"): no adverb fits.

fw_coordination (most clauses can be joined by "and", "or" and "but" alike):

- *nouns*: nouns, names, pronouns or numbers are joined ("cats but dogs");
- *pair*: "both", "between", "either" or "whether" asks for its partner ("both cats or dogs");
- *alike*: verbs, adverbs or prepositions are joined ("to buy but sell").
- *exception*: "but" behind "nothing", "all" or "no choice" ("nothing or trouble");
- *contrast*: "but" behind "not only", or before a statement of fact ("He knocked or nobody came");
- *expression*: in a fixed expression ("more but more", "two hundred but ten", "a week but so").

fw_definiteness (all articles of a sentence are exchanged, of which one at least must be the only
one that fits):

- *plural*: "the" before a plural ("a dogs");
- *mass*: "the" before a mass noun ("an information");
- *unique*: "the" before a word that singles out ("a same day", "a largest city");
- *name*: "the" before a name of several words, or in capitals ("a United Nations");
- *expression*: "a" in a fixed expression ("as the result", "the lot of people", "such the day");
- *rate*: "a" in the sense of "per" ("twice the week").
- *existence*: "a" after "there is" ("there is the hope").
- *measure*: "a" in a measure ("the week later", "the little late").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from builders.english.inflection import with_article
from builders.english.word_lists import word_list
from builders.function_words.candidates import NO_FRAME, Swap
from builders.function_words.patterns import Patterns
from builders.function_words.tokens import PACKAGE, TaggedTexts
from kbprobe.arrays import Bools

WH_WORDS = ("who", "what", "where", "when", "why", "how")
CONJUNCTIONS = ("and", "or", "but")

LEAST = 2
"""Minimum number of articles of one kind in a sentence."""


def wh_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield every swap of one wh-word for another that its frame does not allow.

    A word in none of the frames is swapped for one of the others, and flagged.

    Args:
        tagged: the sentences.
        allowed: (texts,) the sentences that may be changed.
    """
    able = tagged.is_one_of(WH_WORDS) & tagged.has_tag("WP", "WRB") & allowed[tagged.text]
    patterns = Patterns(tagged, "wh_word", first=tagged.first)
    return _exchanges(patterns, WH_WORDS, able, once=False)


def coordination_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield every exchange of a conjunction for another that its frame does not allow.

    Conjunctions in none of the frames are exchanged for one of the others, and flagged. The
    arguments are those of `wh_swaps`.
    """
    able = tagged.is_one_of(CONJUNCTIONS) & allowed[tagged.text] & ~tagged.first
    able &= ~tagged.near(tagged.is_one_of((*CONJUNCTIONS, "/")), 1)
    same = np.zeros_like(able)
    if able.size > 2:
        same[1:-1] = tagged.code[2:] == tagged.code[:-2]
    return _exchanges(Patterns(tagged, "coordination", same=same), CONJUNCTIONS, able, once=True)


def _exchanges(patterns: Patterns, words: Sequence[str], able: Bools, once: bool) -> Iterator[Swap]:
    """Yield the exchanges of some words in their frames (``once``: in the first of them)."""
    framed = np.zeros_like(able)

    def others(token: int, some: Sequence[str]) -> list[str]:
        return [other for other in some if other != patterns.tagged.word(token)]

    for frame, matching, unfit in patterns.frames():
        found = able & matching
        for token in np.flatnonzero(found & ~framed if once else found).tolist():
            for other in others(token, unfit):
                yield Swap((token,), (other,), frame)
        framed |= found
    for token in np.flatnonzero(able & ~framed).tolist():
        rest = others(token, words)
        yield Swap((token,), (rest[token % len(rest)],), "any", -1, (NO_FRAME,))


def definiteness_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield for each sentence the exchange of all of its articles.

    It is flagged if none of them is the only one that fits. The arguments are those of `wh_swaps`.
    """
    article = tagged.has_tag("DT")
    the, a = tagged.is_word("the") & article, tagged.is_word("a", "an") & article
    # Letters and parts of names are not articles and would not be exchanged with them.
    stray = tagged.is_word("the", "a", "an") & ~article
    enough = (tagged.count(the) >= LEAST) | (tagged.count(a) >= LEAST)
    fits = allowed & enough & ~tagged.in_text(stray)
    forms = tagged.texts.forms
    upper = forms.where([len(form) > 1 and form.isupper() for form in forms.names])
    noun = tagged.has_tag("NN", "NNS", "NNP", "NNPS")
    fixed = _in_expressions(tagged, the, "the", ~noun)
    fixed |= _in_expressions(tagged, a, "a", np.ones_like(a))
    frame = np.full(the.size, "", dtype=object)
    patterns = Patterns(tagged, "definiteness", upper=upper, in_expression=fixed)
    for name, found, _ in patterns.frames():
        frame[found & (frame == "")] = name
    tokens = np.flatnonzero((the | a) & fits[tagged.text])
    behind = tagged.words_behind(tokens)
    lines: dict[int, list[tuple[int, str]]] = {}
    for token, row, word in zip(tokens.tolist(), tagged.text[tokens].tolist(), behind, strict=True):
        other = "the" if a[token] else with_article(word or "one").partition(" ")[0]
        lines.setdefault(row, []).append((token, other))
    for places in lines.values():
        of_line, words = zip(*places, strict=True)
        first = next((at for at, token in enumerate(of_line) if frame[token]), -1)
        name = frame[of_line[first]] if first >= 0 else "any"
        yield Swap(of_line, words, name, first, () if first >= 0 else (NO_FRAME,))


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
