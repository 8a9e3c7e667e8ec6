"""Accuracy beside that of similarity baselines on the same rows.

One is always measured: that of the static encoder which comes with kbprobe
(:mod:`kbprobe.similarity`); another one where an encoder was named with ``--similarity``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.items.types import ProbeSplit
from evaluation.names import model_name
from evaluation.results import intervals
from evaluation.results.breakdown import (
    NEAR_AND_RANDOM,
    bools,
    cluster_codes,
    drop_unscored,
    headline_rows,
)
from evaluation.results.metrics import right_by
from evaluation.results.types import METRIC_OF, Estimate, Metrics, Normalization, Similarity
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.rows import has_constant_choices
from kbprobe.columns import plain, single_chunk, to_numpy
from kbprobe.format.manifest import MOST_SIMILAR, EncoderDigest
from kbprobe.similarity import similarities
from kbprobe.tokens import tokenise

if TYPE_CHECKING:
    import pyarrow as pa


class EncoderScores(NamedTuple):
    """The similarity of each choice and its question by an encoder.

    Attributes:
        encoder: the model.
        scores: of all choices of the rows, one row after another; nan where none was computed.
    """

    encoder: EncoderDigest
    scores: Floats


class MostSimilar(NamedTuple):
    """A similarity baseline on some rows: its choices, whether they are right, and how many are."""

    picks: Ints
    right: Bools
    accuracy: Estimate


class _Choices(NamedTuple):
    """The choices of some rows as a table, of as many columns as the widest row has choices.

    Attributes:
        shown: where there is a choice.
        texts: the numbers of the texts, -1 for none; ``distinct`` has the texts.
    """

    shown: Bools
    texts: Ints
    distinct: pa.Array


def similarity_name(encoder: str | None) -> str:
    """Return the baseline's name among others; None: by the encoder that comes with kbprobe."""
    return MOST_SIMILAR if encoder is None else f"{MOST_SIMILAR}, by {model_name(encoder)}"


def measure_similarity(
    rows: ProbeSplit | None,
    predictions: pa.Table,
    seed: int,
    encoder: EncoderScores | None = None,
    normalizations: Sequence[Normalization] = (),
) -> dict[str, Similarity]:
    """Estimate how often the choice most similar to the question is right, and the difference.

    Where several choices are equally similar, such as those without a known word, it is one of them
    at random. Nothing is measured if all rows choose among the same few answers, or if no row has
    a choice that is more similar than another: similarity says nothing about these.

    What does not depend on the model is measured once for all runs that share their rows.

    Args:
        rows: the rows that predictions were made of; None if they are not at hand, and without a
            further encoder.
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        seed: the seed of the bootstrap.
        encoder: the similarities of a further encoder, for all choices of the rows.
        normalizations: those by which the difference is measured as well.

    Returns:
        Each by its name among the baselines.
    """
    numbered = predictions.append_column("row", [np.arange(predictions.num_rows)])
    scored = headline_rows(numbered)
    scored = drop_unscored(scored)
    # The centre of the texts is that of the rows which count: those that were scored.
    counted = to_numpy(scored["row"])
    found: dict[str, Similarity] = {}
    measured = {} if rows is None else rows.measured
    for own in (None, encoder) if encoder else (None,):
        key = own and own.encoder.sha256, seed, counted.tobytes()
        if key not in measured:
            measured[key] = _most_similar(rows, scored, seed, own)
        if (baseline := measured[key]) is not None:
            cluster = cluster_codes(scored)
            right = bools(scored["correct"])
            name = similarity_name(own and own.encoder.name)
            less = baseline.right
            near, random = (part(scored) for part in NEAR_AND_RANDOM.values())
            both = near.size > 0 and random.size > 0
            found[name] = Similarity(
                name=name,
                accuracy=baseline.accuracy,
                difference=intervals.paired_difference(less, right, cluster, seed),
                near_difference=intervals.paired_difference(
                    less[near], right[near], cluster[near], seed
                )
                if both
                else None,
                differences={
                    METRIC_OF[how]: intervals.paired_difference(
                        less, right_by(scored, how), cluster, seed
                    )
                    for how in normalizations
                },
                encoder=own and own.encoder,
            )
    return found


