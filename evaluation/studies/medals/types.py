"""The summary of the study of medals, ``medals.json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluation.results.types import Estimate, Model

NAME = "medals"

Award = Literal["success", "partial", "none"]


class ControlGap(Model):
    """How much more a learner gets from the probe than from a control."""

    config: str = Field(description="The control's config.")
    difference: Estimate = Field(description="WS less the control's WS, in points.")


class Floor(Model):
    """What is reached without a language model."""

    name: str = Field(description="A baseline of the audit, chance, or a learner without a model.")
    accuracy: float = Field(description="Its accuracy; of a learner its WS.")


class Medal(Model):
    """What a model's curves on one probe amount to."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, with its revision where one was asked for.")
    award: Award = Field(description="By the rule.")
    floor: Floor = Field(description="The strongest of what needs no language model.")
    learner: str | None = Field(
        description="The learner on the frozen model of the highest WS; null: none was run."
    )
    ws: Estimate | None = Field(description="Its WS.")
    way: float | None = Field(
        description="How much of the way from the floor to 100% its WS goes: 0 to 1, or less than "
        "0 below the floor; null where no such learner was run, or the floor is 100%."
    )
    best_learner: str = Field(description="The learner of the highest WS of all.")
    best_ws: Estimate = Field(description="Its WS.")
    zero_shot: Estimate | None = Field(description="Null where the model cannot be asked so.")
    controls: list[ControlGap] = Field(
        description="Of the learner on the frozen model; empty where no control was run."
    )
    reason: str = Field(description="Why not a higher one, or what a success rests on.")

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
