"""The options of the function-word probes."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from builders.engine.options import (
    CorpusNames,
    LabelOptions,
)
from kbprobe.options import named


class FunctionWordOptions(LabelOptions):
    """Options of all probes of function words: their choices are labels."""

    WITHOUT: ClassVar[tuple[str, ...]] = ("choices", "controls", "for_training")
    DEFAULTS = named(split_shares=(0.4, 0.1, 0.5))
    HELP = named(
        split_shares="Shares of the documents in train, validation and test, before --train-rows."
    )

    corpus: CorpusNames = Field(
        ("masc-extract",),
        min_length=1,
        description="Corpora, by name (see kb-cache list); several are taken together.",
    )
    min_tokens: int = Field(5, ge=1, description="Minimum tokens of a sentence.")
    max_tokens: int = Field(40, ge=1, description="Maximum tokens of a sentence.")

    @model_validator(mode="after")
    def _some_length(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError("--min-tokens is more than --max-tokens")
        return self


class AcceptabilityOptions(FunctionWordOptions):
    """Options of the probes of acceptability."""

    max_pairs: int = Field(
        2000, ge=0, description="Maximum pairs of an original and a changed sentence (0: all)."
    )
    balanced: bool = Field(
        True,
        description="Choose pairs so that the changed words and their neighbours stand in "
        "originals as often as in changed sentences; without it, all pairs.",
    )


class WhWordOptions(AcceptabilityOptions):
    """Options of fw_wh_words."""


class LongSentenceOptions(AcceptabilityOptions):
    """Options of fw_definiteness and fw_coordination.

    Few sentences suit them, so that longer ones are read as well, and more go to validation.
    """

    DEFAULTS = named(max_tokens=60, split_shares=(0.4, 0.18, 0.42))


class SentenceEndOptions(AcceptabilityOptions):
    """Options of fw_eos."""

    sigma: float = Field(
        2.0, gt=0, le=100, description="Standard deviation of the wrong end's distance, in words."
    )
