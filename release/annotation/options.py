"""The options of an export of annotation sheets and of an import of votes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.options import Metavar, Options, named

STRATA = ("cluster", "distractor_family", "distractor_hops", "hops", "relation", "pos", "template")
"""The columns by which a sample can be stratified."""


class RowsOptions(Options):
    """Whose rows are annotated."""

    split: Annotated[str, Metavar("NAME")] = Field("test", description="The split to annotate.")
    config: Annotated[str, Metavar("NAME")] = Field(
        DEFAULT_CONFIG, description="The config to annotate."
    )


class SheetOptions(RowsOptions):
    """What is annotated, and what the sheets look like."""

    n: int = Field(
        500,
        ge=0,
        description="Items to annotate (0: all rows of the split); the default takes all where "
        "there are fewer.",
    )
    seed: int = Field(0, description="Random seed.")
    stratify: tuple[str, ...] = Field(
        (),
        description="Sample evenly, as far as there are rows, over the values of these columns "
        f"({', '.join(STRATA)}); cluster takes one row of each cluster before a second.",
    )
    batch: int = Field(50, ge=1, description="Maximum items per sheet, including checks.")
    gold_checks: float = Field(
        0.0, ge=0, lt=1, description="Share of a sheet's items with a known answer, as checks."
    )
    checks: Path | None = Field(
        None,
        description="Labels file (as annotate import writes it) with rows for the checks [the "
        "easiest rows of other splits].",
    )
    repeats: float = Field(
        0.0, ge=0, lt=0.5, description="Share of a sheet's items shown twice in it."
    )

    @field_validator("stratify")
    @classmethod
    def _are_columns(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if odd := [name for name in names if name not in STRATA]:
            raise ValueError(f"{odd[0]!r} is none of {', '.join(STRATA)}")
        return names


class VoteOptions(RowsOptions):
    """How votes become labels, and labels a gold standard."""

    HELP = named(
        split="Without a key: the split voted on.", config="Without a key: the config voted on."
    )

    rule: Annotated[str, Metavar("majority|unanimous|at-least-N")] = Field(
        "majority", description="Votes that make a label: majority, unanimous or at-least-N."
    )
    min_votes: int = Field(3, ge=1, description="Votes that a row needs.")
    keep: Literal["auto", "agreed", "voted"] = Field(
        "auto",
        description="Gold standard: rows whose label is the answer they were built with (agreed), "
        "or all rows with a label, which becomes the answer (voted). auto: agreed, but voted for "
        "pairs of sentences, and for rows without an answer or with one that no person gave.",
    )
    pass_checks: float = Field(
        0.75, ge=0, le=1, description="Share of the checks that an annotator must get right."
    )
    exclude_failing: bool = Field(
        False, description="Leave out the votes of annotators who fail the checks."
    )
    skip_bad: bool = Field(
        False, description="Leave out bad votes and continue; they are listed anyway."
    )
