"""What the choices mean, and how that differs from the row's other choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from release.adversaries.models import gold_scores, others_mean, reduced
from release.adversaries.types import Guesses, Rows


def meaning(rows: Rows, encoder: str = "") -> Guesses:
    """Gradient boosting over a vector of each choice, as such and less the mean of the others.

    Args:
        rows: what to train on and what to score.
        encoder: a model of transformers whose mean-pooled vectors are taken; "": TF-IDF of words
            and character n-grams. Either is reduced to a few dimensions (SVD).
    """
    texts, codes = rows.used_choices
    if encoder:
        from release.adversaries.encoder import encode

        vectors = reduced(encode(texts, encoder))
    else:
        vectors = reduced(_tfidf(rows))
    shown = np.where((codes >= 0)[:, :, None], vectors[codes], np.float32(np.nan))
    features = np.concatenate([shown, shown - others_mean(shown)], axis=2)
    return Guesses("meaning", gold_scores(rows, features))


def _tfidf(rows: Rows) -> Any:
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=r"\w+", max_features=30_000, dtype=np.float32)
    parts = [words.fit_transform(rows.used_choices[0]), rows.character_ngrams]
    return hstack(parts, format="csr")
