"""The options of dictionary_wordsense."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from builders.engine.options import DrawOptions, GcideName
from kbprobe.options import named

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb", "other"]


class WordSenseOptions(DrawOptions):
    """Options of dictionary_wordsense."""

    WITHOUT = ("tier", "variants")  # no question is doubtful
    RANDOM_SHARE = 0.1
    DEFAULTS = named(controls=False)
    TRAINING = named(split_shares=(0.45, 0.17, 0.38))
    HELP = named(
        random_share="Maximum share of rows in groups of which no two are senses of one word (by "
        "default 0.1).",
        controls="Write the control renderings, no_language and perturbed, as configs.",
    )

    gcide: GcideName = Field(
        "", description="Which GCIDE (see kb-cache list); if empty, the one that is there."
    )
    pos: tuple[PartOfSpeech, ...] = Field(
        ("noun", "verb", "adjective", "adverb"),
        min_length=1,
        description="Parts of speech to ask about.",
    )
    contexts: tuple[Literal["usage", "quotation"], ...] = Field(
        ("usage", "quotation"), min_length=1, description="Contexts to show the word in."
    )
    other_pos: bool = Field(
        False,
        description="Let senses of different parts of speech share choices, as published.",
    )
