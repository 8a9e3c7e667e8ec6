"""Rows that all have the same labels to choose from (``acceptability``, ``nli``).

In addition to accuracy, such rows get the usual metrics of classifiers, which do not reward a model
for preferring one label, and a confusion table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from evaluation.items.wordings import TaskWording
from evaluation.results import intervals
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.breakdown import bools, cluster_codes, drop_unscored
from evaluation.results.parts import shares
from evaluation.results.types import Estimate, Model, Results
from evaluation.results.words import interval, percent
from kbprobe.arrays import Floats, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.document import Part, Table, Text
from kbprobe.format.setups import LABELLED_SETUPS, SETUPS

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "labels"


class Statistic(Model):
    """A number that is not a share of the rows, with its 95% confidence interval."""

    value: float = Field(description="The number itself.")
    low: float | None = Field(
        description="Lower end of its 95% interval, by cluster bootstrap; null where fewer than 30 "
        "clusters hold a wrong row or fewer than 30 a right one, or no resample differs."
    )
    high: float | None = Field(description="Upper end; null as above.")


class LabelScores(Model):
    """One label: how its rows are answered."""

    name: str = Field(description="The label.")
    rows: int = Field(description="Scored rows that have it.")
    predicted: int = Field(description="Scored rows that the model gives it.")
    precision: float | None = Field(
        description="Share of the rows given it that have it; null where none is given it."
    )
    recall: Estimate | None = Field(
        description="Share of the rows that have it that are given it; null where none has it."
    )
    f1: float | None = Field(
        description="Harmonic mean of the two; null where no row has it or is given it."
    )
    given: dict[str, int] = Field(
        description="How many of its rows are given each label: its row of the confusion table."
    )


class Labels(Model):
    """Rows of labels: what classifiers are measured by."""

    setup: str = Field(description="acceptability or nli.")
    matthews_correlation: Statistic = Field(
        description="Correlation of labels and predictions, -1 to 1 (of several classes: Gorodkin, "
        "2004); 0 where all predictions, or all rows, have one label."
    )
    macro_f1: Statistic = Field(
        description="Mean of the labels' F1, of those that a row has or is given."
    )
    majority: str = Field(description="The label of most rows, the first of equals.")
    majority_accuracy: float = Field(description="Accuracy of always giving that label.")
    majority_macro_f1: float = Field(
        description="Macro-F1 of always giving that label; its Matthews correlation is 0."
    )
    labels: list[LabelScores] = Field(description="Each label, in the setup's order.")
    wording: str | None = Field(
        description="The text that a language model was asked with; null where a classifier read "
        "the row's own text."
    )
    words: dict[str, str] | None = Field(
        description="The word that stood for each label in it; null likewise."
    )


def measure_labels(
    predictions: pa.Table, setup: str, seed: int, asked: tuple[TaskWording, str] | None = None
) -> Labels:
    """Measure the predictions of rows of labels.

    Args:
        predictions: from :func:`evaluation.results.metrics.predictions_table`, with at least one
            scored row.
        setup: the setup of all rows.
        seed: the seed of the bootstrap.
        asked: the wording, and the setup into which it put the rows; None if the scorer read them
            as they are.
    """
    scored = drop_unscored(predictions)
    names = SETUPS[setup].labels
    gold, given = (_labels(scored, column, names) for column in ("answer", "prediction"))
    cluster, right = cluster_codes(scored), bools(scored["correct"])
    cells = gold * len(names) + given
    table = np.bincount(cells, minlength=len(names) ** 2).reshape(len(names), -1)

    def statistic(number: Any) -> Statistic:
        def of_totals(totals: Floats) -> Floats:
            return number(totals.reshape(-1, len(names), len(names)))  # type: ignore[no-any-return]

        bounds = intervals.of_counts(cells, table.size, right, cluster, of_totals, seed)
        low, high = bounds or (None, None)
        return Statistic(value=float(number(table.astype(np.float64))), low=low, high=high)

    sizes = table.sum(axis=1)
    majority = int(sizes.argmax())
    always = np.zeros(table.shape)
    always[:, majority] = sizes
    return Labels(
        setup=setup,
        matthews_correlation=statistic(matthews_correlation),
        macro_f1=statistic(macro_f1),
        majority=names[majority],
        majority_accuracy=float(sizes[majority] / sizes.sum()),
        majority_macro_f1=float(macro_f1(always)),
        labels=[
            LabelScores(
                name=name,
                rows=int(sizes[at]),
                predicted=int(table[:, at].sum()),
                precision=_share(table[at, at], table[:, at].sum()),
                recall=intervals.quick_accuracy(right[gold == at], cluster[gold == at])
                if sizes[at]
                else None,
                f1=_share(2 * table[at, at], sizes[at] + table[:, at].sum()),
                given=dict(zip(names, table[at].tolist(), strict=True)),
            )
            for at, name in enumerate(names)
        ],
        wording=None if asked is None else asked[0].templates[asked[1]],
        words=None if asked is None else dict(asked[0].words),
    )


def matthews_correlation(table: Floats) -> Floats:
    """Return the correlation of labels (axis -2) and predictions (axis -1) of confusion tables.

    For two classes as in Matthews (1975), for more as in Gorodkin (2004); 0 if either is constant.

    >>> float(matthews_correlation(np.array([[3.0, 1.0], [1.0, 3.0]])))
    0.5
    """
    rows, columns = table.sum(-1), table.sum(-2)
    total = table.sum((-1, -2))
    covariance = np.trace(table, axis1=-2, axis2=-1) * total - (rows * columns).sum(-1)
    spread = (total**2 - (rows**2).sum(-1)) * (total**2 - (columns**2).sum(-1))
    scale = np.sqrt(spread)
    found: Floats = np.divide(covariance, scale, out=np.zeros_like(scale), where=spread > 0)
    return found


def macro_f1(table: Floats) -> Floats:
    """Return the mean F1 over the labels that occur as gold or as prediction.

    >>> round(float(macro_f1(np.array([[3.0, 1.0], [0.0, 0.0]]))), 3)
    0.429
    """
    sums = table.sum(-1) + table.sum(-2)
    right = 2 * np.diagonal(table, axis1=-2, axis2=-1)
    f1 = np.divide(right, sums, out=np.zeros_like(sums), where=sums > 0)
    mean: Floats = f1.sum(-1) / (sums > 0).sum(-1)
    return mean


def _labels(scored: pa.Table, column: str, names: tuple[str, ...]) -> Ints:
    """Return the number of the label that each row's index in ``column`` refers to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    choices = single_chunk(scored["choices"])
    at = to_numpy(choices.offsets)[:-1] + to_numpy(single_chunk(scored[column]))
    texts = choices.values.take(pa.array(at))
    return to_numpy(pc.index_in(texts, pa.array(names))).astype(np.int64)


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


