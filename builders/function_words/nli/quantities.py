"""Words of quantity: quantifiers, fractions and number words."""

from __future__ import annotations

from collections.abc import Iterator

from builders.english.articles import number_word
from builders.function_words.nli.clauses import Sentence, fixed_words
from builders.function_words.nli.edits import Edit
from builders.function_words.nli.lexicon import Lexicon
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
_RANGE = frozenset(
    (
        "to",
        "or",
        "-",
        "–",
        "and",
        "/",
        "of",
        "by",
        ":",
        ".",
        ",",
        "one",
        "age",
        "number",
        "chapter",
        "page",
    )
)

_NEVER_BEFORE = frozenset(
    ("and", "or", "a", "the", "as", "so", "how", "too", "very", "no", "not", "quite", "only")
)
"""Words after which a quantifier is not changed: "any and all", "so many"."""


def quantity_places(sentence: Sentence, lexicon: Lexicon) -> Iterator[Place]:
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
    if before in (
        "and",
        "or",
        "a",
        "the",
        "as",
        "so",
        "how",
        "too",
        "very",
        "no",
        "not",
        "quite",
        "only",
    ):
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
            (other, [Edit(at, definite, f"{other} of")])
            for other in _OTHERS[word]
            if other != "two" or begins
        ]
        edits = [
            (other, [Edit(at, definite, other if other == "all" else f"{other} of")])
            for other, _ in edits
        ]
        yield Place(at, at + 1, word, edits, word == "all", denial)
        return
    if of or _noun_phrase(tags, at + 1) is None:
        return
    others = [other for other in _OTHERS[word] if begins or other not in ("all", "most")]
    others = [other for other in others if other != "half"]
    edits = [(other, [Edit(at, at + 1, other)]) for other in others]
    yield Place(at, at + 1, word, edits, word == "many", denial)


def _number(sentence: Sentence, at: int) -> Iterator[Place]:
    """Return a number word or numeral directly before the plural noun that it counts."""
    lower, tags = sentence.lower, list(sentence.tags)
    word = lower[at]
    before = lower[at - 1] if at else ""
    if before in _RANGE or before in fixed_words("months"):
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
    if before in (
        "and",
        "or",
        "a",
        "one",
        "first",
        "second",
        "the",
        "and",
        "other",
        "-",
        "latter",
        "last",
    ):
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
