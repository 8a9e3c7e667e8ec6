"""The summary of the study of transfer, ``transfer.json``, and what each number means."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "transfer"
SCHEMA_VERSION = "1.0"


class TestedProbe(Model):
    """A probe: its rows are trained on, and evaluated."""

    __test__ = False  # pytest must not collect it by its name.

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="Folder, file or Hub id, as it was given.")
    split: str = Field(description="The split evaluated.")
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters that they belong to.")
    chance: float = Field(description="Mean of one over the number of choices.")
    train_rows: int = Field(description="Rows of its train split.")
    reference: Estimate | None = Field(
        description="Accuracy of the model before training; null if it cannot be evaluated."
    )


class Transferred(Model):
    """A model trained on one probe and evaluated on another, or on the same."""

    trained_on: str = Field(description="Name of the probe trained on.")
    tested_on: str = Field(description="Name of the probe evaluated.")
    own: bool = Field(description="Whether they are the same.")
    accuracy: Estimate = Field(
        description="Mean accuracy over the seeds; intervals resample clusters and seeds."
    )
    difference: Estimate = Field(
        description="Accuracy minus that of the model before training, or minus chance, in points."
    )
    train_overlap: int = Field(
        description="Rows evaluated whose cluster is in the train split of the probe trained on."
    )
    seen: float = Field(
        description="Share of the rows evaluated whose concept also occurs in a training row; mean "
        "over the seeds."
    )


class ModelTransfer(Model):
    """One model trained on each probe, and evaluated on all."""

    model: str = Field(description="The checkpoint, as it was given.")
    learner: str = Field(description="What was trained.")
    train: int = Field(description="Rows trained on.")
    seeds: int = Field(description="Draws of training rows.")
    less: Literal["untrained", "chance"] = Field(
        description="What differences are from: the model before training, or chance."
    )
    probes: list[TestedProbe] = Field(description="The probes, as they were given.")
    cells: list[Transferred] = Field(description="Each probe trained on, evaluated on each.")
    notes: list[str] = Field(description="Caveats for the reader.")

    def cell(self, trained_on: str, tested_on: str) -> Transferred:
        """Return the cell of a probe trained on and one evaluated."""
        return next(
            cell
            for cell in self.cells
            if (cell.trained_on, cell.tested_on) == (trained_on, tested_on)
        )


class TransferSummary(Model):
    """All of ``transfer.json``."""

    schema_version: str = SCHEMA_VERSION
    models: list[ModelTransfer] = Field(description="Each model.")
