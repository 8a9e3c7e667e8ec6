"""The summary of the study of medals, ``medals.json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "medals"

Award = Literal["success", "partial", "none"]


class ControlGap(Model):
    """How much higher a learner's WS is on the probe than on a control."""

    config: str = Field(description="The control's config.")
    difference: Estimate = Field(description="WS minus the control's WS, in points.")


class Floor(Model):
    """The best accuracy reached without a language model."""

    name: str = Field(description="A baseline of the audit, chance, or a learner without a model.")
    accuracy: float = Field(description="Its accuracy; for a learner, its WS.")


class Medal(Model):
    """The medal of a model on one probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, with its revision where one was asked for.")
    award: Award = Field(description="The medal, by the rule.")
    floor: Floor = Field(description="The strongest model-free result.")
    learner: str | None = Field(
        description="The learner on the frozen model with the highest WS; null: none was run."
    )
    ws: Estimate | None = Field(description="Its WS.")
    way: float | None = Field(
        description="Position of its WS between the floor (0) and 100% (1); negative below the "
        "floor; null where no such learner was run, or the floor is 100%."
    )
    best_learner: str = Field(description="The learner with the highest WS overall.")
    best_ws: Estimate = Field(description="Its WS.")
    zero_shot: Estimate | None = Field(description="Null where zero-shot scoring is impossible.")
    controls: list[ControlGap] = Field(
        description="For the learner on the frozen model; empty where no control was run."
    )
    reason: str = Field(description="Why the medal is not higher, or what a success is based on.")

    @property
    def unchecked(self) -> bool:
        """Whether a success was not checked against controls."""
        return self.award == "success" and not self.controls


class Medals(Model):
    """Medals of models on probes."""

    schema_version: str = Field("1.0", description="Version of this schema.")
    rule: list[str] = Field(description="How they were awarded.")
    probes: list[str] = Field(description="Rows of the table.")
    models: list[str] = Field(description="Columns of the table.")
    medals: list[Medal] = Field(description="One for each model on each probe that it was run on.")

    def at(self, probe: str, model: str) -> Medal | None:
        """Return the medal of a model on a probe; None where it was not run."""
        found = (one for one in self.medals if (one.probe, one.model) == (probe, model))
        return next(found, None)
