"""The table of our probes: names, and where each is defined.

Nothing that it names is imported before it is used: a command that lists probes or shows the
options of one loads neither the others nor NumPy.
"""

from __future__ import annotations

import csv
from importlib import import_module, resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from builders.engine.options import ProbeOptions


class Entry(NamedTuple):
    """A probe that is not loaded yet.

    Attributes:
        source: the heading under which help lists it: what it is built from above all.
        place: the module of ``builders`` that registers it when imported.
        model: the model of its options, in the module ``options`` beside that one.
        summary: what it asks, in one line: the first of the planner's docstring.
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
        module = import_module(f"{self.module.rpartition('.')[0]}.options")
        model: type[ProbeOptions] = getattr(module, self.model)
        return model


SOURCES = (
    "From WordNet",
    "From ConceptNet",
    "From Wikidata",
    "From the dictionary GCIDE",
    "From a text corpus",
    "Without a knowledge base",
)
"""What probes are built from above all, as help lists them."""
WORDNET, CONCEPTNET, WIKIDATA, GCIDE, CORPUS, NONE = SOURCES


def _entries() -> dict[str, Entry]:
    file = resources.files("builders.engine").joinpath("data", "probes.csv")
    _, *lines = csv.reader(file.read_text("utf-8").splitlines())
    return {name: Entry(*columns) for name, *columns in lines}


PROBES = _entries()
"""Our probes by name, in alphabetical order: the lines of ``data/probes.csv``."""
