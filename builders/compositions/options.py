"""The options of encyclopedic_composition."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from builders.compositions.paths import PathSet, load_paths
from builders.engine.options import ProbeOptions, WikidataName
from kbprobe.options import Metavar, named

WIKIDATA_SERVICE = "https://query.wikidata.org/sparql"


class CompositionOptions(ProbeOptions):
    """Options of encyclopedic_composition."""

    WITHOUT = ("variants",)

    DEFAULTS = named(choices=3, split_shares=(0.4, 0.2, 0.4))
    TRAINING = named(split_shares=(0.66, 0.14, 0.2))
    HELP = named(
        split_shares="Shares in train, validation and test of the entities that bear answers, "
        "before --train-rows."
    )

    endpoint: Annotated[str, Metavar("URL")] = Field(
        WIKIDATA_SERVICE,
        description="The SPARQL endpoint to query; its answers are kept in the cache.",
    )
    dump: WikidataName = Field(
        "",
        description="A dump to ask instead, in process: the name of what kb-cache fetch wikidata "
        "--from loaded.",
    )
    offline: bool = Field(False, description="Use only the answers in the cache.")
    refresh: bool = Field(False, description="Query the endpoint again for what is in the cache.")
    max_requests: int = Field(
        2000,
        ge=1,
        description="Maximum requests to the endpoint; a further build continues from the cache.",
    )
    language: Annotated[str, Metavar("CODE")] = Field(
        "en", pattern="^[a-z]{2,3}(-[a-z0-9]+)*$", description="Language of labels and questions."
    )
    paths: Annotated[str, Metavar("FILE|P36:NAME,...")] = Field(
        "",
        description="A YAML file of further paths, or of other ones by a name; or properties, each "
        "with its name, to ask about alone: P36:capital,P38:currency.",
    )
    only_paths: tuple[str, ...] = Field(
        (), description="Paths to ask about; if empty, all, or the properties that --paths names."
    )
    unambiguous: bool = Field(
        False, description="Leave out questions that have several valid answers."
    )
    min_sitelinks: int = Field(
        20,
        ge=0,
        description="Start paths only at entities with at least this many sitelinks, where the "
        "source states them.",
    )
    max_listed: int = Field(
        500,
        ge=0,
        description="Maximum entities at which a path starts, those with most sitelinks where the "
        "source states them (0: all, which is too much for the public service).",
    )
    caps: tuple[int, int, int] = Field(
        (4, 10, 40),
        description="Maximum rows of a path that ask about one entity, that rest on one (an actor, "
        "a band), and that have one gold (0: all).",
    )
    published_wordings: bool = Field(
        False,
        description="Ask about the paper's three paths in the paper's words, which presuppose one "
        "actor, band or company.",
    )

    @field_validator("caps")
    @classmethod
    def _not_below_zero(cls, caps: tuple[int, int, int]) -> tuple[int, int, int]:
        if min(caps) < 0:
            raise ValueError("three numbers of 0 or more, such as 4,10,40")
        return caps

    @field_validator("only_paths")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))

    @model_validator(mode="after")
    def _one_source(self) -> CompositionOptions:
        if self.dump and (self.offline or self.refresh):
            raise ValueError(
                "--offline and --refresh are about an endpoint's answers; a --dump is asked anew "
                "every time, without a network"
            )
        if self.offline and self.refresh:
            raise ValueError("--offline and --refresh exclude each other")
        return self

    @property
    def path_set(self) -> PathSet:
        """The paths that the options ask for."""
        return load_paths(self.paths, self.only_paths, self.language, self.published_wordings)
