"""Adversaries that see part of the question: single arguments, or features of a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Floats, Ints
from release.adversaries.models import boosted
from release.adversaries.types import Guesses, Rows

MOST_SETS = 4
"""Maximum number of distinct sets of choices in a probe with a few fixed answers."""


def arguments(rows: Rows) -> Iterator[Guesses]:
    """Predict the answer's text from each argument alone; nothing where choices differ by row."""
    sets = np.unique(np.sort(rows.choices[rows.used], axis=1), axis=0).shape[0]
    if sets > MOST_SETS or 2 * sets > rows.used.size or np.unique(rows.gold[rows.train]).size < 2:
        return
    for name, values in rows.arguments.items():
        yield Guesses(f"argument:{name}", _of_argument(rows, [values[row] for row in rows.used]))


def _of_argument(rows: Rows, values: list[str]) -> Floats:
    """Average the predictions of a linear model of n-grams and of boosting over numbers."""
    gold = rows.gold[rows.train]
    answers, said = _linear(values, gold, analyzer="char_wb", ngram_range=(1, 4))
    lengths = np.array([len(value) for value in values], dtype=np.float64)
    frequencies = zipf_frequencies(values, rows.word_list)
    numbers = np.stack([lengths, frequencies, np.array([_number(one) for one in values])], axis=1)
    _, chances = boosted(numbers, gold, iterations=60)
    return _laid_out(rows, answers, (said + chances) / 2)


def _linear(texts: list[str], gold: Ints, **ngrams: Any) -> tuple[Ints, Floats]:
    """Fit a linear model of n-grams on the first texts; predict the others.

    Returns:
        The classes, and the probability of each for the other texts, (other texts, classes).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    features = TfidfVectorizer(**ngrams).fit_transform(texts)
    model = LogisticRegression(C=3.0, max_iter=500).fit(features[: gold.size], gold)
    return model.classes_, model.predict_proba(features[gold.size :])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def sentences(rows: Rows) -> Iterator[Guesses]:
    """Predict the answer from parts of the sentence; nothing where rows ask something else."""
    if not rows.sentences or np.unique(rows.gold[rows.train]).size < 2:
        return
    used = [rows.sentences[row] for row in rows.used]
    lengths = [[len(text), len(text.split()), len(text) / len(text.split())] for text in used]
    yield Guesses("sentence:length", _of_numbers(rows, np.array(lengths)))
    seen = rows.concept[rows.used].astype(np.float64)
    yield Guesses("sentence:document", _of_numbers(rows, np.stack([seen, _shown(rows)], axis=1)))
    for name, texts in rows.arguments.items():
        places = [texts[row] for row in rows.used]
        answers, chances = _linear(
            places, rows.gold[rows.train], token_pattern=r"\S+", ngram_range=(1, 3)
        )
        yield Guesses(f"place:{name} n-grams", _laid_out(rows, answers, chances))


def _shown(rows: Rows) -> Floats:
    """How many rows of its split are from a row's document."""
    keys = rows.concept * 2 + rows.is_train
    _, local, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[local][rows.used].astype(np.float64)


def _of_numbers(rows: Rows, features: Floats) -> Floats:
    answers, chances = boosted(features, rows.gold[rows.train], iterations=60)
    return _laid_out(rows, answers, chances)


def _laid_out(rows: Rows, answers: Ints, chances: Floats) -> Floats:
    """Return the scores of each scored row's choices, given those of the answers' texts."""
    found = np.zeros((rows.scored.size, len(rows.texts)))
    found[:, answers] = chances
    return np.asarray(found[np.arange(rows.scored.size)[:, None], rows.choices[rows.scored]])
