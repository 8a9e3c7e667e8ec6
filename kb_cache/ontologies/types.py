"""Ontologies as they are loaded: terms, and what each is a kind or a part of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kb_cache.graph import Graph
from kb_cache.knowledge import Loaded
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError
from kbprobe.format.licences import UNSTATED

LICENCES = {
    "publicdomain/zero/1.0": "CC0-1.0",
    "licenses/by/3.0": "CC-BY-3.0",
    "licenses/by/4.0": "CC-BY-4.0",
    "licenses/by-sa/3.0": "CC-BY-SA-3.0",
    "licenses/by-sa/4.0": "CC-BY-SA-4.0",
    "licenses/by-nc/4.0": "CC-BY-NC-4.0",
    "licenses/by-nd/4.0": "CC-BY-ND-4.0",
}
"""The part of Creative Commons' addresses that names a licence -> its SPDX identifier."""


RELATIONS = {"is_a": "kind", "part_of": "part", "has_part": "whole"}
"""The graphs of an ontology -> what a term is in them."""

TERM = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "name", "definition", "namespace")),
        *((name, pa.list_(pa.string())) for name in ("synonyms", "related", "references")),
    ]
)
LEFT_OUT = pa.schema([("reason", pa.string()), ("count", pa.int64())])


@dataclass
class OntologyTerm:
    """A term of an ontology, as its file states it.

    Attributes:
        id: its identifier.
        name: its label; a term without one is left out.
        definition: its definition.
        namespace: that of the term: terms of different fields are no choices of the same question.
        synonyms: other labels that mean exactly the same.
        related: labels of what is broader, narrower or related.
        references: identifiers of the same or similar things elsewhere.
        is_a, part_of, has_part: the identifiers of what it is a kind and a part of, and of its
            parts.
        same: the identifiers of terms that it is equivalent to.
        others: other identifiers of it.
        replaced_by: identifiers of what stands for it, if it is obsolete.
        obsolete: whether it is marked so.
    """

    id: str
    name: str = ""
    definition: str = ""
    namespace: str = ""
    synonyms: list[str] = field(default_factory=list)
    related: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    is_a: list[str] = field(default_factory=list)
    part_of: list[str] = field(default_factory=list)
    has_part: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    obsolete: bool = False


@dataclass(frozen=True)
class Stated:
    """What a file states.

    Attributes:
        terms: its terms, each once.
        licence: the address or the name of its licence; empty: it states none.
        title: the title of the ontology.
        skipped: what was not understood -> how often.
        languages: the languages of labels -> how many there are; empty: the format has none.
    """

    terms: Iterable[OntologyTerm]
    licence: str
    title: str
    skipped: Mapping[str, int]
    languages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Ontology(Loaded):
    """An ontology; obsolete terms and those without a label are left out.

    Attributes:
        terms: their ``id``, ``name``, ``definition`` and ``namespace`` (empty where the file states
            none), and the lists ``synonyms``, ``related`` and ``references``.
        is_a, part_of, has_part: graphs from each term to what it is a kind or a part of, and to
            its parts.
        left_out: reason -> how many terms or relations are left out.
    """

    terms: pa.Table
    is_a: Graph
    part_of: Graph
    has_part: Graph
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of terms."""
        return int(self.terms.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column of the terms."""
        return single_chunk(self.terms[name])

    def tables(self) -> dict[str, pa.Table]:
        """Return all that a snapshot keeps."""
        graphs = {name: getattr(self, name) for name in RELATIONS}
        left_out = [[*self.left_out], [*self.left_out.values()]]
        return {
            "terms": self.terms,
            **{
                name: pa.table({"source": graph.sources, "target": graph.indices})
                for name, graph in graphs.items()
            },
            "left_out": pa.table(left_out, schema=LEFT_OUT),
        }

    @classmethod
    def of_tables(cls, identity: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Ontology:
        """Return the ontology that a snapshot keeps."""
        terms, left_out = tables["terms"], tables["left_out"]
        graphs: dict[str, Any] = {
            name: Graph.from_edges(
                terms.num_rows, tables[name]["source"].to_numpy(), tables[name]["target"].to_numpy()
            )
            for name in RELATIONS
        }
        counts = zip(*(left_out[name].to_pylist() for name in left_out.column_names), strict=True)
        return cls(**identity, terms=terms, **graphs, left_out=dict(counts))


def licence_of(stated: str) -> str:
    """Return the SPDX identifier of a licence that a file names.

    >>> licence_of("http://creativecommons.org/licenses/by/4.0/"), licence_of("see our page")
    ('CC-BY-4.0', 'LicenseRef-unstated')
    """
    return next((spdx for part, spdx in LICENCES.items() if part in stated), UNSTATED)


class _Live:
    """Which terms stand for an identifier: its own, or those that a term left out leads to.

    An obsolete term or one without a label leads to what replaces it, or to what it is a kind of:
    what is above it is above its kinds as well.
    """

    def __init__(self, known: Iterable[OntologyTerm], terms: Iterable[OntologyTerm]) -> None:
        self._known = {one: term for term in known for one in (term.id, *term.others)}
        self._number = {term.id: at for at, term in enumerate(terms)}

    def __call__(self, identifier: str, relation: str) -> list[int]:
        """Return the numbers of the terms."""
        found: dict[int, None] = {}
        waiting, seen = [identifier], set[str]()
        while waiting:
            term = self._known.get(waiting.pop())
            if term is None or term.id in seen:
                continue
            seen.add(term.id)
            if (at := self._number.get(term.id)) is not None:
                found[at] = None
            else:
                upwards = [*term.is_a, *(getattr(term, relation) if relation != "has_part" else ())]
                waiting += term.replaced_by or upwards
        return [*found]


def ontology_of(stated: Stated, place: str, identity: Mapping[str, Any]) -> Ontology:
    """Return an ontology from what a file states.

    Args:
        stated: the content of the file.
        place: the name of the file, for messages.
        identity: name, version and digest.

    Raises:
        UsageError: there is no term with a label.
    """
    left_out = Counter(stated.skipped)
    known = [*stated.terms]
    terms = []
    for term in known:
        if term.obsolete:
            left_out["the term is obsolete"] += 1
        elif not term.name:
            left_out["the term has no label"] += 1
        else:
            terms.append(term)
    if not terms:
        others = ", ".join(stated.languages)
        hint = f" in that language; it has some in {others} (--labels CODE)" if others else ""
        raise UsageError(f"{place} has no term with a label{hint}")
    by_id = {term.id: term for term in known}
    for term in known:
        # Equivalent terms are kinds of each other.
        for other in term.same:
            term.is_a.append(other)
            if other in by_id:
                by_id[other].is_a.append(term.id)
    stands_for = _Live(known, terms)
    graphs: dict[str, Any] = {}
    for attribute, relation in RELATIONS.items():
        ends = []
        for at, term in enumerate(terms):
            for other in getattr(term, attribute):
                targets = stands_for(other, attribute)
                if not targets:
                    left_out[f"a {relation} of a term that is absent or obsolete"] += 1
                ends += [(at, target) for target in targets if target != at]
        source, target_ = zip(*ends, strict=True) if ends else ((), ())
        graphs[attribute] = Graph.from_edges(len(terms), source, target_)
    licence = licence_of(stated.licence)
    title = stated.title or identity["name"]
    columns = {field.name: [getattr(term, field.name) for term in terms] for field in TERM}
    return Ontology(
        **identity,
        licence=licence,
        attribution=f"Contains terms of {title} ({stated.licence})." if stated.licence else "",
        terms=pa.table(columns, schema=TERM),
        **graphs,
        left_out=dict(left_out),
    )
