"""Which answers a model prefers in general: the share of each, and the effect of word frequency.

oLMpics finds that *often* and *rarely* are given in less than 1% of the statements on frequency,
and relates answers to how frequent the words are. None of this is stored in ``results.json``: it
is computed from the predictions, which hold the frequencies of a corpus that was named
(``--unigrams``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.analyses.labels import setup_of
from evaluation.results.breakdown import KNOWN, bools, drop_unscored
from evaluation.results.words import coefficient, percent
from kbprobe.arrays import Floats, Ints, run_starts
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.document import Part, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ANSWERS = 10
"""Maximum number of distinct answers; if there are more, rows have their own choices."""


class AnswerShare(NamedTuple):
    """One answer: the shares of rows in which it is right, given, and given when right."""

    answer: str
    right: float
    given: float
    recall: float | None


FREQUENCIES = {"choice_frequency": "list<item: float>", "word_frequency": "float"}
"""Columns of predictions, with ``--unigrams``: Arrow types by name."""


class FrequencyOfPicks(NamedTuple):
    """How answers are related to the frequency of choices.

    Attributes:
        correlation: Spearman's correlation of scores and frequency, after subtracting the means of
            each row.
        accuracy: the same of whether a row is right and its gold's frequency, over rows; None if
            either is the same in all.
        given, right: shares of rows in which the most frequent choice is given, and right.
        rows: how many rows these are.
    """

    correlation: float
    accuracy: float | None
    given: float
    right: float
    rows: int


def answer_shares(predictions: pa.Table) -> list[AnswerShare]:
    """Return the share of each answer; empty unless all rows have the same few choices."""
    scored = drop_unscored(predictions)
    names, code, starts = _choices(scored)
    width = np.diff(starts)
    if not len(scored) or len(names) > MOST_ANSWERS or (width != len(names)).any():
        return []
    gold, given = (code[starts[:-1] + to_numpy(scored[name])] for name in ("answer", "prediction"))
    return [
        AnswerShare(
            name,
            float((gold == at).mean()),
            float((given == at).mean()),
            float((given[gold == at] == at).mean()) if (gold == at).any() else None,
        )
        for at, name in enumerate(names)
    ]


def with_frequencies(predictions: pa.Table, inverse: Mapping[str, float]) -> pa.Table:
    """Add the Zipf frequency of each choice and of the word asked about, 0 for unknown words.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`.
        inverse: one over the share of each word.
    """
    import pyarrow as pa

    from kb_cache.frequency import zipf_scale

    names, code, starts = _choices(predictions)
    frequency = zipf_scale(names, inverse).astype(np.float32)[code]
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(frequency))
    predictions = predictions.append_column("choice_frequency", lists)
    if "surface_form" not in predictions.column_names:
        return predictions
    words = single_chunk(predictions["surface_form"])
    zipf = zipf_scale([word or "" for word in words.to_pylist()], inverse).astype(np.float32)
    column = pa.array(zipf, mask=~bools(words.is_valid()))
    return predictions.append_column("word_frequency", column)


def frequency_of_picks(predictions: pa.Table) -> FrequencyOfPicks | None:
    """Relate answers to the frequency of choices; None if it is unknown, or the same for all."""
    scored = drop_unscored(predictions)
    names, code, starts = _choices(scored)
    if own := "choice_frequency" in scored.column_names:
        frequency = to_numpy(single_chunk(scored["choice_frequency"]).flatten()).astype(np.float64)
    else:
        from kb_cache.frequency import zipf_frequencies

        frequency = zipf_frequencies(names)[code] if names else np.zeros(0)
    scores = to_numpy(single_chunk(scored["scores"]).flatten()).astype(np.float64)
    row = np.repeat(np.arange(len(scored)), np.diff(starts))
    apart = np.ptp(frequency) > 0 if frequency.size else False
    # A word that wordfreq does not list may be frequent; one that a corpus lacks is not.
    known = own or (frequency.size and (frequency > 0).mean() >= KNOWN)
    if not apart or not known or not np.isfinite(scores).all():
        return None
    centred = [
        values - (np.bincount(row, values) / np.bincount(row))[row]
        for values in (frequency, scores)
    ]
    if not all(np.ptp(values) for values in centred):
        return None
    gold, right = frequency[starts[:-1] + to_numpy(scored["answer"])], bools(scored["correct"])
    accuracy = None
    if np.ptp(gold) and 0 < right.sum() < right.size:
        accuracy = _rank_correlation(gold, right.astype(np.float64))
    highest = np.maximum.reduceat(frequency, starts[:-1])[row]
    frequent = frequency == highest
    ties = np.bincount(row, frequent)

    def share(name: str) -> float:
        return float((frequent[starts[:-1] + to_numpy(scored[name])] / ties).mean())

    correlation = _rank_correlation(*centred)
    return FrequencyOfPicks(
        correlation, accuracy, share("prediction"), share("answer"), len(scored)
    )


def _rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's correlation.

    scipy.stats has it, and takes longer to import than a page to make.
    """
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value, equal ones their mean."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[code])


def _parts(files: ResultFiles) -> list[Part]:
    parts: list[Part] = []
    # Rows of labels have a confusion table.
    if setup_of(files.predictions) is None and (shares := answer_shares(files.predictions)):
        head = ("answer", "right in", "given in", "given where right")
        caption = "The share of each answer, of all rows scored."
        parts.append(Table(head, [tuple(share) for share in shares], caption))
    if (found := frequency_of_picks(files.predictions)) is not None:
        corpus = files.results.scoring.options.get("unigrams")
        source = (
            "in English (Zipf scale, wordfreq)" if corpus is None else f"in {Path(corpus).name}"
        )
        text = (
            f"Within rows, scores and the frequency of choices {source} correlate by "
            f"{coefficient(found.correlation)} (Spearman). The most frequent choice is given in "
            f"{percent(found.given)} of the rows, and right in {percent(found.right)}."
        )
        if found.accuracy is not None:
            text += (
                f" Over the {found.rows:,} rows, whether the answer is right and how frequent the "
                f"right one is correlate by {coefficient(found.accuracy)}."
            )
        parts.append(Text(text))
    return parts


def _choices(scored: pa.Table) -> tuple[list[str], Ints, Ints]:
    """Return the sorted distinct choices, the index of each choice, and where each row starts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = single_chunk(scored["choices"])
    texts = column.flatten()
    names = sorted(texts.unique().to_pylist())
    code = to_numpy(pc.index_in(texts, pa.array(names, pa.string()))).astype(np.int64)
    return names, code, run_starts(to_numpy(pc.list_value_length(column)))


ANALYSIS = Analysis(
    "answers",
    "Answers",
    "Answers: which are given, whatever is asked?",
    _parts,
    columns=FREQUENCIES,
)