def labels_of(results: Results) -> Labels | None:
    """Return the block on labels in the results; None if rows have their own choices."""
    return results.analysis(NAME, Labels)


def setup_of(predictions: pa.Table) -> str | None:
    """Return the setup of labels that all rows share, if they do."""
    setups = predictions["setup"].unique().to_pylist()
    return setups[0] if len(setups) == 1 and setups[0] in LABELLED_SETUPS else None


def sentences(block: Labels) -> list[str]:
    """Summarise the block in words: ``Matthews correlation 0.412 (0.301 to 0.520)``."""
    return [
        f"Matthews correlation {_spelled(block.matthews_correlation)}",
        f"macro-F1 {_spelled(block.macro_f1)}",
        f"always {block.majority}: {100 * block.majority_accuracy:.1f}",
    ]


def _parts(files: ResultFiles, block: Labels) -> list[Part]:
    metrics = files.results.metrics
    correlation, f1 = block.matthews_correlation, block.macro_f1
    majority, chance = percent(block.majority_accuracy), percent(metrics.chance)
    accuracy = (percent(metrics.accuracy.value), interval(metrics.accuracy))
    head = ("number", "value", "95% interval", f"always “{block.majority}”", "guessing evenly")
    rows = (
        ("accuracy", *accuracy, majority, chance),
        ("Matthews correlation", f"{correlation.value:.3f}", _interval(correlation), "0", "0"),
        ("macro-F1", f"{f1.value:.3f}", _interval(f1), f"{block.majority_macro_f1:.3f}", "–"),
    )
    parts: list[Part] = [Table(head, rows, "Beside what needs no text.")]
    recalls = tuple((one.name, one.recall) for one in block.labels if one.recall is not None)
    caption = "Rows of each label that are given it. The dashed line is chance."
    parts += [shares("label", caption, recalls, metrics.chance), _confusion(block)]
    if block.wording is not None and block.words is not None:
        words = ", ".join(f"“{word}” for {label}" for label, word in block.words.items())
        parts.append(
            Text(f"Asked as: {block.wording} The words that stand for labels: {words}.", note=True)
        )
    return parts


def _confusion(block: Labels) -> Table:
    names = [one.name for one in block.labels]
    return Table(
        ("label", *names, "all", "precision", "F1"),
        [
            (
                label.name,
                *(label.given[name] for name in names),
                label.rows,
                label.precision,
                "–" if label.f1 is None else f"{label.f1:.3f}",
            )
            for label in block.labels
        ],
        "Confusion table: rows by their label (down) and by the one that the model gives (across)",
    )


def _spelled(number: Statistic) -> str:
    held = "" if number.low is None else f" ({_interval(number)})"
    return f"{number.value:.3f}{held}"


def _interval(number: Statistic) -> str:
    if number.low is None or number.high is None:
        return "not known"
    return f"{number.low:.3f} to {number.high:.3f}"


ANALYSIS = Analysis(NAME, "Labels", "Labels: which are distinguished?", _parts, Labels)
