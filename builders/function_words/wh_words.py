"""fw_wh_words: a question word where only a different one fits.

A sentence in which the new word fits as well is useless: "I know when he came" for "I know how he
came". Words are therefore swapped only in frames, each with words that do not fit it:

- *subject*: the word is the subject of the next verb ("people who live here"): no adverb fits.
- *clause*: a whole clause follows ("the day when it rained"): neither "who" nor "what" fits.
- *degree*: an adjective or adverb of degree follows ("how old it is"): only "how" fits.
- *noun*: a noun of kind follows ("what kind of"), or an article ("what a day").
- *question*: an auxiliary and its subject follow, and nothing is missing ("Why do you like it?").
- *object*: the next verb lacks its object ("what they need"): no adverb fits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from builders.english.word_lists import word_list
from builders.function_words.candidates import NO_FRAME, Swap
from builders.function_words.tokens import PACKAGE, TaggedTexts
from kbprobe.arrays import Bools

WORDS = ("who", "what", "where", "when", "why", "how")

_FINITE = ("VBD", "VBZ", "VBP", "MD")
_SUBJECT = ("PRP", "DT", "PRP$", "NN", "NNS", "NNP", "NNPS", "EX", "CD", "JJ")
_NOMINAL = ("NN", "NNS", "NNP", "NNPS")


def wh_swaps(tagged: TaggedTexts, allowed: Bools) -> Iterator[Swap]:
    """Yield every swap of one wh-word for another that its frame does not allow.

    A word in none of the frames is swapped for one of the others, and flagged.

    Args:
        tagged: the sentences.
        allowed: (texts,) the sentences that may be changed.
    """
    wh = tagged.is_one_of(WORDS) & tagged.has_tag("WP", "WRB") & allowed[tagged.text]
    framed = np.zeros_like(wh)
    for frame, at, others in _frames(tagged, wh):
        framed |= at
        for token in np.flatnonzero(at).tolist():
            word = tagged.words[tagged.code[token]]
            for other in others:
                if other != word:
                    yield Swap((token,), (other,), frame)
    for token in np.flatnonzero(wh & ~framed).tolist():
        rest = [word for word in WORDS if word != tagged.words[tagged.code[token]]]
        yield Swap((token,), (rest[token % len(rest)],), "any", -1, (NO_FRAME,))


def _frames(tagged: TaggedTexts, wh: Bools) -> Iterator[tuple[str, Bools, tuple[str, ...]]]:
    """Yield (frame, tokens, words that do not fit there)."""
    near = tagged.near
    word = {name: wh & tagged.is_word(name) for name in WORDS}
    auxiliary = tagged.is_one_of(word_list("auxiliaries", PACKAGE))
    finite = tagged.has_tag(*_FINITE)
    lexical = finite & ~auxiliary
    adverb = tagged.has_tag("RB") & ~tagged.is_word("not", "n't")
    subject = tagged.has_tag(*_SUBJECT)
    mark = tagged.is_word("?")
    asked = tagged.in_text(mark)[tagged.text]
    nominal = tagged.has_tag(*_NOMINAL) | tagged.is_word(
        "those", "someone", "anyone", "everyone", "one", "person", "he", "she", "they", "all"
    )
    comma = tagged.is_word(",")
    follows_noun = near(nominal, -1) | (near(comma, -1) & near(nominal, -2))
    # Before a possible participle, "when" and "where" may be elliptical: "where needed".
    participle = tagged.has_tag("VBD") & tagged.ends_with("ed", "en", "t")
    verb_next = near(finite, 1) | (near(adverb, 1) & near(finite, 2))
    bare = near(participle, 1) | (near(adverb, 1) & near(participle, 2))
    inverted = near(auxiliary, 1) & near(subject, 2)
    relative = (
        word["who"]
        & follows_noun
        & verb_next
        & ~(near(auxiliary, 1) & near(tagged.has_tag("PRP"), 2))
    )
    yield "subject", relative & ~bare, ("what", "where", "when", "why", "how")
    yield "subject", relative & bare, ("what", "why", "how")

    inside = word["what"] & ~tagged.first & ~asked & verb_next & ~inverted
    do = tagged.is_word("do", "does", "did")
    be = tagged.is_word("is", "are", "was", "were", "'s", "’s", "'re")
    inside &= ~near(do, 1)
    yield "subject", inside & ~near(be, 1) & ~bare, ("where", "when", "why", "how")
    yield "subject", inside & (near(be, 1) | bare), ("why", "how")
    asks = (word["who"] | word["what"]) & tagged.first & asked & near(lexical, 1)
    yield "subject", asks, ("where", "when", "why", "how")

    yield (
        "noun",
        word["what"] & tagged.first & near(tagged.is_word("a", "an"), 1),
        ("who", "where", "when", "why", "how"),
    )
    kind = tagged.is_one_of(word_list("nouns_after_what", PACKAGE)) & tagged.has_tag("NN", "NNS")
    yield "noun", word["what"] & near(kind, 1), ("who", "where", "when", "why", "how")

    # Before these, "how" can only ask for a degree.
    degree = (
        tagged.has_tag("JJ") | tagged.is_one_of(word_list("degree_adverbs", PACKAGE))
    ) & ~tagged.is_word("many", "several", "other", "such", "else", "same")
    ends = tagged.has_tag("PRP", "DT", "PRP$", "EX", "MD", "VBD", "VBZ", "VBP", ",", ".")
    old = word["how"] & near(degree, 1) & near(ends, 2)
    yield "degree", old, ("who", "where", "when", "why")
    yield "degree", word["how"] & near(tagged.is_word("many"), 1), ("who",)

    clause = near(tagged.has_tag("PRP", "DT", "PRP$", "NNP", "EX", "NN", "NNS", "NNPS"), 1)
    opens = tagged.first & ~asked & clause & tagged.in_text(comma)[tagged.text]
    yield "clause", word["when"] & opens, ("who", "what", "why", "how")
    behind = near(tagged.has_tag(*_NOMINAL, "RB", "JJ", "CD", "RP", ","), -1)
    behind &= ~near(
        tagged.is_word("even", "only", "just", "exactly", "especially", "not", "about"), -1
    )
    yield "clause", word["when"] & behind & clause & ~asked, ("who", "what", "why", "how")
    yield (
        "clause",
        word["where"] & near(tagged.has_tag("NN", "NNS", "NNP"), -1) & clause & ~asked,
        ("who", "what", "why", "how"),
    )
    reason = near(tagged.is_word("reason", "reasons"), -1)
    yield "clause", word["why"] & reason & clause, ("who", "what", "where", "when")

    adverbial = word["when"] | word["where"] | word["why"] | word["how"]
    clausal = tagged.is_one_of(word_list("clause_verbs", PACKAGE))
    verb = tagged.has_tag("VB", "VBP", "VBD", "VBZ", "VBG") & ~clausal & ~auxiliary
    object_ = tagged.has_tag("DT", "PRP", "PRP$", "NNP", "NNS", "NN", "CD", "JJ")
    intransitive = tagged.is_one_of(word_list("intransitive_verbs", PACKAGE)) & verb
    # If the verb has its object and no preposition is stranded, "who" and "what" do not fit.
    stranded = tagged.has_tag("IN", "TO", "RP") & near(tagged.has_tag(".", ",", "CC"), 1)
    closed = ~tagged.in_text(stranded)[tagged.text]
    full = (verb & near(object_, 1)) | (intransitive & near(tagged.has_tag(".", ",", "CC"), 1))
    pronoun = tagged.has_tag("PRP", "NNP")
    between = auxiliary | adverb | tagged.is_word("n't", "not")
    predicate = near(full, 2) | (near(between, 2) & near(full, 3))
    predicate |= near(between, 2) & near(between, 3) & near(full, 4)
    yield "clause", adverbial & near(pronoun, 1) & predicate & closed, ("who", "what")
    asks = adverbial & near(auxiliary, 1) & asked & closed
    negated = near(tagged.is_word("n't", "not"), 2)
    asks &= (near(pronoun, 2) & near(full, 3)) | (negated & near(pronoun, 3) & near(full, 4))
    yield "question", asks, ("who", "what")

    transitive = tagged.is_one_of(word_list("transitive_verbs", PACKAGE)) & tagged.has_tag("VB*")
    gap = transitive & near(tagged.has_tag(".", ",", "CC", "VBZ", "VBD"), 1)
    lacks = near(gap, 2) | (near(between, 2) & near(gap, 3))
    embedded = word["what"] & ~asked & near(tagged.has_tag("PRP", "NNP", "NNS"), 1) & lacks
    yield "object", embedded, ("where", "when", "why", "how")
    person = word["who"] & follows_noun & near(tagged.has_tag("PRP"), 1)
    yield "object", person & ~asked, ("what", "why", "how")
