"""The options of the study of cross-validation."""

from __future__ import annotations

from pydantic import Field, field_validator

from evaluation.learners.registry import LEARNERS
from kbprobe.options import Options


class CrossvalOptions(Options):
    """What is cross-validated, and how often."""

    learners: tuple[str, ...] = Field(
        ("pooled",),
        min_length=1,
        description="Learners to cross-validate: pooled (a classifier on the frozen encoder), "
        "full_labels (the whole encoder), or others that apply to the rows.",
    )
    seeds: int = Field(1, ge=1, description="Repetitions of every fold with different seeds.")
    random_init: int = Field(
        0,
        ge=0,
        description="Also cross-validate this many randomly initialised encoders of the same "
        "architecture, frozen (Kim et al. 2019 use five).",
    )

    @field_validator("learners")
    @classmethod
    def _are_learners(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            LEARNERS.get(name)
        return tuple(dict.fromkeys(names))
