"""The options of the probes that compare ages and things."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from builders.engine.options import ProbeOptions
from builders.english.inflection import MAX_NUMBER
from kbprobe.options import Metavar, named

Dimension = Literal["size", "weight", "speed"]

AGE_WORDINGS = ("plain", "tacl", "arxiv")
MULTIHOP_WORDINGS = ("plain", "tacl")
"""Sets of wordings: whose sentences."""

FROM_PAIRS = "Maximum rows of the train split, drawn from all pairs (0: all pairs)."


class ComparisonOptions(ProbeOptions):
    """Options of all comparisons: no text to screen, no doubtful question."""

    WITHOUT: ClassVar[tuple[str, ...]] = ("tier", "screen")

    DEFAULTS = named(split_shares=(0.0, 0.25, 0.75))
    HELP = named(
        split_shares="Shares of train, validation and test. Train has its own material: the "
        "last two divide the rest."
    )

    evaluation_rows: int = Field(
        1000, ge=0, description="Maximum rows of validation and test together (0: all)."
    )

    @field_validator("split_shares")
    @classmethod
    def _something_to_divide(cls, shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if shares[1] + shares[2] <= 0:
            raise ValueError("validation or test needs a share, such as 0,0.25,0.75")
        return shares


class AgesOptions(ComparisonOptions):
    """Options of comparisons of ages."""

    train_ages: tuple[int, int] = Field(
        (43, 120), description="Lowest and highest age in train (published file: 41,104)."
    )
    evaluation_ages: tuple[int, int] = Field(
        (15, 38), description="Lowest and highest age in validation and test."
    )

    @field_validator("train_ages", "evaluation_ages")
    @classmethod
    def _is_range(cls, ages: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= ages[0] < ages[1] <= MAX_NUMBER:
            raise ValueError(f"two ages from 1 to {MAX_NUMBER}, the lower first, such as 15,38")
        return ages

    @model_validator(mode="after")
    def _ranges_are_apart(self) -> Self:
        low, high = sorted((self.train_ages, self.evaluation_ages))
        if low[1] >= high[0]:
            raise ValueError(
                "--train-ages and --evaluation-ages overlap: what is asked in test must not be "
                "asked in train"
            )
        return self


class AgeOptions(AgesOptions):
    """Options of age_comparison."""

    WITHOUT = ("choices",)
    DEFAULTS = named(train_rows=4032, evaluation_rows=0)
    HELP = named(train_rows=FROM_PAIRS)

    wording: Annotated[str, Metavar("plain|tacl|arxiv|ID")] = Field(
        "plain",
        description="Whose sentences: plain (I am 35 years old. A 21-year-old is [MASK] than me.; "
        "and three others), tacl (A 21 year old person is [MASK] than me in age, If I am a 35 year "
        "old person.), arxiv (A 21 year old person age is [MASK] than a 35 year old person.; the "
        "published file's), or the id of one of them (build-probe show age_comparison).",
    )


class MultihopOptions(AgesOptions):
    """Options of multihop_comparison."""

    WITHOUT = ("variants",)
    DEFAULTS = named(train_rows=5000)

    choices: int = Field(3, ge=3, le=5, description="People compared: three to five.")
    wording: Annotated[str, Metavar("plain|tacl|ID")] = Field(
        "plain",
        description="Whose sentences: plain (I met an 83-year-old, a 63-year-old and a "
        "56-year-old, in that order. The [MASK] was the oldest.; and two others), tacl (When "
        "comparing an 83 year old, a 63 year old and a 56 year old, the [MASK] is oldest.), or "
        "the id of one of them (build-probe show multihop_comparison).",
    )


class ObjectOptions(ComparisonOptions):
    """Options of object_comparison."""

    WITHOUT = ("choices", "variants")
    DEFAULTS = named(train_rows=5000)
    HELP = named(train_rows=FROM_PAIRS)

    dimension: Dimension = Field("size", description="What to compare: size, weight or speed.")
    train_domains: tuple[str, ...] = Field(
        ("animal",), min_length=1, description="Domains or kinds of things in train."
    )
    evaluation_domains: tuple[str, ...] = Field(
        ("thing",), min_length=1, description="Domains or kinds of things in validation and test."
    )
    bucket_bounds: tuple[float, ...] = Field(
        (),
        description="Bounds between buckets, ascending, in m, kg or m/s (0.1,0.6,3,60,100000: six "
        "buckets from nail and seed to planet and sun, as published); powers of ten if empty.",
    )
    same_bucket: bool = Field(
        False, description="Ask about pairs in one bucket as well, where their ratio allows."
    )

    @field_validator("bucket_bounds")
    @classmethod
    def _ascend(cls, bounds: tuple[float, ...]) -> tuple[float, ...]:
        if any(low >= high for low, high in pairwise((0.0, *bounds))):
            raise ValueError("positive numbers, each greater than the one before, such as 0.1,3,60")
        return bounds
