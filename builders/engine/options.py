"""The options that every probe has, as typed models that refuse what they do not know.

A probe's own options extend :class:`ProbeOptions`.
"""

from __future__ import annotations

import math
from typing import Literal, Self, TypeVar

from pydantic import Field, field_validator

from kbprobe.options import Options

RANDOM = "random"
"""The distractor family of all nodes of the gold's kind; it fills up the others."""


class ProbeOptions(Options):
    """Options common to all probes."""

    tier: Literal["clean", "full"] = Field(
        "clean",
        description="clean: questions that a careful person can answer; full: also those that the "
        "column flags marks as doubtful.",
    )
    screen: bool = Field(
        True,
        description="Leave out slurs and obscenities in questions, golds and distractors.",
    )
    choices: int = Field(5, ge=2, le=26, description="Choices of a question, the gold included.")
    train_rows: int = Field(
        4000, ge=0, description="Maximum rows of the train split, in whole clusters (0: all)."
    )
    split_shares: tuple[float, float, float] = Field(
        (0.25, 0.25, 0.5),
        description="Shares of the clusters in train, validation and test, before --train-rows.",
    )
    limit: int | None = Field(
        None, ge=1, description="Maximum rows in total, in whole clusters, drawn with the seed."
    )
    controls: bool = Field(
        True,
        description="Write the probe's control renderings, if it has any, as further configs.",
    )
    variants: bool = Field(
        True,
        description="Write the probe's variants, which ask its rows in other ways, as further "
        "configs.",
    )

    @property
    def builds(self) -> dict[str, Self]:
        """The builds that these options stand for: what folders' names end with -> options."""
        return {"": self}

    @field_validator("split_shares")
    @classmethod
    def _shares_add_up(cls, shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
            raise ValueError("three numbers of 0 or more that add up to 1, such as 0.25,0.25,0.5")
        return shares


class DrawOptions(ProbeOptions):
    """Options of probes whose distractors are drawn by :func:`builders.engine.rows.draw_plan`."""

    sampling: Literal["grouped", "uniform"] = Field(
        "grouped",
        description="grouped: questions share their choices, each of which is right once, so that "
        "the choices alone tell nothing; uniform: every candidate alike, as published.",
    )
    once: bool = Field(
        False,
        description="Ask each question once, with distractors of the first family that has "
        "enough, for whoever scores by hand; by default with those of every family.",
    )
    perturbations: int = Field(
        2,
        ge=1,
        le=50,
        description="Maximum rows of a question with distractors of one family and distance.",
    )
    random_share: float = Field(
        0.33,
        ge=0,
        le=1,
        description="Maximum share of rows with random distractors, the easy reference, where "
        "there are other families.",
    )
    max_fill: int | None = Field(
        None,
        ge=0,
        description="Random fills allowed where a family runs short, under --sampling uniform "
        "(by default all but one).",
    )
    cap_per_gold: int = Field(
        40, ge=0, description="Maximum questions with the same gold in a split (0: no cap)."
    )

    @property
    def fills(self) -> int:
        """How many random fills a row may have."""
        most = self.choices - 2
        return most if self.max_fill is None else min(self.max_fill, most)


OptionsT = TypeVar("OptionsT", bound=ProbeOptions)
