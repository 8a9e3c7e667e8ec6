"""How accuracy is related to the overlap of vocabularies, for rows of labels (Kim et al. 2019).

A model may judge a pair by the words that the hypothesis shares with its premise, and a fitted
classifier may be right only if it has seen the words. A linear regression of whether a row is right
on both overlaps, with the gold label held constant and errors clustered, estimates how accuracy
varies with each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from evaluation.items.types import Item
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import bools, cluster_codes, drop_unscored
from evaluation.results.intervals import FEWEST
from evaluation.results.types import Estimate, Model
from evaluation.results.words import p_value, percent, points
from kbprobe.columns import to_numpy
from kbprobe.document import Table

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "vocabulary"
METHOD = "least squares, errors by cluster"
STEP = 0.1
"""The difference in overlap that slopes refer to."""

LEAST_VARIANCE = 1e-12
"""The variance of a slope below which it is what rounding left."""

HYPOTHESIS = "words of the hypothesis that are in the premise"
TRAINING = "words of the row that are in the rows fitted on"
HEAD = ("words", "mean share", "points per 10 points", "95% interval", "p")
CAPTION = (
    "Accuracy and shared words: linear regression of whether a row is right, with the gold label "
    "held constant."
)

_WORD = re.compile(r"\w+(?:['’]\w+)?")


class Slope(Model):
    """How accuracy goes with one overlap of words, the other and the gold label held constant."""

    what: str = Field(description="Which words, and where they occur as well.")
    mean: float = Field(description="Mean share of a row's words that do.")
    points: Estimate = Field(
        description="Accuracy in points for each 10 points more of that share: the coefficient of "
        "a linear regression over the rows."
    )
    p_value: float = Field(description="Of the hypothesis that it is 0.")


class Vocabulary(Model):
    """Rows of labels: accuracy and the overlap of vocabularies."""

    slopes: list[Slope] = Field(
        description="Of the hypothesis and its premise, and of the row and the rows fitted on."
    )


def words_of(items: Iterable[Item]) -> set[str]:
    """Return the words of some items, in lower case."""
    return {word for item in items for word in _words(f"{item.premise} {item.question}")}


def measure_vocabulary(parts: Sequence[tuple[pa.Table, Collection[str]]]) -> Vocabulary | None:
    """Regress whether rows are right on the overlap of vocabularies.

    Args:
        parts: predictions, each with the words of the training rows, none if nothing was fitted.
            The folds of a cross-validation are separate parts.

    Returns:
        None if no overlap varies, there are fewer than 30 clusters, or nothing is left to explain:
        the gold label alone decides whether a row is right, as where all answers are one label, or
        all clusters have the same part of their rows right.
    """
    import pyarrow as pa
    from statsmodels.regression.linear_model import OLS

    tables = [drop_unscored(table) for table, _ in parts]
    shares: dict[str, list[float]] = {HYPOTHESIS: [], TRAINING: []}
    for table, (_, known) in zip(tables, parts, strict=True):
        texts = zip(_premises(table), table["question"].to_pylist(), strict=True)
        for premise, question in texts:
            asked, given = _words(question), _words(premise)
            shares[HYPOTHESIS].append(_share(asked, set(given)))
            shares[TRAINING].append(_share(given + asked, known))
    rows = pa.concat_tables(tables)
    right, cluster = bools(rows["correct"]), cluster_codes(rows)
    columns = {name: np.array(values) for name, values in shares.items() if np.ptp(values) > 0}
    if not columns or np.unique(cluster).size < FEWEST:
        return None
    labels = to_numpy(rows["answer"])
    gold = labels[:, None] == np.unique(labels)  # one of them is always 1: the constant
    table = np.column_stack([*(values / STEP for values in columns.values()), gold])
    fitted = OLS(right.astype(np.float64), table).fit(
        cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True
    )
    if np.diag(fitted.cov_params())[: len(columns)].min() < LEAST_VARIANCE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):  # the labels' own may have none
        intervals, p_values = fitted.conf_int(), fitted.pvalues
    slopes = []
    for at, (name, values) in enumerate(columns.items()):
        value, (low, high) = float(fitted.params[at]), intervals[at].tolist()
        ends = {"value": 100 * value, "low": 100 * low, "high": 100 * high}
        slopes.append(
            Slope(
                what=name,
                mean=float(values.mean()),
                points=Estimate(**ends, n=right.size, method=METHOD),
                p_value=float(p_values[at]),
            )
        )
    return Vocabulary(slopes=slopes)


def measure_folds(tables: Sequence[pa.Table], folds: Sequence[int], *, fitted: bool) -> list[Slope]:
    """Regress whether rows are right on the overlap of vocabularies, in a cross-validation.

    Args:
        tables: the predictions of each run.
        folds: the fold that each of them is about.
        fitted: whether the models were fitted on the other folds.
    """
    words: dict[int, set[str]] = {}
    for fold, table in zip(folds, tables, strict=True):
        texts = zip(_premises(table), table["question"].to_pylist(), strict=True)
        words[fold] = {word for pair in texts for word in _words(" ".join(pair))}
    known = {
        fold: set().union(*(words[other] for other in words if fitted and other != fold))
        for fold in words
    }
    parts = [(table, known[fold]) for fold, table in zip(folds, tables, strict=True)]
    found = measure_vocabulary(parts)
    return [] if found is None else found.slopes


def table_of(slopes: Sequence[Slope]) -> tuple[tuple[str, ...], ...]:
    """Return the slopes as a table of texts with the heading :data:`HEAD`."""
    return tuple(
        (
            one.what,
            percent(one.mean),
            points(one.points.value),
            f"{points(one.points.low)} to {points(one.points.high)}",
            p_value(one.p_value),
        )
        for one in slopes
    )


def _parts(_files: ResultFiles, block: Vocabulary) -> list[Table]:
    return [Table(HEAD, table_of(block.slopes), CAPTION)]


def _share(words: Sequence[str], known: Collection[str]) -> float:
    return sum(word in known for word in words) / max(len(words), 1)


def _premises(table: pa.Table) -> list[str]:
    if "premise" not in table.column_names:
        return [""] * len(table)
    return [premise or "" for premise in table["premise"].to_pylist()]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


ANALYSIS = Analysis(
    NAME, "Vocabulary", "Vocabulary: does accuracy go with shared words?", _parts, Vocabulary
)
