"""Finding a lemma's surface form in a sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.mentions import Inflections, MentionFinder

# The rules and exceptions of WordNet that these tests need.
RULES = {
    "n": [("s", ""), ("ses", "s"), ("ies", "y"), ("men", "man")],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}
EXCEPTIONS = {"v": {"blew": ["blow"], "was": ["be"]}, "n": {"alae": ["ala"]}}


@pytest.fixture(scope="module")
def finder() -> MentionFinder:
    return MentionFinder(Inflections(RULES, EXCEPTIONS))


def surface(finder: MentionFinder, text: str, lemma: str, pos: str) -> str | None:
    span = finder.find(text, lemma, pos)
    return text[span.start : span.end] if span else None


@pytest.mark.parametrize(
    ("text", "lemma", "pos", "expected"),
    [
        # inflection, regular and not
        ("The dogs barked", "dog", "n", "dogs"),
        ("he was late", "be", "v", "was"),
        ("the alae of the nose", "ala", "n", "alae"),
        ("they were jogging", "jog", "v", "jogging"),
        ("a thinner slice", "thin", "a", "thinner"),
        ("the loneliest night", "lonely", "s", "loneliest"),
        # several words, any of them inflected
        ("He hunkered down in the shade", "hunker_down", "v", "hunkered down"),
        ("Get cracking, please!", "get_cracking", "v", "Get cracking"),
        ("two attorneys general met", "attorney_general", "n", "attorneys general"),
        ("they made peace at last", "make_peace", "v", "made peace"),
        ("movers and shakers", "mover_and_shaker", "n", "movers and shakers"),
        # placeholders
        ("he blew his top", "blow_one's_top", "v", "blew his top"),
        ("John called Mary's bluff", "call_one's_bluff", "v", "called Mary's bluff"),
        ("She keeps to herself", "keep_to_oneself", "v", "keeps to herself"),
        # another division into words
        ("a hand-held computer", "handheld", "a", "hand-held"),
        ("the whistleblowers won", "whistle-blower", "n", "whistleblowers"),
        ("a stock in trade", "stock-in-trade", "n", "stock in trade"),
        # possessives, punctuation, case
        ("the dog's tail", "dog", "n", "dog"),
        ("at 2 A.M. sharp", "a.m.", "r", "A.M."),
        ("Objets d'art", "objet_d'art", "n", "Objets d'art"),
        ("men walked on the moon", "Moon", "n", "moon"),
        # no match
        ("a typical circuit", "A", "n", None),
        ("it works", "IT", "n", None),
        ("concatenate", "cat", "n", None),
        ("I don't know", "don", "v", None),
        ("put the coat on", "put_on", "v", None),
        ("it costs 3.50 now", "3", "n", None),
        ("", "dog", "n", None),
        ("dog", "...", "n", None),
    ],
)
def test_surface_form(
    finder: MentionFinder, text: str, lemma: str, pos: str, expected: str | None
) -> None:
    assert surface(finder, text, lemma, pos) == expected


@pytest.mark.parametrize(
    ("text", "lemma", "pos", "start"),
    [
        ("dogs chase a dog", "dog", "n", 13),  # as written beats inflected
        ("Dog eats dog", "dog", "n", 9),  # same case beats other case
        ("a hot-dog and two dogs", "dog", "n", 18),  # free beats inside a compound
        ("a dog and a dog", "dog", "n", 2),  # the first of equals
    ],
)
def test_the_best_occurrence_wins(
    finder: MentionFinder, text: str, lemma: str, pos: str, start: int
) -> None:
    span = finder.find(text, lemma, pos)
    assert span is not None
    assert span.start == start


words = st.text(st.sampled_from("abcdos'-é "), max_size=30)


@given(
    words, st.text(st.sampled_from("abcdos_-'"), min_size=1, max_size=8), st.sampled_from("nvar")
)
def test_a_mention_is_never_part_of_a_word(text: str, lemma: str, pos: str) -> None:
    span = FINDER.find(text, lemma, pos)
    if span is None:
        return
    assert 0 <= span.start < span.end <= len(text)
    assert not re.search(r"\w\Z", text[: span.start]) or not re.match(r"\w", text[span.start :])
    assert not re.search(r"\w\Z", text[: span.end]) or not re.match(r"\w", text[span.end :])


@given(
    st.text(st.sampled_from("xyz ,."), max_size=15), st.text(st.sampled_from("xyz ,."), max_size=15)
)
def test_a_lemma_that_stands_free_is_found(before: str, after: str) -> None:
    text = f"{before} blue_moon {after}".replace("_", " ")
    span = FINDER.find(text, "blue_moon", "n")
    assert span is not None
    assert text[span.start : span.end] == "blue moon"


FINDER = MentionFinder(Inflections(RULES, EXCEPTIONS))
