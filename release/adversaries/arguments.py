"""Single arguments of the question, where all rows choose among the same few answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Floats
from release.adversaries.models import boosted
from release.adversaries.types import Guesses, Rows

MOST_SETS = 4
"""Sets of choices that a probe may have whose answers are the same few in all rows."""


def arguments(rows: Rows) -> Iterator[Guesses]:
    """Predict the answer's text from each argument alone; nothing where choices differ by row."""
    sets = np.unique(np.sort(rows.choices[rows.used], axis=1), axis=0).shape[0]
    if sets > MOST_SETS or 2 * sets > rows.used.size or np.unique(rows.gold[rows.train]).size < 2:
        return
    for name, values in rows.arguments.items():
        yield Guesses(f"argument:{name}", _scores(rows, [values[row] for row in rows.used]))


def _scores(rows: Rows, values: list[str]) -> Floats:
    """Average what a linear model of character n-grams says, and boosting over numbers."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    gold = rows.gold[rows.train]
    ngrams = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4)).fit_transform(values)
    model = LogisticRegression(C=3.0, max_iter=500).fit(ngrams[: gold.size], gold)
    lengths = np.array([len(value) for value in values], dtype=np.float64)
    frequencies = zipf_frequencies(values, rows.word_list)
    numbers = np.stack([lengths, frequencies, np.array([_number(one) for one in values])], axis=1)
    answers, chances = boosted(numbers, gold, iterations=60)
    found = np.zeros((rows.scored.size, len(rows.texts)))
    found[:, answers] = (model.predict_proba(ngrams[gold.size :]) + chances) / 2
    return found[np.arange(rows.scored.size)[:, None], rows.choices[rows.scored]]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
