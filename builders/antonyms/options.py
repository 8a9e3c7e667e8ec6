"""The options of antonym_negation."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from builders.engine.options import ConceptNetName, ProbeOptions, Tokenizer, WordNetName
from kbprobe.options import Metavar, named

PartOfSpeech = Literal["adjective", "noun", "verb"]
WORDINGS = ("agreed", "plain", "paper")
"""Sets of wordings: whose sentences."""


class AntonymOptions(ProbeOptions):
    """Options of antonym_negation."""

    WITHOUT = ("choices", "variants")

    DEFAULTS = named(split_shares=(0.4, 0.2, 0.4))
    TRAINING = named(split_shares=(0.6, 0.1, 0.3))
    HELP = named(
        split_shares="Shares of the antonym pairs in train, validation and test, before "
        "--train-rows."
    )

    wordnet: WordNetName = "3.0"
    conceptnet: ConceptNetName = Field(
        "",
        description="A ConceptNet whose Antonym and Synonym edges are added (see kb-cache list); "
        "none if empty.",
    )
    pos: tuple[PartOfSpeech, ...] = Field(
        ("adjective", "noun", "verb"), min_length=1, description="Parts of speech to ask about."
    )
    intensifier: Literal["really", "very"] = Field(
        "really",
        description="The choice that affirms. Nouns, which cannot be 'very', are then left out.",
    )
    wording: Annotated[str, Metavar("agreed|plain|paper|ID")] = Field(
        "agreed",
        description="Whose sentences: agreed (She said that it was [MASK] hot, and he agreed that "
        "it was cold.; and three others), plain (It was [MASK] hot; in other words, it was cold.; "
        "and three others), paper (It was [MASK] hot, it was really cold.; the published file's), "
        "or the id of one of them (build-probe show antonym_negation).",
    )
    min_zipf: float = Field(
        3.0, ge=0, le=8, description="Minimum frequency of either word (Zipf scale)."
    )
    judged: bool = Field(
        True,
        description="Follow a reader's judgement of words and pairs: leave out words that are "
        "stilted in the sentences (really concurrent) and arguable pairs, and add pairs that are "
        "sound although a model doubts them.",
    )
    both_orders: bool = Field(
        True,
        description="Ask about pairs in both orders (hot and cold, cold and hot), except where one "
        "word only implies the other (colossal, large).",
    )
    indirect: bool = Field(
        True,
        description="Add similar adjectives and their antonyms (moist, by way of wet, and dry).",
    )
    look_alikes: bool = Field(
        False,
        description="Keep pairs of words that share most of their letters (happy and unhappy): "
        "their prefixes and suffixes tell antonyms from synonyms.",
    )
    tokenizer: Tokenizer = ""

    @property
    def asked_pos(self) -> tuple[PartOfSpeech, ...]:
        """The parts of speech that the intensifier can modify."""
        return tuple(name for name in self.pos if self.intensifier == "really" or name != "noun")

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        if not self.asked_pos:
            raise ValueError(
                "nothing is very much of a noun; use --intensifier really, or other parts of speech"
            )
        return self
