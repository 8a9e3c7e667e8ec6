"""The options of the probe ontology."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from builders.engine.options import DrawOptions
from kbprobe.options import Metavar, named

Ask = Literal["hypernymy", "hyponymy", "conjunction", "definitions", "synonymy", "meronymy"]

ASKED: tuple[str, ...] = get_args(Ask)
"""What can be asked of an ontology."""


class OntologyOptions(DrawOptions):
    """Options of ontology."""

    WITHOUT = ("variants", "random_share")  # there is one family
    DEFAULTS = named(split_shares=(0.0, 0.0, 1.0), train_rows=0)
    TRAINING = named(split_shares=(0.6, 0.1, 0.3))

    file: Annotated[str, Metavar("FILE")] = Field(
        "",
        description="The ontology: OBO (.obo), OBO Graphs (.json), or OWL and SKOS in RDF/XML "
        "(.owl, .rdf), Turtle (.ttl) or N-Triples (.nt), all also with .gz; or the name of one in "
        "the cache (kb-cache fetch ontology).",
    )
    ask: Ask = Field(
        "hypernymy",
        description="What is asked for: what a term is a kind of, a kind of it, what two terms are "
        "both a kind of, a definition, another name, or a part. build-probe FILE:ASK says the "
        "same.",
    )
    max_hops: Annotated[int, Metavar("N")] = Field(
        1, ge=1, le=20, description="Maximum number of steps from a term to its kind or part."
    )
    min_depth: Annotated[int | None, Metavar("N")] = Field(
        None,
        ge=0,
        description="Minimum depth of the broader term (not of meronymy), in steps from "
        "the top: of very general terms, more is true than an ontology states (by default a "
        "quarter of the depth of the deepest term).",
    )
    labels: Annotated[str, Metavar("CODE")] = Field(
        "en",
        pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$",
        description="Language of the labels, where a file has several; questions are in English.",
    )