def _most_similar(
    rows: ProbeSplit | None, scored: pa.Table, seed: int, encoder: EncoderScores | None
) -> MostSimilar | None:
    """Measure the baseline of an encoder on some rows; None where similarity says nothing."""
    choices = _choices(scored)
    if _are_constant(rows, choices):
        return None
    if encoder is None or rows is None:
        cosines = _static(scored, choices)
    else:
        starts, counted = rows.items.starts, to_numpy(scored["row"])
        places = starts[counted][:, None] + np.arange(choices.shown.shape[1])
        cosines = encoder.scores[np.where(choices.shown, places, 0)]
        cosines = np.where(choices.shown, np.nan_to_num(cosines, nan=-np.inf), -np.inf)
    best = choices.shown & (cosines == cosines.max(axis=1, keepdims=True, initial=-np.inf))
    if (best == choices.shown).all():
        return None
    picks = np.where(best, np.random.default_rng(seed).random(best.shape), -1).argmax(axis=1)
    right = np.asarray(picks == to_numpy(scored["answer"]))
    return MostSimilar(picks, right, intervals.accuracy(right, cluster_codes(scored), seed))


def similarity_answers(predictions: pa.Table, seed: int) -> pa.Table | None:
    """Return predictions of the choice most similar to the question, of the rows that were scored.

    They are by the static encoder which comes with kbprobe, like those of
    :func:`measure_similarity`. Scores and what follows from them stay those of the run.

    Args:
        predictions: those of a run, of the rows that its headline is on.
        seed: the seed by which one of several equally similar choices is drawn.

    Returns:
        None where similarity says nothing about the rows.
    """
    import pyarrow as pa

    valid = bools(predictions["prediction"].is_valid())
    baseline = _most_similar(None, predictions.filter(pa.array(valid)), seed, None)
    if baseline is None:
        return None
    for name, values in (("prediction", baseline.picks), ("correct", baseline.right)):
        every = np.zeros(valid.size, dtype=values.dtype)
        every[valid] = values
        column = predictions.schema.get_field_index(name)
        field = predictions.schema.field(name)
        predictions = predictions.set_column(
            column, field, pa.array(every, field.type, mask=~valid)
        )
    return predictions


def _choices(scored: pa.Table) -> _Choices:
    lists = single_chunk(scored["choices"])
    texts = plain(lists.flatten()).dictionary_encode()
    widths = np.diff(to_numpy(lists.offsets).astype(np.int64))
    shown = np.arange(int(widths.max(initial=0))) < widths[:, None]
    choices = np.full(shown.shape, -1, dtype=np.int64)
    choices[shown] = to_numpy(texts.indices)
    return _Choices(shown, choices, texts.dictionary)


def _are_constant(rows: ProbeSplit | None, choices: _Choices) -> bool:
    """Return whether all rows of the probe choose among the same few answers.

    Few rows may do so by chance: what the audit of the whole probe found takes precedence.
    """
    audit = rows and rows.manifest and rows.manifest.audit
    if audit and MOST_SIMILAR in audit.baselines:
        return False
    return bool(choices.shown.all()) and has_constant_choices(choices.texts)


def _static(scored: pa.Table, choices: _Choices) -> Floats:
    questions = single_chunk(scored["question"]).dictionary_encode()
    shown_words, asked_words = tokenise(choices.distinct, questions.dictionary)
    question = to_numpy(questions.indices).astype(np.int64)
    return similarities(shown_words, asked_words, choices.texts, question)


def with_similarity(metrics: Metrics, found: Mapping[str, Similarity]) -> Metrics:
    """Return metrics with the similarity baselines of their own rows, in place of the audit's."""

    def others(baselines: Mapping[str, Any]) -> dict[str, Any]:
        return {name: own for name, own in baselines.items() if name != MOST_SIMILAR}

    accuracies = {name: one.accuracy for name, one in found.items()}
    strongest = max(found.values(), key=lambda one: one.accuracy.value, default=None)
    changed: dict[str, Any] = {
        "similarity": strongest,
        "baselines": {
            **others(metrics.baselines),
            **{name: own.value for name, own in accuracies.items()},
        },
        "baseline_intervals": {
            **others(metrics.baseline_intervals),
            **{name: (own.low, own.high) for name, own in accuracies.items()},
        },
    }
    return metrics.model_copy(update=changed)
