"""What a reader of builds thought of words and pairs of antonym_negation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from builders.english.word_lists import data_table

Words = frozenset[str]


class WordReadings(NamedTuple):
    """The content of ``data/judged.yaml``; nothing by default.

    Attributes:
        stiff: part of speech -> words that are stilted in the sentences.
        people: adjectives that only describe people.
        things: adjectives that describe people in another sense.
        accepted: for antonyms (True) and synonyms, pairs to ask about although a model doubts them.
        arguable: pairs not to ask about.
    """

    stiff: Mapping[str, Words] = {}
    people: Words = frozenset()
    things: Words = frozenset()
    accepted: Mapping[bool, frozenset[Words]] = {True: frozenset(), False: frozenset()}
    arguable: frozenset[Words] = frozenset()


@cache
def readings() -> WordReadings:
    """Read ``data/judged.yaml``."""
    table = data_table("judged", "builders.antonyms")
    return WordReadings(
        stiff={kind: frozenset(words.split()) for kind, words in table["stiff"].items()},
        people=frozenset(table["people"].split()),
        things=frozenset(table["things"].split()),
        accepted={True: _pairs(table["antonyms"]), False: _pairs(table["synonyms"])},
        arguable=_pairs(table["arguable"]),
    )


def word_pairs(groups: Iterable[tuple[str, Iterable[str]]]) -> frozenset[Words]:
    """Pair the first word of each group with each of the others."""
    return frozenset(frozenset((one, other)) for one, others in groups for other in others)


def _pairs(groups: Mapping[str, str]) -> frozenset[Words]:
    return word_pairs((one, others.split()) for one, others in groups.items())
