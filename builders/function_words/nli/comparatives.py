"""Comparatives: *more* and *less*, *larger* and *smaller*."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from builders.english.word_lists import word_groups
from builders.function_words.nli.clauses import NOUNS, PACKAGE, Sentence, fixed_words
from builders.function_words.nli.edits import Edit
from builders.function_words.nli.lexicon import Lexicon
from builders.function_words.nli.negation import verb_lemma
from builders.function_words.nli.pairs import Place

_NEVER_BEFORE = frozenset(
    ("no", "any", "once", "the", "what", "or", "and", "ever", "little", "'d", "not", "n't")
)
_AMOUNT = {"more": "less", "less": "more"}
_COUNT = {"more": "fewer", "fewer": "more", "less": "more"}
_BEFORE_NOUNS = {"greater": "lesser"}
_COMPARED = ("$", "DT", "PRP", "NNP", "NNS", "PRP$")
_NEVER_BEHIND = frozenset(("and", "or", "more", "less", "like", "so", "importantly", "often"))


_ALSO_ABSOLUTE = frozenset(("later", "earlier", "lower", "longer", "cleaner", "lighter"))
"""Comparatives that often compare nothing: they count only if *than* follows."""

_ADVERBS = frozenset(
    ("better", "worse", "faster", "slower", "harder", "longer", "earlier", "later")
)


@cache
def comparatives() -> dict[str, str]:
    """Return the listed comparatives and their opposites."""
    return dict(word_groups("comparatives", PACKAGE))  # type: ignore[arg-type]  # two words a line


def comparative_places(sentence: Sentence, lexicon: Lexicon) -> Iterator[Place]:
    """Yield the comparatives of a sentence that have an opposite."""
    lower, tags = sentence.lower, sentence.tags
    for at in range(1, len(sentence) - 1):
        word, before = lower[at], lower[at - 1]
        if before in _NEVER_BEFORE or lower[at + 1] in _NEVER_BEHIND:
            continue
        if (opposite := comparatives().get(word)) and tags[at] == "JJR":
            if tags[at + 1] in ("NNP", "NNPS"):
                continue  # a name: "Greater London"
            if tags[at + 1] in NOUNS | {"JJ"}:
                opposite = _BEFORE_NOUNS.get(word, opposite)
            if word in _ALSO_ABSOLUTE and "than" not in lower[at + 1 : at + 4]:
                continue
            if _is_adverb(sentence, at) and word not in _ADVERBS:
                continue
            yield Place(
                at, at + 1, word, [(opposite, [Edit(at, at + 1, opposite)])], deny_subject=True
            )
        elif word in _COUNT and tags[at] in ("JJR", "RBR") and tags[at - 1] != "CD":
            new = _other_amount(sentence, at)
            if new:
                yield Place(at, at + 1, word, [(new, [Edit(at, at + 1, new)])], deny_subject=True)


def _is_adverb(sentence: Sentence, at: int) -> bool:
    """Return whether a comparative says how something is done: it follows a non-linking verb."""
    tags = sentence.tags
    linked = verb_lemma(sentence.lower[at - 1]) in fixed_words("linking_verbs")
    return tags[at - 1].startswith("VB") and not linked and tags[at + 1] not in NOUNS | {"JJ"}


def _other_number(sentence: Sentence, at: int) -> str:
    """Return the opposite of *more* before *than* and a number: *fewer* for countable nouns."""
    word, number = sentence.lower[at], at + 2
    if sentence.lower[number] in ("one", "1"):
        return ""
    counted = sentence.tags[number + 1 : number + 2] == ["NNS"]
    unit = sentence.lower[number + 1 : number + 2]
    if counted and fixed_words("units").isdisjoint(unit):
        return _COUNT[word]
    return _AMOUNT.get(word, "")


def _other_amount(sentence: Sentence, at: int) -> str:
    """Return the opposite of *more*, *less* or *fewer* here; empty if uncertain."""
    lower, tags = sentence.lower, sentence.tags
    behind = tags[at + 1]
    word = lower[at]
    if lower[at + 1] == "than":
        if at + 2 >= len(sentence):
            return ""
        if tags[at + 2] == "CD":
            return _other_number(sentence, at)
        sure = tags[at + 2] in _COMPARED or lower[at + 2] == "half"
        return _AMOUNT.get(word, "") if sure else ""
    if behind in ("JJ", "RB", "VBN", "VBG") and tags[at] == "RBR":
        return _AMOUNT.get(word, "")
    if behind == "NNS" or (behind in ("JJ", "NN") and tags[at + 2 : at + 3] == ["NNS"]):
        return _COUNT[word]
    if behind == "NN":
        return _AMOUNT.get(word, "")
    return ""
