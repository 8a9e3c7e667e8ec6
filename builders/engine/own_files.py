"""Files of users' own knowledge on the command line: which probe each stands for."""

from __future__ import annotations

from typing import NamedTuple

from builders.engine.registry import FACTS, ONTOLOGY
from kb_cache.ontologies import is_ontology
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

    if is_table(word):
        return OwnFile(FACTS, {"table": word}, version_of(word))
    file, colon, ask = word.rpartition(":")
    if not colon:
        file, ask = word, ""
    if is_ontology(file):
        name = f"{version_of(file)}-{ask}" if ask else version_of(file)
        return OwnFile(ONTOLOGY, {"file": file, **({"ask": ask} if ask else {})}, name)
    return None
