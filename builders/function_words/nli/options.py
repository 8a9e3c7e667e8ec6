"""The options of the NLI probes of function words."""

from __future__ import annotations

from pydantic import Field

from builders.engine.options import WordNetName
from builders.function_words.options import FunctionWordOptions
from kbprobe.options import named


class NliOptions(FunctionWordOptions):
    """Options of the NLI probes."""

    WITHOUT = ("variants",)
    DEFAULTS = named(min_tokens=6, max_tokens=26)
    HELP = named(
        min_tokens="Minimum tokens of a premise, including the full stop.",
        max_tokens="Maximum tokens of a premise.",
    )

    wordnet: WordNetName = Field(
        "3.0", description="Which WordNet tells kinds of words and antonyms."
    )
    per_sentence: int = Field(
        12, ge=1, le=100, description="Maximum rows made from a sentence, or from a pair."
    )
    max_rows: int = Field(
        960,
        ge=0,
        description="Maximum rows, of whole sentences drawn with the seed (0: all).",
    )
    readings: bool = Field(
        True,
        description="Without --labels, ask the rows that language models have read, and answer "
        "them by these readings; --no-readings: candidates for annotators, without answers.",
    )
    cap_per_word: int = Field(
        240,
        ge=0,
        description="Maximum rows in which the same word is replaced or inserted (0: no cap).",
    )


class PrepositionOptions(NliOptions):
    """Options of fw_prepositions."""

    DEFAULTS = named(per_sentence=2)


class NegationOptions(NliOptions):
    """Options of fw_negation."""

    DEFAULTS = named(per_sentence=18, max_rows=648)
