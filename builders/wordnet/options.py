"""The options of the WordNet probes."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from builders.engine.options import RANDOM, DrawOptions, WordNetName
from builders.english.word_lists import word_groups
from kbprobe.errors import did_you_mean
from kbprobe.options import RARE, Metavar, named

ABSTRACTIONS = tuple(chain(*word_groups("abstractions", "builders.wordnet")))
"""Golds that are too general to be asked about."""

STOP_CONCEPTS = ("body.n.01", "human_body.n.01", "organism.n.01", "animal.n.01", "person.n.01")
"""Wholes that have many more parts than WordNet lists."""

NEAR = "near"
"""The distractor families of the gold's own neighbourhood; in matched groups a single family."""

SAME_WORD = "same_word"
"""The family of definitions of one word."""

ENGLISH = "en"
"""The language of Princeton WordNet."""

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb"]
ALL_POS = ("noun", "verb", "adjective", "adverb")


class WordNetOptions(DrawOptions):
    """Options of all WordNet probes."""

    WITHOUT: ClassVar[tuple[str, ...]] = ("variants",)
    DEFAULTS = named(train_rows=10_000, split_shares=(0.26, 0.12, 0.62), controls=False)
    HELP = named(
        split_shares="Shares of WordNet, by its examples and parts, in train, validation and "
        "test, before --train-rows.",
        controls="Write the control renderings, no_language and perturbed, as configs.",
    )

    NEAR: ClassVar[tuple[str, ...]] = ("sibling", "cousin", "second_cousin", "field")
    PAPER: ClassVar[tuple[str, ...]] = (RANDOM, "sister", "hyponym", "hypernym")

    wordnet: WordNetName = "3.0"
    language: Annotated[str, Metavar("CODE")] = Field(
        ENGLISH,
        pattern="^[a-z]{2,3}(,[a-z]{2,3})*$",
        description="Language of the words, definitions and examples: English, or one that was "
        "fetched with kb-cache fetch omw (it, pt, sq). Several: see --parallel.",
    )
    parallel: Annotated[bool, RARE] = Field(
        False,
        description="Ask the same questions, with the same ids, in all of several languages: one "
        "probe for each (--language en,it,pt --parallel).",
    )
    pos: tuple[PartOfSpeech, ...] = Field(
        ("noun", "verb"), min_length=1, description="Parts of speech to ask about."
    )
    families: tuple[str, ...] = Field(
        ("near", RANDOM),
        min_length=1,
        description="Distractor families, or the sets 'near' (the gold's own neighbourhood) and "
        "'paper' (those of the published probes, under --sampling uniform).",
    )
    sister_depth: Annotated[int, RARE] = Field(
        2, ge=1, le=6, description="Maximum depth of sister distractors (1: siblings)."
    )
    min_depth: Annotated[int, RARE] = Field(
        0, ge=0, description="Minimum depth of a gold below its root, in hops."
    )
    min_zipf: Annotated[float, RARE] = Field(
        0.0, ge=0, le=8, description="Minimum word frequency of a gold's first lemma (Zipf scale)."
    )

    @model_validator(mode="after")
    def _published_are_uniform(self) -> Self:
        unbalanced = set(self.family_list) - {*self.NEAR, NEAR, RANDOM}
        if self.sampling == "grouped" and unbalanced:
            raise ValueError(
                f"the families {', '.join(sorted(unbalanced))} are never golds, so that their "
                "choices give the answer away; add --sampling uniform --tier full"
            )
        return self

    @model_validator(mode="after")
    def _several_are_parallel(self) -> Self:
        several = len(set(self.languages)) > 1
        if several and not self.parallel:
            raise ValueError("--language names several languages; add --parallel")
        if self.parallel and not several:
            raise ValueError("--parallel needs several languages: --language en,it,pt")
        return self

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages; questions are in the first."""
        return tuple(self.language.split(","))

    @property
    def builds(self) -> dict[str, Self]:
        """A build for each language, in which that language comes first."""
        if not self.parallel:
            return {"": self}
        ordered = sorted(set(self.languages))
        return {
            code: self.model_copy(
                update={
                    "language": ",".join([code, *(other for other in ordered if other != code)])
                }
            )
            for code in ordered
        }

    @property
    def matched(self) -> bool:
        """Whether groups are matched: the encoders that come with kbprobe are of English texts."""
        if self.language == ENGLISH:
            return super().matched
        return super().matched and bool(self.encoders)

    @property
    def shows_glosses(self) -> bool:
        """Whether choices show definitions."""
        return True

    @field_validator("families")
    @classmethod
    def _known_families(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        known = dict.fromkeys((*cls.NEAR, RANDOM, *cls.PAPER))
        for family in families:
            if family not in known and family not in (NEAR, "paper"):
                raise ValueError(
                    f"no distractor family {family!r}.{did_you_mean(family, known)} "
                    f"There are: {', '.join(known)}, and the sets near and paper"
                )
        return families

    @property
    def family_list(self) -> tuple[str, ...]:
        """The requested families, with named sets expanded."""
        near = self.NEAR
        if self.matched:
            near = (*(name for name in near if name == SAME_WORD), NEAR)
        sets = {NEAR: near, "paper": self.PAPER}
        spelled = [name for family in self.families for name in sets.get(family, (family,))]
        return tuple(dict.fromkeys(spelled))


class DefinitionsOptions(WordNetOptions):
    """Options of wordnet_definitions."""

    NEAR = (SAME_WORD, *WordNetOptions.NEAR, "quality")
    RANDOM_SHARE = 0.25
    DEFAULTS = named(pos=ALL_POS)


CommonOnly: TypeAlias = Annotated[
    bool,
    Field(
        description="Ask about common words only, not about taxa, persons, places and other names."
    ),
]


class SynonymyOptions(WordNetOptions):
    """Options of wordnet_synonymy."""

    NEAR = (*WordNetOptions.NEAR, "quality")
    WITHOUT = ("cap_per_gold",)  # each concept is the gold of one question
    DEFAULTS = named(pos=ALL_POS)

    common_only: CommonOnly = False

    @property
    def shows_glosses(self) -> bool:
        """Whether choices show definitions; here the question does."""
        return False


class IsaOptions(WordNetOptions):
    """Options of the probes that walk the hypernym graph."""

    pos: tuple[Literal["noun", "verb"], ...] = Field(
        ("noun", "verb"), min_length=1, description="Parts of speech to ask about."
    )
    max_hops: int = Field(2, ge=1, le=20, description="Maximum distance of the gold, in hops.")
    hops: Literal["all", "balanced"] = Field(
        "all",
        description="all: as many questions of each number of hops as there are; balanced: about "
        "equally many, as far as there are enough.",
    )
    stop_golds: Annotated[tuple[str, ...], RARE] = Field(
        ABSTRACTIONS,
        description="Synsets that are never the gold, because they are true of too much.",
    )

    @model_validator(mode="after")
    def _balanced_are_matched(self) -> Self:
        if self.hops == "balanced" and not self.matched:
            raise ValueError(
                "--hops balanced selects among matched groups: leave out --match none and "
                "--sampling uniform, name an encoder of another --language with --match, or leave "
                "out --hops"
            )
        return self


class HypernymyOptions(IsaOptions):
    """Options of wordnet_hypernymy."""

    PAPER = (RANDOM, "sister", "hyponym")


class HyponymyOptions(IsaOptions):
    """Options of wordnet_hyponymy."""

    NEAR = (
        "sibling_branch",
        "cousin_branch",
        "second_cousin_branch",
        "field",
    )
    PAPER = (RANDOM, "sister", "hypernym")

    glosses: bool = Field(
        False, description="Show the definition of each choice, as published, not its words alone."
    )
    golds_per_hop: int = Field(
        12, ge=0, description="Golds of a concept at each number of hops (0: all)."
    )

    @property
    def shows_glosses(self) -> bool:
        """Whether choices show definitions."""
        return self.glosses


class RelationOptions(WordNetOptions):
    """Options of probes planned by `builders.relations.relation_plan`, without sentences."""

    WITHOUT = ("min_depth", "stem_overlap")
    DEFAULTS = named(min_zipf=2.0)
    HELP = named(min_zipf="Minimum word frequency of both words (Zipf scale).")


class MeronymyOptions(RelationOptions):
    """Options of wordnet_meronymy."""

    NEAR = (
        *WordNetOptions.NEAR,
        "sibling_branch",
        "cousin_branch",
        "second_cousin_branch",
    )
    pos: tuple[Literal["noun"], ...] = Field(
        ("noun",), min_length=1, description="Parts of speech to ask about."
    )
    common_only: CommonOnly = False
    relations: tuple[Literal["part", "member", "substance"], ...] = Field(
        ("part", "member", "substance"), min_length=1, description="Relations to ask about."
    )


class AntonymyOptions(RelationOptions):
    """Options of wordnet_antonymy."""

    NEAR = ("cousin", "second_cousin", "field", "quality")
    RANDOM_SHARE = 1.0
    DEFAULTS = named(pos=ALL_POS)
    TRAINING = named(split_shares=(0.8, 0.05, 0.15))
