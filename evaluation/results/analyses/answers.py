"""Which answers a model prefers in general: the share of each, and the effect of word frequency.

oLMpics finds that *often* and *rarely* are given in less than 1% of the statements on frequency,
and relates scores to how frequent the words are. None of this is stored in ``results.json``: it is
computed from the predictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.analyses.labels import setup_of
from evaluation.results.breakdown import KNOWN
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


class FrequencyOfPicks(NamedTuple):
    """How scores are related to the frequency of choices in English, within rows.

    Attributes:
        correlation: Spearman's correlation of the two, after subtracting the means of each row.
        given, right: shares of rows in which the most frequent choice is given, and right.
    """

    correlation: float
    given: float
    right: float


def answer_shares(predictions: pa.Table) -> list[AnswerShare]:
    """Return the share of each answer; empty unless all rows have the same few choices."""
    scored = predictions.filter(predictions["prediction"].is_valid())
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


def frequency_of_picks(predictions: pa.Table) -> FrequencyOfPicks | None:
    """Relate scores to the frequency of choices; None if it is unknown, or the same for all."""
    scored = predictions.filter(predictions["prediction"].is_valid())
    names, code, starts = _choices(scored)
    from kb_cache.frequency import zipf_frequencies

    frequency = zipf_frequencies(names)[code] if names else np.zeros(0)
    scores = to_numpy(single_chunk(scored["scores"]).flatten()).astype(np.float64)
    row = np.repeat(np.arange(len(scored)), np.diff(starts))
    apart = np.ptp(frequency) > 0 if frequency.size else False
    if not apart or (frequency > 0).mean() < KNOWN or not np.isfinite(scores).all():
        return None
    centred = [
        values - (np.bincount(row, values) / np.bincount(row))[row]
        for values in (frequency, scores)
    ]
    if not all(np.ptp(values) for values in centred):
        return None
    highest = np.maximum.reduceat(frequency, starts[:-1])[row]
    frequent = frequency == highest
    ties = np.bincount(row, frequent)

    def share(name: str) -> float:
        return float((frequent[starts[:-1] + to_numpy(scored[name])] / ties).mean())

    # scipy.stats has Spearman's correlation, and takes longer to import than a page to make.
    correlation = float(np.corrcoef(*map(_ranks, centred))[0, 1])
    return FrequencyOfPicks(correlation, share("prediction"), share("answer"))


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
        text = (
            "Within rows, scores and the frequency of choices in English (Zipf scale, wordfreq) "
            f"correlate by {coefficient(found.correlation)} (Spearman). The most frequent choice "
            f"is given in {percent(found.given)} of the rows, and right in {percent(found.right)}."
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


ANALYSIS = Analysis("answers", "Answers", "Answers: which are given, whatever is asked?", _parts)
