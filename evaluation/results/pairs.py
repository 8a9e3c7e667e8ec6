"""Reads results with their predictions, and checks that the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluation.results.breakdown import headline_rows
from evaluation.results.scores import compared
from evaluation.results.types import (
    AGAIN,
    PREDICTIONS,
    RESULTS,
    Metrics,
    Normalization,
    Results,
    read_predictions,
    read_results,
)
from kbprobe.arrays import Bools, Ints, run_starts
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


_FILLED = ("id", "question", "choices", "answer", "setup", "cluster")
"""Columns that every row has a value in."""
_OF_SCORED = ("correct", "margin", "probability", "tie")
"""Columns that every scored row has a value in, and no other row."""
_ROUNDOFF = 1e-5
"""Relative difference by which a picked score may be below the best, for float32 rounding."""


def read_pair(folder: Path) -> tuple[Results, pa.Table]:
    """Read the results and the predictions of a folder.

    What follows from the scores in the predictions is recomputed: which choice is picked, whether
    it is right, and how many are right.

    Raises:
        UsageError: one of the two is missing, damaged or edited, or they disagree.
    """
    results, predictions = read_results(folder), read_predictions(folder)
    problem = _damage(predictions) or _other_picks(predictions, results.metrics.normalization)
    if problem:
        raise UsageError(f"{folder / PREDICTIONS}: {problem}. {AGAIN}")
    if problem := _other_counts(results.metrics, predictions):
        raise UsageError(f"{folder}: {problem}: they are not of the same run. {AGAIN}")
    return results, predictions


def _damage(predictions: pa.Table) -> str:
    """Describe what cannot occur in the rows of any run; "" if there is nothing."""
    import pyarrow.compute as pc

    for name in _FILLED:
        if nulls := predictions[name].null_count:
            return f"the column {name!r} lacks {nulls:,} values"
    for name in ("choices", "scores", "tokens"):
        if single_chunk(predictions[name]).flatten().null_count:
            return f"a list in the column {name!r} lacks a value"
    scored = _mask(predictions["prediction"].is_valid())
    if (_mask(predictions["set_aside"].is_null()) != scored).any():
        return "the columns 'prediction' and 'set_aside' disagree about which rows are scored"
    for name in _OF_SCORED:
        if (_mask(predictions[name].is_valid()) != scored).any():
            return f"the columns 'prediction' and {name!r} disagree about which rows are scored"
    widths = _widths(predictions["choices"])
    for name in ("scores", "tokens"):
        if (_widths(predictions[name]) != np.where(scored, widths, 0)).any():
            return f"the column {name!r} has not one value for each choice of a scored row"
    for name in ("answer", "prediction"):
        index = to_numpy(pc.fill_null(predictions[name], 0))
        if ((index < 0) | (index >= widths)).any():
            return f"the column {name!r} names a choice that is not there"
    right = to_numpy(predictions["answer"]) == to_numpy(pc.fill_null(predictions["prediction"], -1))
    if (_mask(pc.fill_null(predictions["correct"], False)) != right).any():
        return "the column 'correct' is not whether 'prediction' is the 'answer'"
    return ""


def _other_picks(predictions: pa.Table, normalization: Normalization) -> str:
    """Describe picks that are not the choices with the best scores; "" if there are none."""
    import pyarrow.compute as pc

    scored = predictions.filter(pc.is_valid(predictions["prediction"]))
    raw, tokens = (to_numpy(single_chunk(scored[name]).flatten()) for name in ("scores", "tokens"))
    texts = single_chunk(scored["choices"]).flatten()
    if np.isnan(raw).any() or (tokens < 0).any():
        return "a score is not a number, or its number of tokens is negative"
    if not len(raw):
        return ""
    try:
        values = compared(raw.astype(np.float64), tokens, texts, normalization)
    except UsageError as error:
        return str(error)
    starts = run_starts(_widths(scored["scores"]))
    picked = values[starts[:-1] + to_numpy(scored["prediction"])]
    best = np.maximum.reduceat(values, starts[:-1])
    with np.errstate(invalid="ignore"):
        worse = picked < best - _ROUNDOFF * np.maximum(np.abs(best), 1.0)
    if worse.any():
        row = scored["id"][int(np.flatnonzero(worse)[0])].as_py()
        return f"the prediction of row {row} is not the choice with the best score"
    return ""


def _other_counts(metrics: Metrics, predictions: pa.Table) -> str:
    """Describe counts that differ between results and predictions; "" if there are none."""
    scored = predictions["correct"].drop_null()
    right = int(_mask(headline_rows(predictions)["correct"].drop_null()).sum())
    held = (predictions.num_rows, len(scored), right)
    accuracy = metrics.accuracy
    counted = (metrics.items, metrics.scored, round(accuracy.value * accuracy.n))
    if held == counted:
        return ""
    return (
        f"{RESULTS} counts {counted[0]:,} items, {counted[1]:,} scored and {counted[2]:,} right, "
        f"{PREDICTIONS} {held[0]:,}, {held[1]:,} and {held[2]:,}"
    )


def _mask(column: pa.ChunkedArray) -> Bools:
    return to_numpy(column.cast("uint8")).astype(np.bool_)


def _widths(lists: pa.ChunkedArray) -> Ints:
    import pyarrow.compute as pc

    return to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of McNemar's exact test from the discordant counts.

    >>> mcnemar(0, 0)
    1.0
    """
    from scipy.stats import binom

    fewer, both = min(only_first, only_second), only_first + only_second
    return min(2 * float(binom.cdf(fewer, both, 0.5)), 1.0)


def swap_clusters(difference: Ints) -> float:
    """Return the two-sided p of the exact randomisation test on clusters.

    If the two models were equal, swapping them in any cluster would be equally likely: the sign of
    each cluster's difference is a fair coin flip. All sign patterns are counted, not sampled.

    Args:
        difference: right answers of one model minus those of the other, shape [clusters].
    """
    from scipy.stats import binom

    sizes, counts = np.unique(np.abs(difference[difference != 0]), return_counts=True)
    total = int(sizes @ counts)
    # Probability of each sum over the clusters that keep their sign; the others are subtracted.
    chance = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        step = np.zeros(size * count + 1)
        step[::size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chance = np.convolve(chance, step)
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(float(chance[sums >= abs(int(difference.sum()))].sum()), 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for multiple testing (Holm, 1979); the order is kept.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []
