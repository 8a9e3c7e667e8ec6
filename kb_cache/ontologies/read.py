"""Reading of ontologies from files of any of their formats."""

from __future__ import annotations

import gzip
from pathlib import Path

from kb_cache.base import readable, version_of
from kb_cache.ontologies.obo import read_obo, read_obo_graphs
from kb_cache.ontologies.rdf import read_rdf
from kb_cache.ontologies.types import Ontology, ontology_of
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256
from kbprobe.reading import MAX_TABLE_BYTES, read_bytes


def read_ontology(path: Path, language: str = "en") -> Ontology:
    """Read an ontology; the ending of its file says the format.

    Args:
        path: the file.
        language: of the labels, where there are several.

    Raises:
        UsageError: it cannot be read, or has no term with a label.
    """
    with readable(path):
        digest = file_sha256(path)
        content = read_bytes(path, MAX_TABLE_BYTES)
    if path.name.lower().endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise UsageError(f"{path} is no gzip file: {error}") from error
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending in ("obo", "json"):
        text = content.decode("utf-8-sig", errors="replace")
        stated = (
            read_obo(text.splitlines()) if ending == "obo" else read_obo_graphs(text, str(path))
        )
    else:
        stated = read_rdf(content, str(path), ending, language)
    version = version_of(path.name)
    identity = {"name": f"ontology-{version}", "version": version, "digest": digest}
    return ontology_of(stated, str(path), identity)
