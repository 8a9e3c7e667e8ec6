"""Function words: swaps, natural sentences, balanced choices, and the pairs of a build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.function_words.balance import WHOLE, Change, Tolerance, choose_balanced
from builders.function_words.natural import unnatural
from builders.function_words.swaps import Swaps, changed_texts, shown_places, with_case_of
from builders.function_words.tokens import TaggedTexts
from kb_cache.corpora.rows import RawDocument, RawText, corpus_of, words_in
from kbprobe.errors import UsageError

FORMS = st.sampled_from(["who", "Who", "WHO", "the", "A", "I", "n't", "dog", "Dogs", ",", "“", "."])
GAPS = st.sampled_from(["", " ", "  ", " (", "\N{EN DASH}"])


def tagged_of(*texts: RawText) -> TaggedTexts:
    return TaggedTexts.of(corpus_of([RawDocument("d", [list(texts)])]).sentences, "given")


def tagged_words(*sentences: tuple[str, str]) -> TaggedTexts:
    """Tag sentences written as their text, and as words with tags ("Who/WP cares/VBZ ?/.")."""
    raw = []
    for text, words in sentences:
        pairs = [word.rpartition("/") for word in words.split()]
        tags = [tag for _, _, tag in pairs]
        raw.append(words_in(text, [word for word, _, _ in pairs], xpos=tags))
    return tagged_of(*raw)


@st.composite
def texts(draw: st.DrawFn) -> RawText:
    parts = draw(st.lists(st.tuples(GAPS, FORMS), min_size=1, max_size=8))
    text, starts, ends = "", [], []
    for gap, form in parts:
        text += gap
        starts.append(len(text))
        text += form
        ends.append(len(text))
    return RawText(text, starts, ends, xpos=["NN"] * len(starts))


@given(texts(), st.data())
def test_a_swap_changes_nothing_but_the_words(raw: RawText, data: st.DataObject) -> None:
    tagged = tagged_of(raw)
    places = data.draw(
        st.lists(st.integers(0, len(raw.starts) - 1), min_size=1, unique=True).map(sorted)
    )
    words = [data.draw(st.sampled_from(["what", "an", "whichever"])) for _ in places]
    (changed,) = changed_texts(tagged, Swaps(np.array([0]), [places], [words]))
    expected, done = "", 0
    for place, word in zip(places, words, strict=True):
        first, last = raw.starts[place], raw.ends[place]
        shown = with_case_of(word, raw.text[first:last], first == 0)
        assert shown.lower() == word
        expected += raw.text[done:first] + shown
        done = last
    assert changed == expected + raw.text[done:]
    assert changed.lower() != raw.text.lower()
    shown = shown_places(tagged, [places], [words])
    if len(places) == 1:
        assert shown.windows[0] in changed
        assert shown.words[0] in shown.windows[0]


@pytest.mark.parametrize(
    ("word", "model", "begins", "shown"),
    [
        ("when", "who", False, "when"),
        ("when", "Who", True, "When"),
        ("when", "WHO", False, "WHEN"),
        ("the", "A", True, "The"),
        ("an", "The", False, "An"),
    ],
)
def test_a_replacement_takes_over_the_case(word: str, model: str, begins: bool, shown: str) -> None:
    assert with_case_of(word, model, begins) == shown


def test_neighbours_are_those_of_the_same_text() -> None:
    tagged = tagged_words(("See who runs.", "See/VB who/WP runs/VBZ ./."), ("Who?", "Who/WP ?/."))
    who = tagged.is_word("who")
    assert np.flatnonzero(who).tolist() == [1, 4]
    assert np.flatnonzero(tagged.near(who, 1)).tolist() == [0]
    assert np.flatnonzero(tagged.near(who, -1)).tolist() == [2, 5]
    assert not tagged.near(who, 99).any()
    assert tagged.words_at(np.array([1, 4]), -1) == ["see", ""]
    assert tagged.has_tag("VB*").tolist() == [True, False, True, False, False, False]


def test_a_corpus_without_tags_is_refused() -> None:
    with pytest.raises(UsageError, match=r"given has no part-of-speech tags.*--corpus"):
        tagged_of(words_in("See it.", ["See", "it", "."]))


SENTENCE = ("The dog sees it.", "The/DT dog/NN sees/VBZ it/PRP ./.")


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("Dogs bark.", "Dogs/NNS bark/VBP ./.", "tokens"),
        ("the dog sees it.", "the/DT dog/NN sees/VBZ it/PRP ./.", "begin or end"),
        ("The dog sees it now", "The/DT dog/NN sees/VBZ it/PRP now/RB", "begin or end"),
        ("The dog sees a@b.c.", "The/DT dog/NN sees/VBZ a@b.c/NN ./.", "address"),
        ('The dog" sees it.', "The/DT dog/NN \"/'' sees/VBZ it/PRP ./.", "unbalanced"),
        ("THE DOG SEES IT.", "THE/DT DOG/NN SEES/VBZ IT/PRP ./.", "capitals"),
        ("The dog in the house.", "The/DT dog/NN in/IN the/DT house/NN ./.", "finite"),
        ("The dog uh sees it.", "The/DT dog/NN uh/UH sees/VBZ it/PRP ./.", "speech"),
        ("Doctor: So it sees us.", "Doctor/NN :/: So/RB it/PRP sees/VBZ us/PRP ./.", "speaker"),
    ],
)
def test_what_is_no_sentence_is_told(text: str, words: str, reason: str) -> None:
    found = unnatural(tagged_words(SENTENCE, (text, words)), 5, 40)
    assert not any(wrong[0] for wrong in found.values())
    assert any(reason in name for name, wrong in found.items() if wrong[1])


FEATURE = st.tuples(st.sampled_from(["word", "behind"]), st.sampled_from(["a", "b", "c"]))
CHANGES = st.lists(
    st.builds(
        Change,
        st.integers(0, 20),
        st.integers(0, 2),
        st.lists(FEATURE, max_size=3),
        st.lists(FEATURE, max_size=3),
    ),
    max_size=40,
)


@given(CHANGES)
def test_chosen_changes_are_balanced(changes: Sequence[Change]) -> None:
    tolerance = {"word": Tolerance(2, 1), "behind": Tolerance(1, 1)}
    chosen = choose_balanced(changes, tolerance, np.arange(len(changes), dtype=np.float64))
    groups = [changes[at].group for at in chosen]
    assert len(set(groups)) == len(groups)
    balance: Counter[tuple[int, tuple[str, str]]] = Counter()
    for at in chosen:
        for part in (changes[at].part, WHOLE):
            balance.update((part, feature) for feature in changes[at].original)
            balance.subtract((part, feature) for feature in changes[at].changed)
    for (part, (kind, _)), by in balance.items():
        assert abs(by) <= (tolerance[kind].whole if part == WHOLE else tolerance[kind].part)


def test_opposite_changes_are_all_chosen() -> None:
    one, other = [("word", "who")], [("word", "when")]
    changes = [Change(at, 0, *((one, other) if at % 2 else (other, one))) for at in range(40)]
    tolerance = {"word": Tolerance(1, 1)}
    assert len(choose_balanced(changes, tolerance, np.arange(40.0))) == 40
    lopsided = [change for change in changes if change.original == one]
    assert len(choose_balanced(lopsided, tolerance, np.arange(20.0))) == 1
