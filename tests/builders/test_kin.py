"""Words of one family, in pairs of texts; and how often golds and distractors hold them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from builders.english.kin import akin, holds_kin, lemmas, shares_a_word
from kb_cache.frequency import FUNCTION_WORDS
from kbprobe.audit.baselines import Giveaway, QuestionPart, giveaways
from kbprobe.plugins import lemminflect

ONE = np.array([0])


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        ("suffered", "suffer", True),
        ("dragging", "drag", True),
        ("placement", "placed", True),
        ("swept", "sweep", True),
        ("mice", "mouse", True),
        ("tied", "tie", True),
        ("greatness", "great", True),
        ("massy", "mass", True),
        ("vexation", "vexing", True),
        ("nodal", "node", True),
        ("active", "act", True),
        ("insurmountable", "surmounted", True),
        ("uneasy", "easy", True),
        ("reheat", "heated", True),
        ("varying", "variable", True),
        ("subgenus", "genus", True),
        ("await", "wait", True),
        ("houseboat", "boat", True),
        ("headphones", "PHONE", True),
        ("decision", "decide", True),
        ("hide", "skin", False),
        ("catalogue", "cat", False),
        ("making", "king", False),
        ("hardship", "ship", False),
        ("cover", "ring", False),
    ],
)
def test_kin_are_told_by_their_lemmas(one: str, other: str, related: bool) -> None:
    assert akin(one, other) is related
    assert akin(other, one) is related


@pytest.mark.slow
def test_what_is_asked_about_always_counts() -> None:
    for word in FUNCTION_WORDS.split():
        assert akin(word, word)
    assert holds_kin(pa.array(["made up"]), ONE, pa.array(["stand up"]), ONE)
    # Beside other words they do not count, nor do words that only look like one.
    assert not holds_kin(pa.array(["the back of a horse"]), ONE, pa.array(["the end of it"]), ONE)
    assert not holds_kin(pa.array(["overture"]), ONE, pa.array(["over"]), ONE)


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        ("beer", "a glass of wheat beer", True),
        ("dogs", "a Welsh DOG", True),
        ("he swept the floor", "sweeping brooms", True),
        ("horse", "he mounted his horses.", True),
        ("corgi", "a Welsh dog", False),
        ("contaminated", "the act of contamination", False),  # kin, not the same word
        ("be", "to be or not to be", False),  # under three letters
        ("something", "something else", False),  # a function word
        ("", "anything", False),
        ("anything", "", False),
    ],
)
def test_texts_share_a_content_word(left: str, right: str, shared: bool) -> None:
    for one, other in ((left, right), (right, left)):
        assert shares_a_word(pa.array([one]), ONE, pa.array([other]), ONE).tolist() == [shared]


@pytest.mark.parametrize("compare", [shares_a_word, holds_kin])
def test_words_are_looked_for_in_the_pairs_given(compare: object) -> None:
    assert callable(compare)
    left, right = pa.array(["red wine", "grass", "sun"]), pa.array(["green grass", "wines"])
    at_left, at_right = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1])
    assert compare(left, at_left, right, at_right).tolist() == [False, True, True, False, False]
    none = np.array([], dtype=np.int64)
    assert compare(left, none, right, none).tolist() == []


def test_no_function_word_is_shared() -> None:
    every = pa.array(FUNCTION_WORDS.split())
    at = np.arange(len(every))
    assert not shares_a_word(every, at, every, at).any()


def test_irregular_forms_are_those_of_lemminflect() -> None:
    forms = ["swept", "geese", "written", "lain", "better", "men", "went", "ran", "shook"]
    position, found = lemmas(pa.array(forms))
    for at, form in enumerate(forms):
        ours = {found[i].as_py() for i in np.flatnonzero(position == at)}
        theirs = {one for some in lemminflect().getAllLemmas(form).values() for one in some}
        assert theirs <= ours, form


def test_golds_that_hold_more_of_the_question_than_distractors_are_a_leak() -> None:
    texts = pa.array(["to sweep", "a kitchen", "a moon", "a star"])
    sentences = pa.array(["he swept the kitchen", "a moon"])
    parts = (
        QuestionPart("kin of word", pa.array(["swept", "nothing"]), holds_kin),
        QuestionPart("a word of the context", sentences, shares_a_word),
    )
    choices = np.array([[0, 2], [1, 3], [2, 3]])
    found = dict(giveaways(parts, np.array([0, 0, 1]), texts, choices, answer=np.array([0, 0, 1])))
    assert found == {
        "kin of word": Giveaway(1 / 3, 0.0, 3),
        "a word of the context": Giveaway(2 / 3, 1 / 3, 3),
    }
    assert Giveaway(0.046, 0.007, 7000).is_leak(5)
    assert not Giveaway(0.010, 0.007, 7000).is_leak(5)
    assert not Giveaway(0.046, 0.007, 30).is_leak(5)
    assert not Giveaway(0.0, 0.02, 7000).is_leak(5)
