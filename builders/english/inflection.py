"""Forms of English words: number words, articles, plurals, and forms of verbs.

Irregular forms are those of lemminflect and inflect.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from builders.english.word_lists import word_list, word_pairs
from kbprobe.plugins import inflect, lemminflect

MAX_NUMBER = 999
"""The highest number that is spelled out."""

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_word(number: int) -> str:
    """Spell out a number from 0 to 999.

    The words are those of ``inflect.number_to_words``, which takes two seconds to import; a test
    compares the two.

    >>> number_word(21), number_word(215)
    ('twenty-one', 'two hundred and fifteen')
    """
    if number < len(_UNITS):
        return _UNITS[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens] + (f"-{_UNITS[rest]}" if rest else "")
    hundreds, rest = divmod(number, 100)
    return f"{_UNITS[hundreds]} hundred" + (f" and {number_word(rest)}" if rest else "")


_PLAIN = re.compile(r"(?=[a-z]{0,2}[aeiouy])[a-z]{3,}(?:[ -][a-z]{2,}|'[a-z]+)*")
"""Lower-case words, which are read as words and not letter by letter."""

_AN = re.compile(
    r"(?!eu|ew|one(?!r|i)|once|ubi|uk|unanim[io]|uni(?!d|n|m[amp])|ur[aeiou]|us[aeiu]|ut[aei])[aeiou]"
    r"|hour(?!i)|hono|heir|honest|ytt"
)
"""Beginnings of plain words that take *an*."""


@cache
def inflect_engine() -> Any:
    """Return inflect's engine, made once."""
    return inflect().engine()


@lru_cache(maxsize=1 << 18)
def with_article(text: str) -> str:
    """Put *a* or *an* before a noun phrase; blank text is returned as it is.

    Plain lower-case words follow a rule of our own, which a test compares with inflect on
    WordNet's lemmas; acronyms, names and single letters are left to inflect.

    >>> with_article("hour"), with_article("university"), with_article("FBI agent")
    ('an hour', 'a university', 'an FBI agent')
    """
    if _PLAIN.fullmatch(text):
        return f"{'an' if _AN.match(text) else 'a'} {text}"
    return inflect_engine().a(text) if text.strip() else text


def number_article(number: int) -> str:
    """Return the article of a number as it is read aloud: an 8, an 11, an 18, an 85; a 1985.

    >>> [number_article(number) for number in (8, 18, 80, 35, 100, 800, 1985)]
    ['an', 'an', 'an', 'a', 'a', 'an', 'a']
    """
    spoken = number_word(number) if 0 <= number <= MAX_NUMBER else str(number)
    return "an" if spoken.startswith("e") else "a"


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
