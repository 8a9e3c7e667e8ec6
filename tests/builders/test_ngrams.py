"""Words, word pairs and shared words of many texts at once, against plain Python and NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kbprobe.audit.features import HASHED_WIDTH, ngram_features
from kbprobe.tokens import tokenise

TEXTS = st.lists(st.text("abXY Éß09日本_-'.,\t\n", max_size=24), max_size=6)


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


@given(TEXTS, TEXTS)
def test_words_are_runs_of_letters_and_digits_in_one_vocabulary(
    left: list[str], right: list[str]
) -> None:
    arrays = tokenise(pa.array(left, pa.string()), pa.array(right, pa.string()))
    spelled: dict[int, str] = {}
    for tokens, texts in zip(arrays, (left, right), strict=True):
        assert tokens.lengths.tolist() == [len(words(text)) for text in texts]
        expected = [word for text in texts for word in words(text)]
        for number, word in zip(tokens.ids.tolist(), expected, strict=True):
            assert spelled.setdefault(number, word) == word
            assert 0 <= number < tokens.vocabulary
    assert len(set(spelled.values())) == len(spelled)


def test_words_of_chosen_texts() -> None:
    (tokens,) = tokenise(pa.array(["b a", "", "c"]))
    position, number = tokens.of(np.array([2, 1, 0, 0]))
    assert position.tolist() == [0, 2, 2, 3, 3]
    b, a, c = number[1], number[2], number[0]
    assert number.tolist() == [c, b, a, b, a]
    assert len({a, b, c}) == 3


def test_texts_may_be_slices_of_larger_arrays() -> None:
    whole = pa.array(["left out", "one two", "three"])
    (tokens,) = tokenise(whole.slice(1))
    assert tokens.lengths.tolist() == [2, 1]


def columns_of(features: Any, text: int) -> list[int]:
    return sorted(features.indices[features.indptr[text] : features.indptr[text + 1]].tolist())


def test_features_are_words_pairs_and_length() -> None:
    features = ngram_features(pa.array(["a b a", "a b", "b a", "", "A, B; a"]))
    assert features.shape[1] == HASHED_WIDTH + 1
    assert np.diff(features.indptr).tolist() == [6, 4, 4, 1, 6]
    # The length stands in the last column, in tens of words; the rest counts 1 each.
    length = features.indices == HASHED_WIDTH
    assert features.data[length].tolist() == [0.3, 0.2, 0.2, 0.0, 0.3]
    assert (features.data[~length] == 1).all()
    aba, ab, ba, _, again = (set(columns_of(features, text)) for text in range(5))
    assert aba == again == ab | ba
    assert len(ab & ba) == 3  # both words and the length, but not the pair
    assert columns_of(features, 0) == columns_of(features, 4)


def test_pairs_do_not_reach_across_texts() -> None:
    apart = ngram_features(pa.array(["x y", "z"]))
    assert np.diff(apart.indptr).tolist() == [4, 2]


@given(st.lists(st.text("ab ", max_size=8), max_size=5))
def test_features_count_every_word_and_pair(texts: list[str]) -> None:
    features = ngram_features(pa.array(texts, pa.string()))
    lengths = [len(words(text)) for text in texts]
    assert np.diff(features.indptr).tolist() == [n + max(n - 1, 0) + 1 for n in lengths]
    np.testing.assert_allclose(
        features @ np.ones(features.shape[1]),
        [n + max(n - 1, 0) + n / 10 for n in lengths],
        atol=1e-9,
    )
