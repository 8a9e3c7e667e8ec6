"""The options of the property probes."""

from __future__ import annotations

from itertools import chain
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from builders.engine.options import ConceptNetName, KindsWordNetName, MatchOptions
from builders.english.word_lists import word_groups
from kbprobe.errors import did_you_mean
from kbprobe.options import named

ASKED = tuple(chain(*word_groups("relations", "builders.properties")))
"""The relations asked about by default, and their negations."""

WORDED = (*ASKED, "DefinedAs", "DistinctFrom", "RelatedTo")
"""All relations for which the templates have phrases."""

LOOSE_WEIGHT = 3.0
"""Minimum weight of edges of IsA and HasProperty, the noisiest. Edges of other relations with less
weight count only if a similar concept has the same property, and not for two places at once."""

FIRM_WEIGHT = 4.0
"""Minimum weight of edges without further support: of golds of property_conjunction_but_not, and of
IsA if WordNet does not agree."""

MAX_SHARE = 0.45
"""Maximum share of one relation among the properties asked about."""

CAP_PER_QUESTION = 10
"""Maximum number of rows of a split with the same question and different golds."""


class PropertyOptions(MatchOptions):
    """Options of both property probes."""

    WITHOUT = ("variants",)
    DEFAULTS = named(split_shares=(0.5, 0.12, 0.38))
    HELP = named(
        split_shares="Shares of the concepts in train, validation and test, before --train-rows."
    )

    choices: int = Field(3, ge=3, le=10, description="Choices of a question, the gold included.")
    conceptnet: ConceptNetName = "5.7"
    wordnet: KindsWordNetName = "3.0"
    relations: tuple[str, ...] = Field(
        ASKED,
        min_length=1,
        description="Relations to ask about, and their negations; 'asked' stands for those asked "
        "about by default (asked,RelatedTo adds one).",
    )
    min_weight: float = Field(
        2.0, ge=0, description="Minimum weight of an edge that makes a gold true (CN-100K: 1)."
    )
    sampling: Literal["balanced", "uniform"] = Field(
        "balanced",
        description="balanced: choice groups, in which each of three choices is the gold once "
        "(with three choices alone); uniform: every candidate alike.",
    )
    perturbations: int = Field(
        1,
        ge=1,
        le=50,
        description="Maximum rows of a question and gold, with other distractors (above 1 needs "
        "--tier full and --sampling uniform).",
    )
    cap_per_gold: int = Field(20, ge=0, description="Maximum rows with the same gold (0: no cap).")

    @model_validator(mode="after")
    def _repeats_only_in_full(self) -> Self:
        if self.perturbations > 1 and (self.tier, self.sampling) != ("full", "uniform"):
            raise ValueError(
                "--perturbations repeats questions, so that their answers can be guessed from "
                "other rows; add --tier full and --sampling uniform"
            )
        return self

    @field_validator("relations")
    @classmethod
    def _worded(cls, relations: tuple[str, ...]) -> tuple[str, ...]:
        spelled = [ASKED if name == "asked" else (name,) for name in relations]
        relations = tuple(chain(*spelled))
        for name in relations:
            if name not in WORDED:
                raise ValueError(
                    f"no relation {name!r}.{did_you_mean(name, WORDED)} There are phrases for: "
                    f"{', '.join(WORDED)}; a negation is asked about as its relation is"
                )
        return tuple(dict.fromkeys(relations))


class ConjunctionOptions(PropertyOptions):
    """Options of property_conjunction."""

    TRAINING = named(split_shares=(0.75, 0.05, 0.2))
