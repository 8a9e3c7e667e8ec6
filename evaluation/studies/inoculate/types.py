"""The summary of the study of inoculation, ``inoculate.json``, and what each number means."""

from __future__ import annotations

from pydantic import Field

from evaluation.results.types import Cell, Estimate, Model

NAME = "inoculate"
SCHEMA_VERSION = "1.1"


class Tried(Model):
    """A setting that was tried: means over the seeds, on the splits used to choose settings."""

    learning_rate: float = Field(description="Peak learning rate.")
    epochs: int = Field(description="Number of epochs.")
    probe: float = Field(description="Accuracy on the probe.")
    original: float = Field(description="Accuracy on the original task.")


class SizePoint(Model):
    """The best setting for one number of rows: the one with the highest mean of both accuracies."""

    size: int = Field(description="Rows of the probe trained on, k.")
    learning_rate: float = Field(description="Of the best setting.")
    epochs: int = Field(description="Of the best setting.")
    tried: list[Tried] = Field(description="All settings of this size.")
    probe: Estimate = Field(
        description="Accuracy on the probe's validation split, used to choose the setting; all "
        "intervals resample clusters and seeds."
    )
    test: Estimate = Field(description="Accuracy on the probe's test split.")
    gain: Estimate = Field(description="Test accuracy minus that before training, in points.")
    original: Estimate = Field(description="Accuracy on the original task's validation split.")
    cost: Estimate = Field(
        description="Accuracy on the original task before training minus after, in points."
    )
    strict: Estimate | None = Field(
        description="Share of the probe's test clusters with every question answered correctly; "
        "null if no cluster has several questions."
    )
    strict_difference: float | None = Field(
        description="Strict accuracy minus test accuracy, in points; null as above."
    )


class Inoculated(Model):
    """A model trained on increasing numbers of rows of a probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="The probe, as it was given.")
    rows: int = Field(description="Rows of its test split.")
    clusters: int = Field(description="Clusters of its test split.")
    chance: float = Field(description="Mean of one over the number of choices.")
    before: Estimate = Field(description="Accuracy of the model before training, on validation.")
    test_before: Estimate = Field(description="The same on test.")
    strict_before: Estimate | None = Field(description="Its strict accuracy on test.")
    strict_difference_before: float | None = Field(description="Strict minus test accuracy.")
    points: list[SizePoint] = Field(description="By number of rows.")
    best: int = Field(description="The size whose best setting has the highest mean of both.")
    table_before: list[Cell] = Field(
        default_factory=list,
        description="Test accuracy before training by hops x distractor family x distance k'.",
    )
    table_after: list[Cell] = Field(
        default_factory=list,
        description="The same after training on the best size; rows count once for each seed.",
    )

    @property
    def at_best(self) -> SizePoint:
        """The point of the best size."""
        return next(point for point in self.points if point.size == self.best)


class TransferCell(Model):
    """A model trained on one probe, tested on another."""

    trained_on: str = Field(description="The probe trained on, with its best size and setting.")
    tested_on: str = Field(description="The probe tested on.")
    accuracy: Estimate = Field(description="Accuracy on its test split.")
    gain: Estimate = Field(description="Accuracy minus that before training, in points.")


class ModelInoculation(Model):
    """One model."""

    model: str = Field(description="The checkpoint, as it was given.")
    original: str = Field(description="The original task, as it was given.")
    original_rows: int = Field(description="Rows of its validation split that were evaluated.")
    original_chance: float = Field(description="Mean of one over the number of choices.")
    original_before: Estimate = Field(description="Accuracy of the model before training on it.")
    added: str = Field(description="Original rows added for each probe row: none, x1, x2.")
    seeds: int = Field(description="Draws of training rows for each setting.")
    probes: list[Inoculated] = Field(description="Each probe trained on.")
    transfer: list[TransferCell] = Field(
        description="Each probe trained on, tested on each; empty if there is only one probe."
    )
    notes: list[str] = Field(description="Caveats for the reader.")


class InoculateSummary(Model):
    """All of ``inoculate.json``."""

    schema_version: str = SCHEMA_VERSION
    models: list[ModelInoculation] = Field(description="Each model.")
