"""Inflected forms of nouns and verbs, by lemminflect, and hyphenated compounds by inflect."""

from __future__ import annotations

from functools import cache

from builders.english.articles import inflect_engine
from builders.english.word_lists import word_list, word_pairs
from kbprobe.plugins import lemminflect


@cache
def noun_plural(term: str) -> str:
    """Return the plural of a noun, or of a compound by its last word.

    >>> noun_plural("polar bear"), noun_plural("mouse")
    ('polar bears', 'mice')
    """
    rest, space, noun = term.rpartition(" ")
    if "-" in noun:  # mothers-in-law
        return rest + space + str(inflect_engine().plural(noun))
    irregular = word_pairs("irregular_plurals").get(noun)
    forms = (irregular,) if irregular else lemminflect().getInflection(noun, tag="NNS")
    return rest + space + (forms[0] if forms else noun)


@cache
def is_plural(term: str) -> bool:
    """Return whether a noun is already plural ("scissors"), by its last word.

    >>> is_plural("oats"), is_plural("glass"), is_plural("harmonica")
    (True, False, False)
    """
    noun = term.rsplit(" ", 1)[-1]
    # lemminflect classifies some singulars as plural ("puma"), and "scissors" as singular.
    is_form = noun.endswith("s") and noun not in lemminflect().getLemma(noun, upos="NOUN")
    return is_form or noun in word_list("plural_only")


def _inflected_verb(term: str, tag: str) -> str:
    verb, space, rest = term.partition(" ")
    forms = lemminflect().getInflection(verb, tag=tag)
    return (forms[0] if forms else verb) + space + rest


def gerund(term: str) -> str:
    """Return the -ing form of a verb, or of a phrase by its first word.

    >>> gerund("lie down")
    'lying down'
    """
    return _inflected_verb(term, "VBG")


def past_participle(term: str) -> str:
    """Return the past participle of a verb, or of a phrase by its first word.

    >>> past_participle("write down")
    'written down'
    """
    return _inflected_verb(term, "VBN")
