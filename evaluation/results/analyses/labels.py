"""Rows that all have the same labels to choose from (``acceptability``, ``nli``).

In addition to accuracy, such rows get the usual metrics of classifiers, which do not reward a model
for preferring one label, and a confusion table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from evaluation.results.analyses.base import (
    Analysis,
    Grid,
    Part,
    ResultFiles,
    Shares,
    Text,
)
from evaluation.results.types import Estimate, Model, Results
from evaluation.results.words import interval, percent
from kbprobe.format.setups import LABELLED_SETUPS

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
    parts: list[Part] = [Grid("Beside what needs no text.", head, rows)]
    recalls = tuple((one.name, one.recall) for one in block.labels if one.recall is not None)
    caption = "Rows of each label that are given it. The dashed line is chance."
    parts += [Shares("label", caption, recalls), _confusion(block)]
    if block.wording is not None and block.words is not None:
        words = ", ".join(f"“{word}” for {label}" for label, word in block.words.items())
        parts.append(
            Text(f"Asked as: {block.wording} The words that stand for labels: {words}.", note=True)
        )
    return parts


def _confusion(block: Labels) -> Grid:
    names = [one.name for one in block.labels]
    return Grid(
        "Confusion table: rows by their label (down) and by the one that the model gives (across)",
        ("label", *names, "all", "precision", "F1"),
        tuple(
            (
                one.name,
                *(f"{one.given[name]:,}" for name in names),
                f"{one.rows:,}",
                "–" if one.precision is None else percent(one.precision),
                "–" if one.f1 is None else f"{one.f1:.3f}",
            )
            for one in block.labels
        ),
    )


def _spelled(number: Statistic) -> str:
    held = "" if number.low is None else f" ({_interval(number)})"
    return f"{number.value:.3f}{held}"


def _interval(number: Statistic) -> str:
    if number.low is None or number.high is None:
        return "not known"
    return f"{number.low:.3f} to {number.high:.3f}"


ANALYSIS = Analysis(NAME, "Labels", "Labels: which are distinguished?", _parts, Labels)
