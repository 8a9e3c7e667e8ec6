"""The table of built-in probes: their names, and where each is defined.

Nothing that it names is imported before it is used: a command that lists probes or shows one
probe's options loads neither the others nor NumPy.
"""

from __future__ import annotations

import csv
from importlib import import_module, resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from builders.engine.options import ProbeOptions


class ProbeEntry(NamedTuple):
    """A probe that is not loaded yet.

    Attributes:
        source: the heading under which help lists it: its main source.
        place: the module of ``builders`` that registers it on import.
        model: the model of its options, in the module ``options`` of its package; a probe that is
            a module of ``builders`` itself defines its own.
        summary: what it asks, in one line: the first line of the planner's docstring.
    """

    source: str
    place: str
    model: str
    summary: str

    @property
    def module(self) -> str:
        """The module whose import registers the probe."""
        return f"builders.{self.place}"

    @property
    def options(self) -> type[ProbeOptions]:
        """The model of the probe's options."""
        package, dot, _ = self.place.rpartition(".")
        module = import_module(f"builders.{package}.options" if dot else self.module)
        model: type[ProbeOptions] = getattr(module, self.model)
        return model


SOURCES = (
    "From WordNet",
    "From ConceptNet",
    "From Wikidata",
    "From the dictionary GCIDE",
    "From a text corpus",
    "From your own facts",
    "Without a knowledge base",
)
"""The main sources of probes, as help lists them."""
WORDNET, CONCEPTNET, WIKIDATA, GCIDE, CORPUS, OWN, NONE = SOURCES


def _entries() -> dict[str, ProbeEntry]:
    file = resources.files("builders.engine").joinpath("data", "probes.csv")
    _, *lines = csv.reader(file.read_text("utf-8").splitlines())
    return {name: ProbeEntry(*columns) for name, *columns in lines}


FACTS, ONTOLOGY = "facts", "ontology"
OWN_FILES = (FACTS, ONTOLOGY)
"""The probes of users' own files, whose names stand for them on the command line."""

PROBES = _entries()
"""The built-in probes by name, in alphabetical order: the lines of ``data/probes.csv``."""
