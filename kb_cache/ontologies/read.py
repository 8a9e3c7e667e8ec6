"""Reading of ontologies from files of any of their formats."""

from __future__ import annotations

import codecs
from pathlib import Path

from kb_cache.base import own_identity, readable
from kb_cache.ontologies import SUFFIXES, is_ontology
from kb_cache.ontologies.obo import read_obo, read_obo_graphs
from kb_cache.ontologies.rdf import read_rdf
from kb_cache.ontologies.types import Ontology, Stated, ontology_of
from kb_cache.unpack import read_named
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256
from kbprobe.reading import MAX_TABLE_BYTES


def read_ontology(path: Path, language: str = "en") -> Ontology:
    """Read an ontology; the ending of its file says the format.

    Args:
        path: the file.
        language: of the labels, where there are several.

    Raises:
        UsageError: it cannot be read, or has no term with a label.
    """
    if not is_ontology(path.name):
        raise UsageError(
            f"{path} is no ontology that can be read: its name must end with {', '.join(SUFFIXES)} "
            f"(or with these and .gz)"
        )
    with readable(path):
        digest = file_sha256(path)
    content = read_named(path, MAX_TABLE_BYTES)
    identity = own_identity("ontology", path.name, digest)
    return ontology_of(
        _stated(path, content, language), str(path), {**identity, "language": language}
    )


def _stated(path: Path, content: bytes, language: str) -> Stated:
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending not in ("obo", "json"):
        return read_rdf(content, str(path), ending, language)
    utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line} is not UTF-8; save the file in that encoding") from error
    return read_obo(text.splitlines()) if ending == "obo" else read_obo_graphs(text, str(path))
