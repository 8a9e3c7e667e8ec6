"""Wikidata as a kind of knowledge base: how a dump is loaded, and whom to credit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from kb_cache.base import Compiled, Holding, Kind, OwnDataOptions, Progress, Source
from kb_cache.wikidata.source import RdfFile, load_dump
from kb_cache.wikidata.sparql.answers import endpoints_answers
from kb_cache.wikidata.sparql.types import CONTACT_VARIABLE
from kb_cache.wikidata.types import KIND
from kbprobe.options import named

_PREFIX = re.compile(rf"^{KIND}[-_]")


class WikidataOptions(OwnDataOptions):
    """Options of ``kb-cache fetch wikidata``."""

    DEFAULTS = named(language="mul")
    HELP = named(
        language="Language of the labels; mul: of many languages.",
        source="A dump, or a part of one: N-Triples (.nt), N-Quads (.nq) or Turtle (.ttl), "
        "plain, gzip or bzip2.",
    )
    lenient: bool = Field(False, description="Skip malformed lines, and report how many.")


class WikidataKind(Kind[Source, WikidataOptions]):
    """Load a dump of Wikidata, or a part of one, to query it without a server.

    It becomes an Oxigraph store in the cache.
    """

    name = KIND
    title = "a dump of Wikidata"
    options = WikidataOptions
    licence = "CC0-1.0"
    attribution = (
        "Contains data of Wikidata (https://www.wikidata.org), which its contributors have "
        "dedicated to the public domain (CC0 1.0)."
    )
    citation = """@article{vrandecic-kroetzsch-2014,
  title   = {{Wikidata}: A Free Collaborative Knowledgebase},
  author  = {Vrande{\\v{c}}i{\\'c}, Denny and Kr{\\"o}tzsch, Markus},
  journal = {Communications of the ACM},
  volume  = {57},
  number  = {10},
  pages   = {78--85},
  year    = {2014}
}"""
    language = "mul"
    contents = "{triples:,} triples"
    packages = ("pyoxigraph",)
    extra = "wikidata"

    def stand_in(self) -> str:
        """Name the query service, where it may be asked."""
        able = find_spec("SPARQLWrapper") and os.environ.get(CONTACT_VARIABLE)
        return "the Wikidata query service" if able else ""

    @property
    def remedy(self) -> str:
        """Load a dump, or let the query service know whom to write to."""
        return (
            f"{super().remedy} (then --dump NAME); or set {CONTACT_VARIABLE} to your e-mail "
            "address to ask the query service"
        )

    def read(self, path: Path, options: WikidataOptions) -> Source:
        """Hash the file; its name must tell the format."""
        RdfFile(path, options.lenient)  # refuses names that do not
        source = Source.of_file(path)
        return replace(source, version=_PREFIX.sub("", source.version or ""))

    def compile(
        self, source: Source, options: WikidataOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Load the triples into an Oxigraph store."""
        dump = RdfFile(source.path, options.lenient)
        return load_dump(dump, source.sha256[source.path.name], folder, progress)

    def holdings(self) -> Iterator[Holding]:
        """Yield the cached answers of each endpoint."""
        yield from endpoints_answers()


WIKIDATA = WikidataKind()
