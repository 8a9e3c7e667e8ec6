"""Prepositions: *in* to *behind*, *before* to *after*, in frames where the effect is certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import yaml

from builders.function_words.nli.clauses import PACKAGE, Sentence, fixed_words
from builders.function_words.nli.edits import Edit, Phrase, noun_phrase
from builders.function_words.nli.lexicon import Lexicon, singular
from builders.function_words.nli.negation import verb_lemma
from builders.function_words.nli.pairs import Place

_TAGS = frozenset(("IN", "TO", "RB", "JJ", "NN", "DT", "RP"))
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
def _file() -> Mapping[str, Sequence[object]]:
    text = resources.files(PACKAGE).joinpath("data", "prepositions.yaml").read_text("utf-8")
    found: Mapping[str, Sequence[object]] = yaml.safe_load(text)
    return found


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
        values = dict(given)  # type: ignore[call-overload]  # a mapping, as the file has it
        values["by"] = tuple(values["by"])
        made.append(Frame(**{**values, **{k: frozenset(values.get(k, ())) for k in sets}}))
    return tuple(made)


@cache
def changed_words() -> frozenset[str]:
    """Return the prepositions that are changed."""
    return frozenset(word for frame in frames() for word in frame.words)


def preposition_places(sentence: Sentence, lexicon: Lexicon) -> Iterator[Place]:
    """Yield the prepositions of a sentence that stand in one of the frames."""
    lower = sentence.lower
    at = 0
    while at < len(sentence) - 2:
        word, last = _longest(lower, at)
        if word and _is_free(sentence, lexicon, word, at, last):
            phrase = noun_phrase(sentence, last)
            new = _replacements(sentence, lexicon, word, at, phrase) if phrase else []
            if new:
                yield Place(at, last, word, [(one, [Edit(at, last, one)]) for one in new])
        at = last


def _longest(lower: Sequence[str], at: int) -> tuple[str, int]:
    for size in (3, 2, 1):
        word = " ".join(lower[at : at + size])
        if word in changed_words():
            return word, at + size
    return "", at + 1


def _is_free(sentence: Sentence, lexicon: Lexicon, word: str, at: int, last: int) -> bool:
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
        verbs = [lower[one] for one in range(max(at - 6, 0), at) if tags[one].startswith("VB")]
        if any(f"{verb_lemma(verb)} with" in governed for verb in verbs):
            return False
    following = [" ".join(lower[at : last + more]) for more in (1, 2, 3)]
    return lexicon.fixed_phrases.isdisjoint(following) and fixed_words("fixed_phrases").isdisjoint(
        [f"{before} {word}", *following]
    )


def _replacements(
    sentence: Sentence, lexicon: Lexicon, word: str, at: int, phrase: Phrase
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
        found |= dict.fromkeys(one for one in frame.by if one != word)
    if at and tags[at - 1] not in _SPREAD:
        found.pop("all over", None)
    if not {"JJS", "RBS"}.isdisjoint(tags):  # "the largest in", not "all over"
        found = {one: None for one in found if one not in ("all over", "across", "around")}
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
