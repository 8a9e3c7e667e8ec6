"""The tables of facts from which encyclopedic_composition plans its questions.

:mod:`builders.compositions.collecting` fills them from a SPARQL source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kb_cache.wikidata.kind import WIKIDATA

if TYPE_CHECKING:
    from builders.compositions.paths import PathSet
    from kb_cache.wikidata.sparql.types import Term

_ENTITY = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]*)")
_DATE = re.compile(r"\+?(\d{4,})-\d\d-\d\d(T|$)")
_CENTURY = re.compile(r"\+?\d+00-01-01(T|$)")
UNKNOWN = ""
"""A value that is unknown according to the source, or is neither an entity nor a year."""


class Link(NamedTuple):
    """A statement: a hop from an entity to a value.

    Attributes:
        target: an entity ("Q42"), a year ("1969"), or :data:`UNKNOWN`.
        way: which of the hop's properties, as an index.
        best: whether it is among the statements of best rank (``wdt:``). The others, such as
            marriages that ended, are not golds, but still true.
        exact: whether a date is exact to the year.
    """

    target: str
    way: int
    best: bool
    exact: bool = True


@dataclass(frozen=True)
class Collected:
    """All facts that a build uses: the knowledge base that the engine sees.

    Attributes:
        paths: the paths that were collected.
        name: "wikidata" for all sources, so that rows have the same ids.
        version: the source and its version.
        licence: of the source's data, like attribution, citation and language.
        digest: of the paths, queries and answers.
        queries: each query's hash, date and rows, for the manifest.
        listed: hop -> the entities at the end that is looked up first.
        links: hop -> entity -> its statements, sorted.
        labels: entity -> label in the language, for entities that have one.
        classes: entity -> the classes that it is an instance of.
        kinds: class -> itself and all its subclasses.
        told_by: property -> the entities that have it, among those without a class.
        namesakes: entity that a path begins with -> the classes of others with its label.
        occupations: entity -> its occupations, for people who can be choices or need some.
        also: hop -> entity -> answers under other readings of a question about it, of the same kind
            as the hop's values.
        contested: hop -> entity -> values that another property makes doubtful.
        years: entity that a path begins with -> the earliest year of its hop's `from_year`.
        gender, birth, citizenship, country, areas: entity -> values for the rules for distractors.
        death: entity -> year of death, for those whose paths lead to a year.
        sitelinks: entity -> number of Wikipedia articles and the like; empty if never stated.
    """

    paths: PathSet
    name: str
    version: str
    licence: str
    digest: str
    attribution: str = WIKIDATA.attribution
    citation: str = WIKIDATA.citation
    language: str = WIKIDATA.language
    queries: Sequence[Mapping[str, Any]] = ()
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, tuple[Link, ...]]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kinds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    told_by: Mapping[str, frozenset[str]] = field(default_factory=dict)
    namesakes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    occupations: Mapping[str, frozenset[str]] = field(default_factory=dict)
    also: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    contested: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    years: Mapping[str, int] = field(default_factory=dict)
    gender: Mapping[str, frozenset[str]] = field(default_factory=dict)
    birth: Mapping[str, int] = field(default_factory=dict)
    death: Mapping[str, int] = field(default_factory=dict)
    citizenship: Mapping[str, frozenset[str]] = field(default_factory=dict)
    country: Mapping[str, frozenset[str]] = field(default_factory=dict)
    areas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sitelinks: Mapping[str, int] = field(default_factory=dict)

    def is_a(
        self,
        entity: str,
        kinds: Sequence[str],
        told_by: Sequence[str] = (),
        not_told_by: Sequence[str] = (),
    ) -> bool:
        """Return whether an entity is stated to be of one of some classes (none: any class).

        If none of its classes is stated, properties can decide instead: some that it is of such a
        class, and others that it is not.
        """
        if not kinds:
            return True
        own = self.classes.get(entity)
        if own:
            return self.among(own, kinds)
        return any(entity in self.told_by.get(name, ()) for name in told_by) and not any(
            entity in self.told_by.get(name, ()) for name in not_told_by
        )

    def among(self, classes: frozenset[str], kinds: Sequence[str]) -> bool:
        """Return whether one of an entity's classes is one of some classes or a subclass of one."""
        return any(not classes.isdisjoint(self.kinds[kind]) for kind in kinds)

    def has_occupation(self, person: str, wanted: Sequence[str]) -> bool:
        """Return whether a person has one of some occupations, or has none stated."""
        own = self.occupations.get(person)
        return not wanted or not own or not own.isdisjoint(wanted)


def entity_of(term: Term | None) -> str:
    """Return the id of an entity ("Q42"), or :data:`UNKNOWN`."""
    found = _ENTITY.fullmatch(term.value) if term is not None and term.kind == "uri" else None
    return found[1] if found else UNKNOWN


def year_of(term: Term | None) -> str:
    """Return the year of a date ("1969"), or :data:`UNKNOWN` if it is missing or before year 1."""
    found = _DATE.match(term.value) if term is not None and term.kind == "literal" else None
    return str(int(found[1])) if found and 0 < int(found[1]) <= 9999 else UNKNOWN


def may_be_a_century(term: Term | None) -> bool:
    """Return whether a date may stand for a century: "20th century" is stored as 2000-01-01."""
    return term is not None and bool(_CENTURY.match(term.value))
