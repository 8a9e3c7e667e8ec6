"""What of a sentence is seen without reading it, where rows ask whether it is acceptable.

Its length, the document that it is from, and the words at the place that may have been changed: the
question's arguments, as they stand in the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats
from release.adversaries.models import boosted
from release.adversaries.types import Guesses, Rows

NGRAMS = (1, 3)


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
        yield Guesses(f"place:{name} n-grams", _of_words(rows, places))


def _shown(rows: Rows) -> Floats:
    """How many rows of its split are from a row's document."""
    keys = rows.concept * 2 + rows.is_train
    _, local, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[local][rows.used].astype(np.float64)


def _of_numbers(rows: Rows, features: Floats) -> Floats:
    answers, chances = boosted(features, rows.gold[rows.train], iterations=60)
    return _laid_out(rows, answers, chances)


def _of_words(rows: Rows, texts: list[str]) -> Floats:
    """Return what a linear model of runs of up to three words says."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    gold = rows.gold[rows.train]
    ngrams = TfidfVectorizer(token_pattern=r"\S+", ngram_range=NGRAMS).fit_transform(texts)
    model = LogisticRegression(C=3.0, max_iter=500).fit(ngrams[: gold.size], gold)
    return _laid_out(rows, model.classes_, model.predict_proba(ngrams[gold.size :]))


def _laid_out(rows: Rows, answers: Floats, chances: Floats) -> Floats:
    """Return the scores of each scored row's choices, given those of the answers' texts."""
    found = np.zeros((rows.scored.size, len(rows.texts)))
    found[:, answers] = chances
    return np.asarray(found[np.arange(rows.scored.size)[:, None], rows.choices[rows.scored]])
