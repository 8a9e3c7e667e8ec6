"""What the cleaning of GCIDE's texts removes, splits off and gives up."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.gcide import text as gcide_text
from kb_cache.gcide.text import (
    ILLEGIBLE,
    damage,
    decode,
    entity,
    finish,
    is_form_of,
    part_of_speech,
    split_labels,
    split_usage,
    tidy,
    without_references,
)


def test_the_examples_in_docstrings() -> None:
    assert doctest.testmod(gcide_text).failed == 0


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("encyclop<ae/dia", "encyclopædia"),
        (r"co\'94peration", "coöperation"),
        (r"\'bdHail!\'b8", "“Hail!”"),
        ("<ldquo/Hail!<rdquo/", "“Hail!”"),
        ("<amac/<icr/<nsdot/<OMEGA/", "āĭṇΩ"),
        ("the sign <?/", f"the sign {ILLEGIBLE}"),
        ("one<br/\ntwo", "one\n\ntwo"),
        ("a<-- p. 3 --> b<! p. 4 !>", "a b"),
        ("<def>kept</def>", "<def>kept</def>"),
    ],
)
def test_decoding(source: str, plain: str) -> None:
    assert decode(source) == plain


def test_unknown_entities_leave_a_visible_gap() -> None:
    assert decode("a <qqq/ b") == f"a {ILLEGIBLE} b"
    assert damage(f"a {ILLEGIBLE} b") == "illegible in the source"


@pytest.mark.parametrize(
    ("printed", "pos"),
    [
        ("n.", "noun"),
        ("prop. n. pl.", "noun"),
        ("vb. n.", "noun"),
        ("v. t. & i.", "verb"),
        ("imp. & p. p.", "verb"),
        ("3d pers. sing. pres.", "verb"),
        ("p. a.", "adjective"),
        ("adj. prenom.", "adjective"),
        ("a.", "adjective"),
        ("adv. & a.", "adverb"),
        ("prep.", "other"),
        ("pron.", "other"),
        ("", "other"),
    ],
)
def test_parts_of_speech(printed: str, pos: str) -> None:
    assert part_of_speech(printed) == pos


@pytest.mark.parametrize(
    ("source", "definition", "usage"),
    [
        ("A fellow; as, a sly dog; a lazy dog.", "A fellow", "a sly dog; a lazy dog"),
        ("A pad (as, a soft dab) for ink.", "A pad for ink.", "a soft dab"),
        ("Lit; as, to dab. See Dip.", "Lit. See Dip.", "to dab"),
        ("Lit; as, to dab, etc.", "Lit", "to dab"),
        ("Dull; such as lead is.", "Dull; such as lead is.", ""),
        ("Weak; as, dab tea; hence, poor; as, dab art.", "Weak; hence, poor", "dab tea; dab art"),
        ("Woven; as, dab arts; capable of it; as, dabs.", "Woven; capable of it", "dab arts; dabs"),
    ],
)
def test_usage_is_split_off(source: str, definition: str, usage: str) -> None:
    assert split_usage(source, "dab") == (definition, usage)


@pytest.mark.parametrize(
    "definition",
    [
        "See Dog.",
        "Same as Dog, n.",
        "See Crow blackbird, under Crow.",
        "same as ethiopia{3}.",
        "See Dog, v. t. & i., 2, and Note under Hound. Cf. Wolf.",
        "-- See Dog.",
    ],
)
def test_cross_references_leave_nothing(definition: str) -> None:
    assert finish(without_references(definition)) == ""


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("A judge. See Cadi.", "A judge."),
        ("A judge (see Cadi) of note.", "A judge of note."),
        ("A judge; see Cadi, 2.", "A judge."),
        ("To look; to see with eyes.", "To look; to see with eyes."),
        ("See Cadi. He judges men.", "He judges men."),
        ("To see the end of all things that were begun.", None),
    ],
)
def test_definitions_lose_their_references_alone(source: str, kept: str | None) -> None:
    assert finish(without_references(source)) == (source if kept is None else kept)


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("imp. & p. p. of Feel.", True),
        ("Imp. & p. p. of Climb (for climbed).", True),
        ("A variant of Czar.", True),
        ("Of low rank.", False),
        ("The past of a people.", False),
        ("A form of government.", False),
    ],
)
def test_forms_of_other_words(definition: str, expected: bool) -> None:
    assert is_form_of(definition) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Those pampered animals rage.", None),
        ("He said, in 1913, that it rained (i.e. poured).", None),
        ("Gone; see https://example.org/a.Bc", None),
        ("MacDonald played a ZrSiO4.", None),
        ("Of, pertaining to, or like, a papill1913 Webster]", "cut short"),
        ("A kind\n[1913 Webster", "cut short"),
        ("The willHeaven.", "words run together"),
        ("Life, too,languish?", "words run together"),
        ("The days of old. . .sphinx.", "words run together"),
        ("The office of an  Arnold, or", "gap or stray markup"),
        ("Any <foo of it", "gap or stray markup"),
        ("A foot (as, one long", "brackets do not match"),
        ("(a) One. b) Two.", None),
    ],
)
def test_damage(text: str, reason: str | None) -> None:
    assert damage(text) == reason


def test_labels() -> None:
    assert split_labels("(Bot.) A plant. [Obs.]") == ("A plant.", "Bot.", "Obs.")
    assert split_labels("(He) is.") == ("(He) is.", "", "")


def test_definitions_look_alike() -> None:
    assert finish("a hot dog") == "A hot dog."
    assert finish("A fellow; -- used  in jest;") == "A fellow; used in jest."
    assert finish("What is it?") == "What is it?"
    assert tidy("be . . . wiped , only") == "be ... wiped, only"


@given(st.text(alphabet="abAB<>/\\'?&.;-()[]{}\n 1é", max_size=60))
def test_decoding_takes_anything(text: str) -> None:
    plain = decode(text)
    if "<" not in text and "\\" not in text:
        assert plain == text


@given(st.from_regex(r"\A[A-Za-z]{1,12}\Z"))
def test_entities_become_characters_or_nothing(name: str) -> None:
    found = entity(name)
    assert found is None or len(found) <= 4


SCRAPS = ("A", "dab", "see", "as", "thus", "See", "Dog", "same", ";", ":", ".", ",", "--", "(", ")",
          "[Obs.]", "{2}", "n.", "of", "hence")  # fmt: skip
PROSE = st.lists(st.sampled_from(SCRAPS), max_size=25).map(" ".join)


@given(PROSE)
def test_cleaning_takes_anything_and_settles(text: str) -> None:
    definition, usage = split_usage(text, "dab")
    once = finish(without_references(split_labels(definition)[0]))
    assert finish(once) == once
    assert not once or (once[-1] in ".!?" and once[0] == once[0].upper())
    assert len(once) + len(usage) <= len(text) + 2


@given(st.text(max_size=200))
def test_no_text_makes_cleaning_fail(text: str) -> None:
    damage(text)
    part_of_speech(text)
    finish(without_references(split_usage(split_labels(text)[0], text[:5])[0]))


@pytest.mark.parametrize("unit", ["A", "a, ", "(", "; as, ", "See A ", "[", "(Ab. ", "of ", ". . "])
def test_long_texts_take_no_long_time(unit: str) -> None:
    text = unit * 5000
    damage(text)
    finish(without_references(split_usage(split_labels(text)[0], "dab")[0]))
    is_form_of(text)
