"""ConceptNet as a kind of knowledge base: how it is fetched, and whom to credit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from kb_cache.base import Compiled, Download, FetchOptions, Kind, Progress, Source, notice_of
from kb_cache.conceptnet.types import DEFAULT_VERSION, KIND, Malformed, Selection
from kbprobe.errors import SourceError
from kbprobe.options import named


class ConceptNetOptions(FetchOptions):
    """Options of ``kb-cache fetch conceptnet``."""

    HELP = named(
        source="The 5.7 assertions dump or a file of its format, or CN-100K triples, plain "
        "or gzip; or a database of conceptnet-lite. By default the dump is downloaded (498 MB)."
    )
    language: tuple[str, ...] = Field(
        ("en",), description="Keep edges between concepts of these languages; none: of any."
    )
    relation: tuple[str, ...] = Field(
        (),
        description="Keep edges of these relations (IsA,UsedFor) and of their negations; none: "
        "all.",
    )

    @model_validator(mode="after")
    def _checked(self) -> Self:
        _ = self.selection
        return self

    @property
    def selection(self) -> Selection:
        """Which edges are kept."""
        return Selection(self.language, self.relation)


class ConceptNetKind(Kind[Source, ConceptNetOptions]):
    """Compile ConceptNet, or a part of it.

    The dump is downloaded once and kept in the cache.
    """

    name = KIND
    title = "ConceptNet"
    options = ConceptNetOptions
    licence = "CC-BY-SA-4.0"
    attribution = (
        "This work includes data from ConceptNet 5, which was compiled by the Commonsense "
        "Computing Initiative. ConceptNet 5 is freely available under the Creative Commons "
        "Attribution-ShareAlike license (CC BY SA 4.0) from https://conceptnet.io. The included "
        "data was created by contributors to Commonsense Computing projects, contributors to "
        "Wikimedia projects, Games with a Purpose, Princeton University's WordNet, DBPedia, "
        "OpenCyc, and Umbel."
    )
    citation = """@inproceedings{speer-etal-2017,
  title     = "{ConceptNet} 5.5: An Open Multilingual Graph of General Knowledge",
  author    = {Speer, Robyn and Chin, Joshua and Havasi, Catherine},
  booktitle = {Proceedings of the Thirty-First AAAI Conference on Artificial Intelligence},
  pages     = {4444--4451},
  year      = {2017}
}"""
    contents = "{assertions:,} edges between {concepts:,} concepts"
    #: The assertions of ConceptNet 5.7.0: 34,074,917 edges in all languages.
    download = Download(
        url="https://s3.amazonaws.com/conceptnet/downloads/2019/edges/"
        "conceptnet-assertions-5.7.0.csv.gz",
        sha256="accd65fe94038584295574ddc26e1500c1919c8c4532bf771811cafd0948af7e",
        bytes=497_963_447,
    )
    downloaded_name = DEFAULT_VERSION

    def read(self, path: Path, options: ConceptNetOptions) -> Source:
        """Hash the file: the dump itself is known by its checksum."""
        source = Source.of_file(path)
        is_dump = self.download and source.sha256[path.name] == self.download.sha256
        return replace(source, version=DEFAULT_VERSION) if is_dump else source

    def compile(
        self, source: Source, options: ConceptNetOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the edges into the tables of `kb_cache.conceptnet.types.ConceptNet`."""
        # Imports Arrow, as do all readers.
        from kb_cache.conceptnet.filter import NoEdges, compile_edges
        from kb_cache.conceptnet.source import read_edges

        malformed = Malformed(source.path)
        edges = read_edges(source.path, options.selection, malformed, progress)
        try:
            tables, merged = compile_edges(edges)
        except NoEdges as error:
            why = ". ".join([str(error), *malformed.notes])
            raise SourceError(f"{source.path}: {why}") from None
        notes = malformed.notes
        if merged:
            notes += (f"{merged:,} edges that repeat others were merged with them.",)
        return Compiled(
            description=f"ConceptNet edges from {source.path.name}",
            tables=tables,
            texts=notice_of(self.attribution),
            notes=notes,
        )

    def language_of(self, options: ConceptNetOptions, source: Source) -> str:
        """Return the languages of the edges kept."""
        return "+".join(options.language) or "mul"


CONCEPTNET = ConceptNetKind()
