"""Ontologies as a kind of knowledge base: kept under a name, with their licence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kb_cache.base import Compiled, Kind, OwnDataOptions, Progress, Source, notice_of
from kb_cache.ontologies.types import Ontology
from kbprobe.format.licences import UNSTATED
from kbprobe.options import named

KIND = "ontology"


class FetchOntologyOptions(OwnDataOptions):
    """Options of ``kb-cache fetch ontology``."""

    HELP = named(
        source="An ontology or a thesaurus: OBO, OBO Graphs, or OWL and SKOS in RDF.",
        language="Language of the labels that are kept.",
    )


@dataclass(frozen=True)
class OntologySource(Source):
    """The file of an ontology, and what it states: its header says whom to credit."""

    ontology: Ontology


class OntologyKind(Kind[OntologySource, FetchOntologyOptions]):
    """Keep an ontology or a thesaurus under a name, with its licence.

    Probes are built from it with ``build-probe ontology --file NAME``, as from a file.
    """

    name = KIND
    title = "your own ontology"
    options = FetchOntologyOptions
    licence = UNSTATED
    contents = "{terms:,} terms, {is_a:,} kinds, {part_of:,} parts"

    def read(self, path: Path, options: FetchOntologyOptions) -> OntologySource:
        """Hash and read the file."""
        from kb_cache.ontologies.read import read_ontology

        source = Source.of_file(path)
        ontology = read_ontology(path, options.language)
        return OntologySource(source.path, source.sha256, source.version, ontology)

    def usual_credits(
        self, options: FetchOntologyOptions, source: OntologySource
    ) -> Mapping[str, str]:
        """Return what the header of the file states."""
        return {"licence": source.ontology.licence, "attribution": source.ontology.attribution}

    def compile(
        self,
        source: OntologySource,
        options: FetchOntologyOptions,
        folder: Path,
        progress: Progress,
    ) -> Compiled:
        """Keep the terms and their relations."""
        credits_ = self.credits_of(options, source)
        notes: tuple[str, ...] = ()
        if credits_["licence"] == UNSTATED:
            notes = ("The file states no licence: state it with --licence and --attribution.",)
        return Compiled(
            description=f"terms from {source.path.name}",
            tables=source.ontology.tables(),
            texts=notice_of(credits_["attribution"]),
            notes=notes,
        )


ONTOLOGIES = OntologyKind()


def kept_ontology(name: str) -> Ontology:
    """Return an ontology that was kept under a name.

    Raises:
        UsageError: there is none of that name.
    """
    from kb_cache.opening import open_snapshot

    info, tables = open_snapshot(KIND, name)
    return Ontology.of_tables(info.identity, tables)
