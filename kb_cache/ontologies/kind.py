"""Ontologies as a kind of knowledge base: kept under a name, with their licence."""

from __future__ import annotations

from collections.abc import Mapping
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


class OntologyKind(Kind[Source, FetchOntologyOptions]):
    """Keep an ontology or a thesaurus under a name, with its licence.

    Probes are built from it with ``build-probe ontology --file NAME``, as from a file.
    """

    name = KIND
    title = "your own ontology"
    options = FetchOntologyOptions
    licence = UNSTATED
    contents = "{terms:,} terms, {is_a:,} kinds, {part_of:,} parts"

    def read(self, path: Path, options: FetchOntologyOptions) -> Source:
        """Hash the file."""
        return Source.of_file(path)

    def usual_credits(self, options: FetchOntologyOptions, source: Source) -> Mapping[str, str]:
        """Return what the header of the file states."""
        found = _read(source, options)
        return {"licence": found.licence, "attribution": found.attribution}

    def compile(
        self, source: Source, options: FetchOntologyOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Keep the terms and their relations."""
        credits_ = self.credits_of(options, source)
        notes: tuple[str, ...] = ()
        if credits_["licence"] == UNSTATED:
            notes = ("The file states no licence: state it with --licence and --attribution.",)
        return Compiled(
            description=f"terms from {source.path.name}",
            tables=_read(source, options).tables(),
            texts=notice_of(credits_["attribution"]),
            notes=notes,
        )


def _read(source: Source, options: FetchOntologyOptions) -> Ontology:
    from kb_cache.ontologies.read import read_ontology

    return read_ontology(source.path, options.language)


ONTOLOGIES = OntologyKind()


def kept_ontology(name: str) -> Ontology:
    """Return an ontology that was kept under a name.

    Raises:
        UsageError: there is none of that name.
    """
    from kb_cache.opening import open_snapshot

    info, tables = open_snapshot(KIND, name)
    return Ontology.of_tables(info.identity, tables)
