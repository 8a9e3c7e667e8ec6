"""The summary of the study of cross-validation, ``crossval.json``, and what each number means."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluation.results.analyses.vocabulary import Slope
from evaluation.results.types import Estimate, Model

NAME = "crossval"
SCHEMA_VERSION = "1.1"

Kind = Literal["majority", "random", "learner", "zero_shot"]


class CrossvalRow(Model):
    """A model on a probe: every row of the probe is evaluated once in each repetition."""

    kind: Kind = Field(
        description="majority (of the rows fitted on), random (a learner on randomly initialised "
        "encoders), learner, or zero_shot (the model as it is)."
    )
    model: str = Field(description="The checkpoint, as it was given; none: no model.")
    learner: str | None = Field(description="Learner that was fitted; null if none.")
    accuracy: Estimate = Field(
        description="Mean test accuracy over all rows of all folds. The interval resamples "
        "clusters, and repetitions where there are several."
    )
    folds: list[float] = Field(
        description="Test accuracy in each fold, in the order of their numbers: means over "
        "repetitions."
    )
    fold_mean: float = Field(description="Mean of these.")
    fold_sd: float = Field(description="Their standard deviation.")
    repetitions: list[float] = Field(
        description="Accuracy over all folds of each repetition: a seed, a random initialisation."
    )
    repetition_sd: float | None = Field(
        description="Standard deviation of these; null if there is only one."
    )
    vocabulary: list[Slope] = Field(
        default_factory=list,
        description="Accuracy and the words that rows share with their premises, and with the "
        "other folds: of the predictions of all folds and repetitions.",
    )


class ProbeCrossval(Model):
    """One probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="The probe, as it was given.")
    split: str = Field(description="Split whose folds are used; all: all splits together.")
    setup: str = Field(description="The setup of its rows.")
    rows: int = Field(description="Rows of all folds.")
    clusters: int = Field(description="Clusters of rows.")
    folds: dict[int, int] = Field(description="How many rows each fold has.")
    train: int = Field(description="Rows of the other folds that each classifier is fitted on.")
    chance: float = Field(description="Mean of one over the number of choices.")
    human: Estimate | None = Field(
        description="Share of people's votes for the intended answer; null if the probe has no "
        "annotations."
    )
    results: list[CrossvalRow] = Field(description="Models and baselines.")
    notes: list[str] = Field(description="Caveats for the reader.")


class CrossvalSummary(Model):
    """All of ``crossval.json``."""

    schema_version: str = SCHEMA_VERSION
    probes: list[ProbeCrossval] = Field(description="Each probe.")
