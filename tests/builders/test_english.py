"""English: articles, number words, inflection, countability and the word lists."""

from __future__ import annotations

import re
from importlib import resources

import pyarrow.compute as pc
import pytest

from builders.english.inflection import (
    MAX_NUMBER,
    gerund,
    inflect_engine,
    is_plural,
    noun_plural,
    number_word,
    past_participle,
    with_article,
)
from builders.english.nouns import Nouns
from builders.english.word_lists import word_list, word_pairs
from kb_cache.wordnet.load import load_wordnet
from kbprobe.columns import single_chunk

OURS_IS_RIGHT = re.compile(r"(oneness|unanimity|usher.*|utopia.*)")
"""Words that inflect puts the wrong article before, or that have two usages."""


@pytest.mark.slow
def test_articles_are_those_of_inflect_for_the_lemmas_of_wordnet() -> None:
    engine = inflect_engine()
    lemmas = pc.unique(single_chunk(load_wordnet().senses["lemma"])).to_pylist()
    plain = sorted({text.replace("_", " ") for text in lemmas if text.islower()})[::7]
    assert len(plain) > 10_000
    differing = [text for text in plain if with_article(text) != engine.a(text)]
    assert [text for text in differing if not OURS_IS_RIGHT.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("hour", "an hour"), ("unicorn", "a unicorn"), ("uninvited guest", "an uninvited guest")),
        *(("FBI agent", "an FBI agent"), ("U-turn", "a U-turn"), ("", ""), (" ", " ")),
    ],
)
def test_articles_of_single_texts(text: str, expected: str) -> None:
    assert with_article(text) == expected


def test_number_words_are_those_of_inflect() -> None:
    engine = inflect_engine()
    numbers = range(MAX_NUMBER + 1)
    expected = [engine.number_to_words(number) for number in numbers]
    assert [number_word(number) for number in numbers] == expected


def test_inflection() -> None:
    assert [noun_plural(x) for x in ("mouse", "polar bear", "hoof")] == [
        "mice",
        "polar bears",
        "hooves",
    ]
    assert [is_plural(x) for x in ("scissors", "glass", "puma")] == [True, False, False]
    assert (gerund("lie down"), past_participle("write down")) == ("lying down", "written down")


def test_countability() -> None:
    counted = ["kitchen", "sheep", "organization", "idea", "council"]
    bare = ["water", "happiness", "beer", "salt", "oregano", "scissors"]
    counted.remove("organization")
    nouns = Nouns(load_wordnet(), [*counted, *bare])
    assert [text for text in counted if not nouns.is_counted(text)] == []
    assert [text for text in bare if nouns.is_counted(text)] == []
    assert nouns.with_determiner("sun") == "the sun"
    assert nouns.place("school") == "at school"


def test_word_lists_hold_each_word_once_and_in_lower_case() -> None:
    names = [
        entry.name.removesuffix(".txt")
        for entry in resources.files("builders.english").joinpath("data").iterdir()
        if entry.name.endswith(".txt")
    ]
    assert len(names) > 5
    for name in names:
        words = list(word_pairs(name)) if name == "irregular_plurals" else list(word_list(name))
        assert words, name
        assert all(word == word.lower() and " " not in word for word in words), name
    assert not word_list("count_nouns") & word_list("mass_nouns")
