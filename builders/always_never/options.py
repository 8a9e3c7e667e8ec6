"""The options of always_never."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from builders.engine.options import (
    ConceptNetName,
    KindsWordNetName,
    LabelOptions,
)
from kbprobe.errors import did_you_mean
from kbprobe.options import Metavar, named

SCALE = ("never", "rarely", "sometimes", "often", "always")
"""The answers, in the order in which every row shows them."""

FAMILIES = ("body_part", "dish", "larger", "smaller", "diet", "placed", "deed", "quality")
"""All template families; the last two are used only if requested by option."""


class AlwaysNeverOptions(LabelOptions):
    """Options of always_never: its five choices are a scale."""

    WITHOUT = ("tier", "choices", "variants")

    DEFAULTS = named(split_shares=(0.5, 0.15, 0.35))
    TRAINING = named(split_shares=(0.78, 0.03, 0.19))
    HELP = named(
        split_shares="Shares of the subjects in train, validation and test, before --train-rows."
    )

    conceptnet: ConceptNetName = "5.7"
    wordnet: KindsWordNetName = "3.0"
    families: tuple[str, ...] = Field(
        FAMILIES[:6], min_length=1, description=f"Template families, of {', '.join(FAMILIES)}."
    )
    per_family: int = Field(350, ge=1, description="Number of candidates of each family.")
    min_zipf: float = Field(2.8, ge=0, le=8, description="Minimum frequency of words (Zipf scale).")
    proposer: Annotated[str, Metavar("MODEL")] = Field(
        "",
        description="A masked LM (folder or Hub id) that proposes the objects, as the paper's did; "
        "by default all words of the slot's kind are candidates.",
    )
    readings: bool = Field(
        True,
        description="Without --labels and --proposer, ask what language models have read, and "
        "answer it by these readings; --no-readings: candidates for annotators, without answers.",
    )

    @field_validator("families")
    @classmethod
    def _known(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        for name in families:
            if name not in FAMILIES:
                raise ValueError(
                    f"no family {name!r}.{did_you_mean(name, FAMILIES)} There are: "
                    f"{', '.join(FAMILIES)}"
                )
        return tuple(name for name in FAMILIES if name in families)
