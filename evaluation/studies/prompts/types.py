"""The summary of the study of prompts, ``prompts.json``, and what each number means."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from evaluation.results.sealed import Sealed
from evaluation.results.types import Estimate, Model
from evaluation.studies.variation.types import Variant, Variation

NAME = "prompts"
SCHEMA_VERSION = "1.0"


class PromptRun(Variant):
    """A prompt with its examples."""

    prompt: str | None = Field(description="The prompt's name; null: none was named.")
    options: dict[str, Any] = Field(
        description="The options that distinguish it, as a single run takes them."
    )
    normalization: str = Field(description="What scores were divided by.")


class PairedPrompts(Model):
    """Two runs on the rows that both scored."""

    first: str = Field(description="Label of one run.")
    second: str = Field(description="Label of the other.")
    compared: int = Field(description="Rows scored by both.")
    alike: Estimate = Field(description="Share of these rows with the same answer.")


class PromptGroup(Model):
    """All runs with one prompt, where it has several seeds or orders of examples."""

    prompt: str | None = Field(description="The prompt's name; null: none was named.")
    runs: int = Field(description="The number of runs.")
    accuracy: float = Field(description="Their mean accuracy.")
    deviation: float = Field(description="Standard deviation of their accuracies (n - 1).")


class ModelPrompts(Model):
    """A model on a probe, asked with several prompts."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    chance: float = Field(description="Mean of one over the number of choices.")
    runs: list[PromptRun] = Field(description="Each prompt with its examples.")
    variation: Variation = Field(description="How accuracy and answers vary over the runs.")
    best: str = Field(description="Label of the run with the greatest accuracy.")
    worst: str = Field(description="Label of the run with the least accuracy.")
    difference: Estimate = Field(
        description="The best run's accuracy less the worst's on the rows that both scored, in "
        "percentage points. The two were chosen by these accuracies, so that the difference is "
        "too large on average; its interval does not account for that."
    )
    pairs: list[PairedPrompts] = Field(description="Each run with every later one.")
    groups: list[PromptGroup] = Field(
        description="Means by prompt; empty where no prompt has several runs."
    )
    notes: list[str] = Field(description="What a reader must know.")


class PromptsSummary(Model, Sealed):
    """All of ``prompts.json``."""

    schema_version: str = SCHEMA_VERSION
    models: list[ModelPrompts] = Field(description="Each model on each probe.")
