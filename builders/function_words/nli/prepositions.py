"""Prepositions and spatial words: *in* to *behind*, *left* to *right*, where it is certain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from builders.english.word_lists import data_table, word_groups
from builders.function_words.nli.clauses import PACKAGE, Sentence, fixed_words
from builders.function_words.nli.edits import Edit, Phrase, noun_phrase, verb_lemma
from builders.function_words.nli.lexicon import WordKinds, singular
from builders.function_words.nli.pairs import Place

_SPREAD = frozenset(("NNS", "NNPS", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", ","))
"""Tags of what may be all over a place: plural nouns, and verbs."""

_PREPOSITION = frozenset(("IN", "TO"))


class Frame(NamedTuple):
    """A context in which prepositions are changed; see ``data/prepositions.yaml``."""

    words: frozenset[str]
    by: tuple[str, ...]
    objects: frozenset[str]
    verbs: frozenset[str] = frozenset()
    nouns: frozenset[str] = frozenset()
    definite: bool = False
    plural: bool = False
    names: bool = False
    counted: bool = False
    attribute: bool = False
    duration: bool = False


@cache
def _file() -> Mapping[str, Sequence[Any]]:
    return cast("Mapping[str, Sequence[Any]]", data_table("prepositions", PACKAGE))


@cache
def prepositions() -> frozenset[str]:
    """Return the prepositions that occur in hypotheses."""
    return frozenset(map(str, _file()["all"]))


@cache
def frames() -> tuple[Frame, ...]:
    """Return the frames of the file."""
    sets = ("words", "objects", "verbs", "nouns")
    made = []
    for given in _file()["frames"]:
        values = given | {"by": tuple(given["by"])}
        made.append(Frame(**values | {name: frozenset(given.get(name, ())) for name in sets}))
    return tuple(made)


@cache
def changed_words() -> frozenset[str]:
    """Return the prepositions that are changed."""
    return frozenset(word for frame in frames() for word in frame.words)


def preposition_places(sentence: Sentence, lexicon: WordKinds) -> Iterator[Place]:
    """Yield the prepositions of a sentence that stand in one of the frames."""
    lower = sentence.lower
    at = 0
    while at < len(sentence) - 2:
        word, last = _longest(lower, at, changed_words())
        if word and _is_free(sentence, lexicon, word, at, last):
            phrase = noun_phrase(sentence, last)
            new = _replacements(sentence, lexicon, word, at, phrase) if phrase else []
            if new:
                yield Place(at, last, word, [(other, [Edit(at, last, other)]) for other in new])
        at = last


def _longest(lower: Sequence[str], at: int, listed: Collection[str]) -> tuple[str, int]:
    """Return the longest listed word at a token ("" if none), and the next token to look at."""
    for size in (3, 2, 1):
        word = " ".join(lower[at : at + size])
        if word in listed:
            return word, at + size
    return "", at + 1


def _is_free(sentence: Sentence, lexicon: WordKinds, word: str, at: int, last: int) -> bool:
    """Return whether a preposition is neither a particle nor part of a fixed expression."""
    lower, tags = sentence.lower, sentence.tags
    if tags[last - 1] not in _PREPOSITION and last - at == 1:
        return False
    before = lower[at - 1] if at else ""
    if at and sentence.start[at] == sentence.end[at - 1]:
        return False  # joined to the word before: "in-fact-with"
    if before == lower[last]:
        return False  # "year after year"
    if word == "by" and at and tags[at - 1] in ("VBN", "VBD"):
        return False  # a passive's agent
    if word == "without" and lower[last] in ("any", "anyone", "anything", "ever"):
        return False
    if at and tags[at - 1] in ("IN", "TO", "RP", "CC", "DT", "JJ", "PRP$", "RBR", "JJR", "CD"):
        return False
    governed = fixed_words("governed_prepositions")
    lemma = verb_lemma(before) if at and tags[at - 1].startswith("VB") else singular(before)
    if f"{before} {word}" in governed or f"{lemma} {word}" in governed:
        return False
    if at and tags[at - 1].startswith("VB") and lexicon.governs(lemma, word):
        return False
    if word == "with":  # "align the one with the other"
        verbs = [
            lower[index] for index in range(max(at - 6, 0), at) if tags[index].startswith("VB")
        ]
        if any(f"{verb_lemma(verb)} with" in governed for verb in verbs):
            return False
    following = [" ".join(lower[at : last + more]) for more in (1, 2, 3)]
    return lexicon.fixed_phrases.isdisjoint(following) and fixed_words("fixed_phrases").isdisjoint(
        [f"{before} {word}", *following]
    )


def _replacements(
    sentence: Sentence, lexicon: WordKinds, word: str, at: int, phrase: Phrase
) -> list[str]:
    kind = phrase.kind(lexicon)
    if not kind or sentence.tags[phrase.last : phrase.last + 1] == ["POS"]:
        return []
    head = phrase.word
    if _opens_range(sentence, phrase) or (at and sentence.lower[at - 1] == "only"):
        return []
    if kind in ("artifact", "object", "location") and (
        head in fixed_words("abstract_heads") or singular(head) in fixed_words("abstract_heads")
    ):
        return []
    tags, lower = sentence.tags, sentence.lower
    verb = verb_lemma(lower[at - 1]) if at and tags[at - 1].startswith("VB") else ""
    noun = lower[at - 1] if at and tags[at - 1] in ("NN", "NNS") else ""
    found: dict[str, None] = {}
    for frame in frames():
        if word not in frame.words or kind not in frame.objects:
            continue
        named = tags[phrase.head] in ("NNP", "NNPS")
        if frame.definite and not (phrase.determined or (named and kind == "location")):
            continue
        if frame.names and not named:
            continue
        if frame.plural and tags[phrase.head] != "NNS":
            continue
        if frame.counted and not _counts(sentence, phrase):
            continue
        if kind == "time" and frame.duration != _is_duration(sentence, phrase):
            continue
        if frame.attribute and (not noun or lower[phrase.first] == "the"):
            continue
        fits_verb = verb and (verb in frame.verbs or lexicon.verb_kind(verb) in frame.verbs)
        if (frame.verbs or frame.nouns) and not (fits_verb or noun in frame.nouns):
            continue
        found |= dict.fromkeys(other for other in frame.by if other != word)
    if at and tags[at - 1] not in _SPREAD:
        found.pop("all over", None)
    if not {"JJS", "RBS"}.isdisjoint(tags):  # "the largest in", not "all over"
        found = {other: None for other in found if other not in ("all over", "across", "around")}
    return list(found)


def _opens_range(sentence: Sentence, phrase: Phrase) -> bool:
    return sentence.lower[phrase.last : phrase.last + 1] in (["to"], ["or"], ["-"], ["–"])


def _is_duration(sentence: Sentence, phrase: Phrase) -> bool:
    """Return whether a phrase of time says how long rather than when: "eight weeks", "a moment"."""
    first = sentence.lower[phrase.first]
    counted = sentence.tags[phrase.first] in ("CD", "JJ") or first in ("a", "an", "several", "few")
    return counted and phrase.word in fixed_words("units")


def _counts(sentence: Sentence, phrase: Phrase) -> bool:
    return "CD" in sentence.tags[phrase.first : phrase.first + 1]


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


def spatial_places(sentence: Sentence, lexicon: WordKinds) -> Iterator[Place]:
    """Yield the spatial words of a sentence that have an opposite."""
    at = 0
    while at < len(sentence) - 1:
        word, last = _longest(sentence.lower, at, spatial_opposites())
        if word and _is_spatial(sentence, lexicon, word, at, last):
            new = spatial_opposites()[word]
            yield Place(at, last, word, [(new, [Edit(at, last, new)])], deny_subject=True)
        at = last


def _is_spatial(sentence: Sentence, lexicon: WordKinds, word: str, at: int, last: int) -> bool:
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


def _is_fixed(lower: list[str], lexicon: WordKinds, at: int, last: int) -> bool:
    """Return whether a word is in a fixed expression, or governed by the word before it."""
    around = [" ".join(lower[at : last + more]) for more in (1, 2)]
    around += [" ".join(lower[max(at - less, 0) : last + 1]) for less in (1, 2)]
    if not lexicon.fixed_phrases.isdisjoint(around):
        return True
    word, before = " ".join(lower[at:last]), lower[at - 1] if at else ""
    governed = fixed_words("governed_prepositions")
    return f"{before} {word}" in governed or f"{verb_lemma(before)} {word}" in governed


def _moves(sentence: Sentence, lexicon: WordKinds, at: int) -> bool:
    """Return whether a token is a verb of motion."""
    if not sentence.tags[at].startswith("VB"):
        return False
    return lexicon.verb_kind(verb_lemma(sentence.lower[at])) == "motion"


def _object(sentence: Sentence, lexicon: WordKinds, at: int) -> str:
    """Return the kind of the noun phrase at a token; "" if there is none, or it is not a thing."""
    found = noun_phrase(sentence, at)
    if found is None or found.word in fixed_words("not_in_space"):
        return ""
    return found.kind(lexicon)
