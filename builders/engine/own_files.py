"""Files of users' own knowledge on the command line: which probe each stands for."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from builders.engine.registry import FACTS, ONTOLOGY
from kb_cache.hub import PREFIX
from kb_cache.ontologies import SUFFIXES as ONTOLOGIES
from kb_cache.ontologies import is_ontology
from kb_cache.tables import SUFFIXES as TABLES
from kb_cache.tables import is_table


class OwnFile(NamedTuple):
    """A file that stands for a probe.

    Attributes:
        probe: the name of the probe.
        options: the options that name the file, and what is asked of it.
        folder: the usual name of the probe's folder.
    """

    probe: str
    options: dict[str, str]
    folder: str


def own_endings() -> str:
    """Return which files are read, as messages say it.

    >>> own_endings()[:44]
    'tables end with .csv, .tsv, .jsonl, .parquet'
    """
    tables, ontologies = ", ".join(TABLES), ", ".join(ONTOLOGIES)
    return f"tables end with {tables}, ontologies with {ontologies} (or with these and .gz)"


def own_file(word: str) -> OwnFile | None:
    """Return the probe that the name of a file stands for; None if it is no such name.

    >>> own_file("data/countries.csv")
    OwnFile(probe='facts', options={'table': 'data/countries.csv'}, folder='countries')
    >>> own_file("go.obo:hyponymy").options
    {'file': 'go.obo', 'ask': 'hyponymy'}
    >>> own_file("wordnet_hypernymy") is None
    True
    """
    from kb_cache.base import version_of

    if is_table(word) or word.startswith(PREFIX):
        return OwnFile(FACTS, {"table": word}, version_of(PurePath(word).name))
    file, colon, ask = word.rpartition(":")
    if not colon:
        file, ask = word, ""
    if is_ontology(file):
        named = version_of(PurePath(file).name)
        asked = {"ask": ask} if ask else {}
        return OwnFile(ONTOLOGY, {"file": file, **asked}, "-".join([named, *asked.values()]))
    return None
