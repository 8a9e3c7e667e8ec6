"""The summary of the study, ``compare.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "compare"
COMPARISON_VERSION = "1.2"


class ComparedRun(Model):
    """One of the runs compared."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str
    model: str
    revision: str | None
    dtype: str
    scorer: str
    metric: str = Field(description="What predictions were made with: acc, acc_norm, ...")
    accuracy: Estimate = Field(description="Accuracy on all rows that it scored.")


class FamilyDifference(Model):
    """The two runs on the rows of one distractor family."""

    family: str
    first: float = Field(description="Accuracy of the first run.")
    second: float
    difference: Estimate = Field(description="Second less first, in percentage points.")


class Pair(Model):
    """Two runs on the same items."""

    probe: str
    second_probe: str | None = Field(
        None,
        description="The probe of the second run where it is another config of the same build, "
        "such as a control: rows are paired by their ids. Null where both are on the same probe.",
    )
    split: str
    first: ComparedRun
    second: ComparedRun
    only_first: int = Field(description="Items that only the first run was asked.")
    only_second: int
    set_aside: int = Field(description="Items asked of both, and not scored by one or both.")
    compared: int = Field(description="Items scored by both: all numbers below are of them.")
    clusters: int
    accuracy_first: Estimate
    accuracy_second: Estimate
    difference: Estimate = Field(description="Second less first, in percentage points.")
    only_first_right: int = Field(description="Items that the first run alone gets right.")
    only_second_right: int
    mcnemar_p: float = Field(
        description="Exact McNemar test, two-sided: takes rows to be independent."
    )
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the runs swapped in whole clusters. The "
        "same as McNemar's where every cluster is a row, and the one to quote elsewhere."
    )
    prediction_overlap: float = Field(description="Share of items with the same prediction.")
    both_wrong: int
    error_overlap: float | None = Field(
        description="Share of the items both get wrong with the same wrong choice; null if none."
    )
    by_family: list[FamilyDifference]


class Wording(Model):
    """A wording, by the accuracy of all runs on the rows that have it."""

    template: str = Field(description="Its id.")
    accuracy: Estimate = Field(description="Mean accuracy over the runs.")
    runs: list[float] = Field(description="Accuracy of each run.")


class Comparison(Model):
    """Several runs, each compared with each."""

    schema_version: str = COMPARISON_VERSION
    runs: list[ComparedRun]
    pairs: list[Pair] = Field(description="Each run with every later one.")
    warnings: list[str] = Field(
        default_factory=list,
        description="What else the runs differ in that accuracies may be due to.",
    )
    holm_p: list[float] = Field(
        description="The pairs' p values, adjusted for their number (Holm, 1979)."
    )
    prediction_overlap: list[list[float]] = Field(
        description="Share of identical predictions [F], run by run; 1 on the diagonal."
    )
    difference: list[list[float]] = Field(
        description="Accuracy of the row's run less that of the column's, in points."
    )
    wordings: list[Wording] = Field(
        default_factory=list,
        description="Each wording, that with the highest mean over the runs first ([O] chooses "
        "it); empty unless all runs are on the same rows, of several wordings.",
    )
