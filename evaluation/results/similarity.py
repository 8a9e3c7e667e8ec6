"""Accuracy beside that of the similarity baseline on the same rows (:mod:`kbprobe.similarity`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.results import intervals
from evaluation.results.breakdown import bools, cluster_codes, headline_rows
from evaluation.results.types import Metrics, Similarity
from kbprobe.audit.rows import has_constant_choices
from kbprobe.columns import plain, single_chunk, to_numpy
from kbprobe.format.manifest import MOST_SIMILAR
from kbprobe.similarity import similarities
from kbprobe.tokens import tokenise

if TYPE_CHECKING:
    import pyarrow as pa


def measure_similarity(predictions: pa.Table, seed: int) -> Similarity | None:
    """Estimate how often the choice most similar to the question is right, and the difference.

    Where several choices are equally similar, such as those without a known word, it is one of them
    at random. None if all rows choose among the same few answers, or if no row has a choice that is
    more similar than another: similarity says nothing about these.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        seed: the seed of the bootstrap.
    """
    scored = headline_rows(predictions)
    scored = scored.filter(scored["prediction"].is_valid())
    questions = single_chunk(scored["question"]).dictionary_encode()
    lists = single_chunk(scored["choices"])
    texts = plain(lists.flatten()).dictionary_encode()
    offsets = to_numpy(lists.offsets).astype(np.int64)
    widths = np.diff(offsets)
    column = np.arange(int(widths.max(initial=0)))
    shown = column < widths[:, None]
    choices = np.full(shown.shape, -1, dtype=np.int64)
    choices[shown] = to_numpy(texts.indices)
    if shown.all() and has_constant_choices(choices):
        return None
    shown_words, asked_words = tokenise(texts.dictionary, questions.dictionary)
    question = to_numpy(questions.indices).astype(np.int64)
    cosines = similarities(shown_words, asked_words, choices, question)
    best = cosines == cosines.max(axis=1, keepdims=True, initial=-np.inf)
    if (best == shown).all():
        return None
    drawn = np.where(best, np.random.default_rng(seed).random(best.shape), -1)
    similar = drawn.argmax(axis=1) == to_numpy(scored["answer"])
    right, cluster = bools(scored["correct"]), cluster_codes(scored)
    return Similarity(
        accuracy=intervals.accuracy(similar, cluster, seed),
        difference=intervals.paired_difference(similar, right, cluster, seed),
    )


def with_similarity(metrics: Metrics, similarity: Similarity) -> Metrics:
    """Return metrics with the similarity baseline of their own rows, in place of the audit's."""
    accuracy = similarity.accuracy
    ends = (accuracy.low, accuracy.high)
    changed: dict[str, Any] = {
        "similarity": similarity,
        "baselines": {**metrics.baselines, MOST_SIMILAR: accuracy.value},
        "baseline_intervals": {**metrics.baseline_intervals, MOST_SIMILAR: ends},
    }
    return metrics.model_copy(update=changed)
