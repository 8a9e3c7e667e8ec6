"""Words of quantity: quantifiers, fractions, number words and comparatives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from builders.english.inflection import number_word
from builders.english.word_lists import word_groups, word_list
from builders.function_words.nli.clauses import NOUNS, PACKAGE, Sentence, fixed_words
from builders.function_words.nli.edits import Edit, verb_lemma
from builders.function_words.nli.lexicon import WordKinds
from builders.function_words.nli.pairs import Place

_NUMBERS = {number_word(number): number for number in (*range(2, 21), *range(30, 100, 10))}
_OTHERS = {
    "every": ("some",),
    "all": ("some", "most", "half"),
    "some": ("all", "most"),
    "many": ("few", "most"),
    "most": ("some", "few", "all"),
    "few": ("many", "most"),
    "several": ("all", "two"),
    "both": ("some",),
}


def quantity_places(sentence: Sentence, lexicon: WordKinds) -> Iterator[Place]:
    """Yield the quantifiers, number words and fractions that quantify something."""
    lower, tags = sentence.lower, sentence.tags
    for at in range(len(sentence) - 2):
        if _is_fixed(lower, at):
            continue
        word = lower[at]
        if word in ("all", "some", "most", "many", "few", "several", "every"):
            yield from _quantifier(sentence, at)
        elif word in _NUMBERS or (tags[at] == "CD" and word.isdigit()):
            yield from _number(sentence, at)
        elif word == "half":
            yield from _half(sentence, at)
        elif word in ("third", "quarter") and at and lower[at - 1] in ("a", "one"):
            yield from _fraction(sentence, at)


def _is_fixed(lower: list[str], at: int) -> bool:
    fixed = fixed_words("fixed_quantities")
    around = (lower[max(at - 1, 0) : at + 1], lower[at : at + 2], lower[at : at + 3])
    return any(" ".join(words) in fixed for words in around)


def _noun_phrase(tags: list[str], at: int) -> int | None:
    """Return the head of the plural noun phrase that begins at a token, or None."""
    while at < len(tags) and tags[at] in ("JJ", "JJR", "JJS", "NN", "VBN", "VBG", "NNP", "CD"):
        at += 1
    return at if at < len(tags) and tags[at] == "NNS" else None


def _quantifier(sentence: Sentence, at: int) -> Iterator[Place]:
    lower, tags = sentence.lower, list(sentence.tags)
    word, behind = lower[at], lower[at + 1]
    before = lower[at - 1] if at else ""
    if before in word_list("before_quantifiers", PACKAGE):
        return
    if tags[at] not in ("DT", "PDT", "JJ", "JJS", "NN", "RBS", "NNS"):
        return
    of = behind == "of"
    definite = at + (2 if of else 1)
    if definite >= len(sentence):
        return
    is_definite = tags[definite] in ("PRP$",) or lower[definite] in ("the", "these", "those")
    if word == "most" and tags[at + 1] not in ("NNS", "IN"):
        return  # a superlative
    if at and tags[at - 1] == "PRP$":
        return
    if word in (before, lower[at + 2]) or "neither" in lower:
        return
    begins = at == 0 or tags[at - 1] == ","
    denial = [Edit(at, at + 1, f"not {word}")] if word in ("all", "every", "many") else []
    if word == "every":
        if tags[definite] == "NN" and at == 0:
            yield Place(at, at + 1, word, [("some", [Edit(at, at + 1, "some")])], False, denial)
        return
    if is_definite:
        if _noun_phrase(tags, definite + 1) is None or (word != "all" and not of):
            return
        edits = [
            (other, [Edit(at, definite, other if other == "all" else f"{other} of")])
            for other in _OTHERS[word]
            if other != "two" or begins
        ]
        yield Place(at, at + 1, word, edits, word == "all", denial)
        return
    if of or _noun_phrase(tags, at + 1) is None:
        return
    odd = ("half",) if begins else ("half", "all", "most")
    others = [other for other in _OTHERS[word] if other not in odd]
    edits = [(other, [Edit(at, at + 1, other)]) for other in others]
    yield Place(at, at + 1, word, edits, word == "many", denial)


def _number(sentence: Sentence, at: int) -> Iterator[Place]:
    """Return a number word or numeral directly before the plural noun that it counts."""
    lower, tags = sentence.lower, list(sentence.tags)
    word = lower[at]
    before = lower[at - 1] if at else ""
    if before in word_list("before_numbers", PACKAGE) | fixed_words("months"):
        return
    if at and tags[at - 1] in ("CD", "$", "NNP", "NNPS", "#"):
        return
    if at >= 2 and lower[at - 2] in ("between", "from") and before != "the":
        return
    head = _noun_phrase(tags, at + 1)
    if head is None or _is_numbered(sentence, at, head):
        return
    if head + 1 < len(tags) and lower[head + 1] in ("to", "or", "-", "old") and head - at > 1:
        return
    if word.isdigit():
        number = int(word)
        if not 2 <= number <= 999 or sentence.words[at].startswith("0"):
            return
        others = [str(other) for other in _near(number)]
    else:
        others = [number_word(other) for other in _near(_NUMBERS[word])]
    yield Place(at, at + 1, word, [(other, [Edit(at, at + 1, other)]) for other in others])


def _is_numbered(sentence: Sentence, at: int, head: int) -> bool:
    """Return whether a number says which, not how many; or measures (percent, dollar bills)."""
    counted = sentence.lower[at + 1 : head + 1]
    return "CD" in sentence.tags[at + 1 : head] or not fixed_words("numbered").isdisjoint(counted)


def _near(number: int) -> tuple[int, ...]:
    """Return a smaller and a larger number of the same kind (tens stay tens)."""
    step = 1 if number < 20 else 10 if number < 100 else 100
    fewer, more = number - step, number + 2 * step if number >= 10 else number + 2
    return tuple(other for other in (fewer, more) if other >= 2)


def _half(sentence: Sentence, at: int) -> Iterator[Place]:
    lower = sentence.lower
    before = lower[at - 1] if at else ""
    if before in word_list("before_half", PACKAGE):
        return
    of = lower[at + 1] == "of"
    definite = at + (2 if of else 1)
    if definite >= len(sentence) or (
        lower[definite] not in ("the", "these", "those") and sentence.tags[definite] != "PRP$"
    ):
        return
    yield Place(
        at,
        at + 1,
        "half",
        [
            ("one-third", [Edit(at, definite, "one-third of")]),
            ("a quarter", [Edit(at, definite, "a quarter of")]),
            ("all", [Edit(at, definite, "all of")]),
        ],
    )


def _fraction(sentence: Sentence, at: int) -> Iterator[Place]:
    if sentence.lower[at + 1] != "of":
        return
    word = sentence.lower[at]
    other = "a quarter" if word == "third" else "one-third"
    old = f"{sentence.lower[at - 1]} {word}"
    yield Place(
        at - 1,
        at + 1,
        old,
        [(other, [Edit(at - 1, at + 1, other)]), ("half", [Edit(at - 1, at + 1, "half")])],
    )


_NEVER_BEFORE_MORE = frozenset(
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


def comparative_places(sentence: Sentence, lexicon: WordKinds) -> Iterator[Place]:
    """Yield the comparatives of a sentence that have an opposite."""
    lower, tags = sentence.lower, sentence.tags
    for at in range(1, len(sentence) - 1):
        word, before = lower[at], lower[at - 1]
        if before in _NEVER_BEFORE_MORE or lower[at + 1] in _NEVER_BEHIND:
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
