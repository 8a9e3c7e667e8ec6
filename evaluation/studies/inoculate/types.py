"""The summary of the study of inoculation, ``inoculate.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "inoculate"
SCHEMA_VERSION = "1.0"


class Tried(Model):
    """A setting that was tried: means over the seeds, on the splits that settings are chosen on."""

    learning_rate: float = Field(description="Peak learning rate.")
    epochs: int = Field(description="Passes over the rows.")
    probe: float = Field(description="Accuracy on the probe.")
    original: float = Field(description="Accuracy on the original task.")


class SizePoint(Model):
    """The best setting of one number of rows: that of the highest mean of both accuracies."""

    size: int = Field(description="Rows of the probe trained on, k.")
    learning_rate: float = Field(description="Of the best setting.")
    epochs: int = Field(description="Of the best setting.")
    tried: list[Tried] = Field(description="All settings of this size.")
    probe: Estimate = Field(
        description="Accuracy on the probe's validation split, which the setting was chosen on; "
        "all intervals resample clusters and seeds."
    )
    test: Estimate = Field(description="Accuracy on the probe's test split.")
    gain: Estimate = Field(description="Test accuracy less that of the untrained model, in points.")
    original: Estimate = Field(description="Accuracy on the original task's validation split.")
    cost: Estimate = Field(
        description="Accuracy on the original task before less after, in points: what was lost."
    )
    strict: Estimate | None = Field(
        description="Share of the probe's test clusters with every question right; null where rows "
        "have no clusters of several questions."
    )
    strict_difference: float | None = Field(
        description="Strict accuracy less test accuracy, in points; null likewise."
    )


class Inoculated(Model):
    """A model trained on more and more rows of a probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="The probe, as it was given.")
    rows: int = Field(description="Rows of its test split.")
    clusters: int = Field(description="Clusters of its test split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    before: Estimate = Field(description="Accuracy of the untrained model on validation.")
    test_before: Estimate = Field(description="The same on test.")
    strict_before: Estimate | None = Field(description="Its strict cluster accuracy on test.")
    strict_difference_before: float | None = Field(description="Strict less accuracy, in points.")
    points: list[SizePoint] = Field(description="By number of rows.")
    best: int = Field(description="The size whose best setting has the highest mean of both.")

    @property
    def at_best(self) -> SizePoint:
        """The point of the best size."""
        return next(point for point in self.points if point.size == self.best)


class TransferCell(Model):
    """A model trained on one probe, tested on another."""

    trained_on: str = Field(description="The probe trained on, with its best size and setting.")
    tested_on: str = Field(description="The probe tested on.")
    accuracy: Estimate = Field(description="Accuracy on its test split.")
    gain: Estimate = Field(description="Less the accuracy of the untrained model, in points.")


class ModelInoculation(Model):
    """One model."""

    model: str = Field(description="The checkpoint, as it was given.")
    original: str = Field(description="The original task, as it was given.")
    original_rows: int = Field(description="Rows of its validation split that were evaluated.")
    original_chance: float = Field(description="Mean of one over the number of choices.")
    original_before: Estimate = Field(description="Accuracy of the untrained model on it.")
    added: str = Field(description="Rows of it added to those of the probe: none, x1, x2.")
    seeds: int = Field(description="Draws of training rows for each setting.")
    probes: list[Inoculated] = Field(description="Each probe trained on.")
    transfer: list[TransferCell] = Field(
        description="Each probe trained on, tested on each; empty where there is one."
    )
    notes: list[str] = Field(description="What a reader must know.")


class InoculateSummary(Model):
    """All of ``inoculate.json``."""

    schema_version: str = SCHEMA_VERSION
    models: list[ModelInoculation] = Field(description="Each model.")
