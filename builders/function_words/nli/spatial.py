"""Spatial words: *left* and *right*, *above* and *below*, *in front of* and *behind*."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from builders.english.word_lists import word_groups
from builders.function_words.nli.clauses import PACKAGE, Sentence, fixed_words
from builders.function_words.nli.edits import Edit, noun_phrase
from builders.function_words.nli.lexicon import Lexicon
from builders.function_words.nli.negation import verb_lemma
from builders.function_words.nli.pairs import Place

_THINGS = frozenset(
    ("artifact", "object", "location", "plant", "body", "person", "animal", "group")
)
_NOT_UNDER = frozenset(("group", "person", "location"))
"""Kinds of things that "under" and "over" go with in other senses: a law, a conductor."""

_SIDES = frozenset(("top", "bottom", "front", "back"))
_DIRECTIONS = frozenset(("north", "south", "east", "west"))
_BEHIND_DIRECTIONS = frozenset(("of", "side", ".", "to", "on", "along"))
_ADVERBS = frozenset(("upstairs", "downstairs", "indoors", "outdoors", "forward"))

_VAGUE = frozenset(("move", "moves", "moved", "moving", "go", "goes", "went", "going", "gone"))
"""Verbs that describe progress as often as motion: "move forward"."""


@cache
def spatial_opposites() -> dict[str, str]:
    """Return the listed words and their opposites, with spaces between words."""
    pairs = word_groups("spatial_opposites", PACKAGE)
    return {one.replace("-", " "): other.replace("-", " ") for one, other in pairs}


def spatial_places(sentence: Sentence, lexicon: Lexicon) -> Iterator[Place]:
    """Yield the spatial words of a sentence that have an opposite."""
    at = 0
    while at < len(sentence) - 1:
        word, last = _longest(sentence.lower, at)
        if word and _is_spatial(sentence, lexicon, word, at, last):
            new = spatial_opposites()[word]
            yield Place(at, last, word, [(new, [Edit(at, last, new)])], deny_subject=True)
        at = last


def _longest(lower: list[str], at: int) -> tuple[str, int]:
    """Return the longest listed word at a token ("" if none), and the next token to look at."""
    for size in (3, 2, 1):
        word = " ".join(lower[at : at + size])
        if word in spatial_opposites():
            return word, at + size
    return "", at + 1


def _is_spatial(sentence: Sentence, lexicon: Lexicon, word: str, at: int, last: int) -> bool:
    lower, tags = sentence.lower, sentence.tags
    before, behind = (lower[at - 1] if at else ""), lower[last]
    if at and (sentence.words[at][0].isupper() or tags[at - 1] == "CC" or tags[last] == "CC"):
        return False
    if _is_fixed(lower, lexicon, at, last):
        return False
    if word in ("left", "right"):
        if tags[at] not in ("JJ", "NN"):
            return False
        if behind in fixed_words("things_with_sides"):
            return True
        return (
            before == "the"
            and tags[at] == "NN"
            and behind in (".", ",", "of")
            and (at >= 2 and lower[at - 2] in ("on", "to"))
        )
    if word in _SIDES:
        return tags[at] == "NN" and before == "the" and behind == "of"
    if word in _DIRECTIONS:
        return tags[at] in ("NN", "RB", "JJ") and behind in _BEHIND_DIRECTIONS
    if word.endswith("ern"):
        return tags[at] == "JJ" and behind in fixed_words("things_with_sides")
    if word in ("upper", "lower", "inner", "outer"):
        return tags[at] in ("JJ", "JJR") and behind in fixed_words("things_with_sides")
    if word in ("up", "down"):
        return tags[at] == "IN" and _object(sentence, lexicon, last) in ("artifact", "object")
    if word in _ADVERBS:
        if before == "the":
            return False
        moved = at > 0 and _moves(sentence, lexicon, at - 1) and before not in _VAGUE
        return tags[at] == "RB" and behind in (".", ",") and (word != "forward" or moved)
    # A preposition with a thing, a place or a person as its object.
    if tags[at] not in ("IN", "JJ", "RB", "TO", "NN") or before in ("up", "from", "all"):
        return False
    if tags[last] == "CD" or (word in ("inside", "outside") and tags[at] != "IN"):
        return False
    if at and tags[at - 1].startswith("VB") and lexicon.governs(verb_lemma(before), word):
        return False
    if word in ("into", "out of") and not (at and _moves(sentence, lexicon, at - 1)):
        return False
    kind = _object(sentence, lexicon, last)
    return kind in _THINGS and not (word in ("over", "under") and kind in _NOT_UNDER)


def _is_fixed(lower: list[str], lexicon: Lexicon, at: int, last: int) -> bool:
    """Return whether a word is in a fixed expression, or governed by the word before it."""
    around = [" ".join(lower[at : last + more]) for more in (1, 2)]
    around += [" ".join(lower[max(at - less, 0) : last + 1]) for less in (1, 2)]
    if not lexicon.fixed_phrases.isdisjoint(around):
        return True
    word, before = " ".join(lower[at:last]), lower[at - 1] if at else ""
    governed = fixed_words("governed_prepositions")
    return f"{before} {word}" in governed or f"{verb_lemma(before)} {word}" in governed


def _moves(sentence: Sentence, lexicon: Lexicon, at: int) -> bool:
    """Return whether a token is a verb of motion."""
    if not sentence.tags[at].startswith("VB"):
        return False
    return lexicon.verb_kind(verb_lemma(sentence.lower[at])) == "motion"


def _object(sentence: Sentence, lexicon: Lexicon, at: int) -> str:
    """Return the kind of the noun phrase at a token; "" if there is none, or it is not a thing."""
    found = noun_phrase(sentence, at)
    if found is None or found.word in fixed_words("not_in_space"):
        return ""
    return found.kind(lexicon)
