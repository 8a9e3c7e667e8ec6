"""What encyclopedic_composition collects from a SPARQL source: plain tables, planned on later.

All queries are plain SPARQL 1.1, ask for chunks of VALUES, and select what decides their answer
alone, so that an endpoint, a store in process and a cache of answers give the same tables.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kb_cache.wikidata.kind import WIKIDATA
from kbprobe.errors import SourceError

if TYPE_CHECKING:
    from builders.compositions.paths import Hop, PathSet
    from kb_cache.wikidata.sparql.session import QuerySession
    from kb_cache.wikidata.sparql.types import QuerySource, Term

YEAR_PRECISION = 9
"""``wikibase:timePrecision`` of a date that is exact to the year; decades have 8."""

_ENTITY = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]*)")
_DATE = re.compile(r"\+?(\d{4,})-\d\d-\d\d(T|$)")
_VALUE_NODE = "http://www.wikidata.org/prop/statement/value/"
UNKNOWN = ""
"""A value that the source says exists but does not know, or that is no entity and no year."""


class Link(NamedTuple):
    """A statement: a hop from an entity to a value.

    Attributes:
        target: an entity ("Q42"), a year ("1969"), or :data:`UNKNOWN`.
        way: which of the hop's properties, as an index.
        best: whether it is among the statements of best rank (``wdt:``). The others, such as
            marriages that ended, are no golds, but true all the same.
        exact: whether a date is exact to the year.
    """

    target: str
    way: int
    best: bool
    exact: bool = True


@dataclass(frozen=True)
class Collected:
    """All facts that a build draws on: the knowledge base that the engine sees.

    Attributes:
        paths: what was asked for.
        name: "wikidata", whatever the source: rows have the same ids from any.
        version: the source and its version.
        licence: that of the source's data; so are attribution, citation and language.
        digest: of the paths and of all queries and answers.
        queries: each query's hash, date and rows, for the manifest.
        listed: hop -> the entities of the end that is looked up first.
        links: hop -> entity -> its statements, sorted.
        labels: entity -> label in the language; only those that have one.
        classes: entity -> the classes that it is an instance of.
        kinds: class -> itself and all its subclasses.
        told_by: property -> the entities that have it, of those without a class.
        gender, birth, country, areas: entity -> what the rules for distractors need to know.
        death: entity -> year of death, of those whose paths lead to a year.
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
    gender: Mapping[str, frozenset[str]] = field(default_factory=dict)
    birth: Mapping[str, int] = field(default_factory=dict)
    death: Mapping[str, int] = field(default_factory=dict)
    country: Mapping[str, frozenset[str]] = field(default_factory=dict)
    areas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sitelinks: Mapping[str, int] = field(default_factory=dict)

    def is_a(self, entity: str, kinds: Sequence[str], told_by: Sequence[str] = ()) -> bool:
        """Tell whether an entity is stated to be of one of some classes; of any, if there are none.

        Where no class of it is stated at all, properties can tell instead.
        """
        if not kinds:
            return True
        own = self.classes.get(entity)
        if not own:
            return any(entity in self.told_by.get(name, ()) for name in told_by)
        return any(not own.isdisjoint(self.kinds[kind]) for kind in kinds)


def entity_of(term: Term | None) -> str:
    """The id of an entity ("Q42"), or :data:`UNKNOWN`."""
    found = _ENTITY.fullmatch(term.value) if term is not None and term.kind == "uri" else None
    return found[1] if found else UNKNOWN


def year_of(term: Term | None) -> str:
    """The year of a date ("1969"), or :data:`UNKNOWN` for one before the year 1 or none at all."""
    found = _DATE.match(term.value) if term is not None and term.kind == "literal" else None
    return str(int(found[1])) if found and 0 < int(found[1]) <= 9999 else UNKNOWN


def collect(
    source: QuerySource, paths: PathSet, min_sitelinks: int = 0, max_listed: int = 0
) -> Collected:
    """Ask a source for all that the paths need.

    Args:
        source: what to ask.
        paths: what to ask about.
        min_sitelinks: look only at entities with so many sitelinks, where the source states them.
        max_listed: begin with so many entities of each kind, those with most sitelinks, where the
            source states them; 0 for all.

    Raises:
        SourceError: the source cannot answer, or holds nothing of what is asked for.
    """
    from kb_cache.wikidata.sparql.session import QuerySession

    session = QuerySession(source)
    found = _Collector(session, paths, min_sitelinks, max_listed).run()
    digest = hashlib.sha256(f"{paths.digest}{session.digest}".encode()).hexdigest()
    return Collected(
        paths,
        "wikidata",
        " ".join(filter(None, (source.name, source.version))),
        source.licence,
        digest,
        queries=[query._asdict() for query in session.queries],
        **{**_credits(source), **found},
    )


def _credits(source: QuerySource) -> dict[str, Any]:
    """Whom a dump asks to be credited; endpoints say nothing of it and count as Wikidata's."""
    names = ("attribution", "citation", "language")
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


class _Collector:
    """Runs the queries, one path and one hop after the other."""

    def __init__(
        self, session: QuerySession, paths: PathSet, min_sitelinks: int, max_listed: int
    ) -> None:
        self.session = session
        self.paths = paths
        self.min_sitelinks = min_sitelinks
        self.max_listed = max_listed
        self.links: dict[str, dict[str, set[Link]]] = defaultdict(lambda: defaultdict(set))
        self.asked: dict[str, set[str]] = defaultdict(set)
        self.kinds: dict[str, frozenset[str]] = {}
        self.listed: dict[str, frozenset[str]] = {}
        self.statements: dict[str, bool] = {}
        self.dated: set[str] = set()

    def run(self) -> dict[str, Any]:
        """Ask for everything."""
        self.has_sitelinks = self._holds("?entity wikibase:sitelinks ?number")
        self._collect_kinds()
        for path in self.paths.paths.values():
            hops = self.paths.of(path)
            entities = self._starts(hops[0])
            for hop in hops:
                others = self._namesakes(hop, entities)
                self._follow(hop, entities | others)
                if hop is hops[0]:
                    entities |= others
                if hops[-1].value == "year":
                    self.dated |= entities
                ends = (self.links[hop.id][entity] for entity in entities)
                entities = {link.target for links in ends for link in links if link.target}
        entities, targets = self._entities()
        if not targets:
            raise SourceError(
                f"{self.session.source.name} holds nothing on the paths "
                f"{', '.join(self.paths.paths)}. "
                "Is it Wikidata's own data (http://www.wikidata.org/entity/...)?"
            )
        classes = self._sets("?entity wdt:P31 ?value", entities)
        people = targets["like_people"]
        places = targets["same_country"]
        return {
            "listed": self.listed,
            "links": {
                hop: {entity: tuple(sorted(links)) for entity, links in sorted(found.items())}
                for hop, found in self.links.items()
            },
            "labels": self._labels(entities),
            "classes": classes,
            "kinds": self.kinds,
            "told_by": self._told_by(entities - classes.keys()),
            "gender": self._sets("?entity wdt:P21 ?value", people),
            "birth": self._years("P569", people | self.dated),
            "death": self._years("P570", self.dated),
            "country": self._sets("?entity wdt:P17 ?value", places),
            "areas": self._sets("?entity wdt:P131+ ?value", places),
            "sitelinks": self._sitelinks(set().union(*targets.values())),
        }

    def _ask(self, query: str, variable: str, values: Iterable[str]) -> Iterable[tuple[Any, ...]]:
        from kb_cache.wikidata.sparql.session import select_values

        return select_values(self.session, query, variable, values).rows

    def _holds(self, pattern: str) -> bool:
        """Tell whether there is any match. A count: which match comes first is up to the source."""
        query = f"SELECT (COUNT(*) AS ?n) WHERE {{ SELECT * WHERE {{ {pattern} }} LIMIT 1 }}"
        (row,) = self.session.select(query).rows
        return row[0] is not None and row[0].value != "0"

    def _collect_kinds(self) -> None:
        hops = self.paths.hops.values()
        wanted = {name for hop in hops for name in (*hop.source, *hop.target, *hop.never)}
        found: dict[str, set[str]] = {name: {name} for name in wanted}
        query = "SELECT DISTINCT ?kind ?class WHERE { $values ?class wdt:P279* ?kind }"
        for kind, below in self._ask(query, "kind", wanted):
            found[entity_of(kind)].add(entity_of(below))
        self.kinds = {name: frozenset(below - {UNKNOWN}) for name, below in found.items()}

    def _starts(self, hop: Hop) -> set[str]:
        """Find the entities that a path can begin with."""
        if hop.id not in self.listed:
            self.listed[hop.id] = frozenset(self._listed(hop))
        listed = set(self.listed[hop.id])
        if hop.listed == "from":
            return listed
        variables, known = self._well_known("?from")
        starts: dict[str, int] = {}
        for way in hop.ways:
            pattern = _pattern(*way, "?from", "?to")
            query = f"SELECT DISTINCT ?from ?to {variables} WHERE {{ $values {pattern} . {known}}}"
            for row in self._ask(query, "to", listed):
                starts[entity_of(row[0])] = _count(row[2:])
        return self._best_known(starts)

    def _listed(self, hop: Hop) -> set[str]:
        """Look up all entities of the hop's classes that have such a statement."""
        ends = ("?entity", "?end") if hop.listed == "from" else ("?end", "?entity")
        several = (f"{{ {_pattern(*way, *ends)} }}" for way in hop.ways)
        has = f"FILTER EXISTS {{ {' UNION '.join(several)} }}"
        variables, known = self._well_known("?entity")
        classes = set().union(*(self.kinds[name] for name in hop.start_classes))
        query = (
            f"SELECT DISTINCT ?class ?entity {variables} WHERE {{ "
            f"$values ?entity wdt:P31 ?class . {known}{has} }}"
        )
        found = {entity_of(row[1]): _count(row[2:]) for row in self._ask(query, "class", classes)}
        for name in hop.start_told_by:
            query = (
                f"SELECT DISTINCT ?entity {variables} WHERE {{ ?entity wdt:{name} ?told . {known}"
                f"FILTER NOT EXISTS {{ ?entity wdt:P31 ?class }} {has} }}"
            )
            rows = self.session.select(query).rows
            found |= {entity_of(row[0]): _count(row[1:]) for row in rows}
        return self._best_known(found)

    def _well_known(self, variable: str) -> tuple[str, str]:
        """What a query selects and asks for to find the well known, where that is stated."""
        if not self.has_sitelinks:
            return "", ""
        pattern = f"{variable} wikibase:sitelinks ?sitelinks . "
        return "?sitelinks", f"{pattern}FILTER(?sitelinks >= {self.min_sitelinks}) "

    def _best_known(self, found: Mapping[str, int]) -> set[str]:
        """The entities with most sitelinks; all where these are not stated."""
        order = sorted(found.keys() - {UNKNOWN}, key=lambda entity: (-found[entity], entity))
        return set(order[: self.max_listed] if self.has_sitelinks and self.max_listed else order)

    def _namesakes(self, hop: Hop, entities: set[str]) -> set[str]:
        """Find what has the label of an entity, and such a statement too: it could be meant."""
        ends = "?other", "?end"
        several = " UNION ".join(f"{{ {_pattern(*way, *ends)} }}" for way in hop.ways)
        query = (
            "SELECT DISTINCT ?entity ?other WHERE { $values ?entity rdfs:label ?label . "
            f'FILTER(LANG(?label) = "{self.paths.language}") ?other rdfs:label ?label . '
            f"FILTER(?other != ?entity) FILTER EXISTS {{ {several} }} }}"
        )
        return {entity_of(row[1]) for row in self._ask(query, "entity", entities)} - {UNKNOWN}

    def _follow(self, hop: Hop, entities: set[str]) -> None:
        """Ask for all statements of some entities: of every rank, where the source has ranks."""
        new = entities - self.asked[hop.id]
        self.asked[hop.id] |= new
        read = year_of if hop.value == "year" else entity_of
        exact: dict[tuple[str, int, str], bool] = {}
        all_links: list[tuple[str, int, str, bool]] = []
        for at, way in enumerate(hop.ways):
            pattern = _pattern(*way, "?from", "?to")
            query = f"SELECT DISTINCT ?from ?to WHERE {{ $values {pattern} }}"
            for row in self._ask(query, "from", new):
                all_links.append((entity_of(row[0]), at, read(row[1]), True))
            if self._has_statements(way.name):
                query = _statements(hop, way.name, way.inverse)
                for row in self._ask(query, "from", new):
                    key = (entity_of(row[0]), at, read(row[1]))
                    all_links.append((*key, False))
                    if hop.value == "year":
                        exact[key] = exact.get(key, False) or _is_exact(row[2])
        best = {key[:3] for key in all_links if key[3]}
        for entity, at, target, _ in all_links:
            key = (entity, at, target)
            self.links[hop.id][entity].add(Link(target, at, key in best, exact.get(key, True)))

    def _has_statements(self, name: str) -> bool:
        if name not in self.statements:
            self.statements[name] = self._holds(f"?statement ps:{name} ?value")
        return self.statements[name]

    def _entities(self) -> tuple[set[str], dict[str, set[str]]]:
        """All entities found, and those that can be choices, by the rule for distractors."""
        entities: set[str] = set()
        targets: dict[str, set[str]] = defaultdict(set)
        for name, found in self.links.items():
            hop = self.paths.hops[name]
            for entity, links in found.items():
                entities.add(entity)
                if hop.value == "entity":
                    targets[hop.choices] |= {link.target for link in links if link.target}
        entities |= set().union(*targets.values())
        return entities, targets

    def _sets(self, pattern: str, entities: Iterable[str]) -> dict[str, frozenset[str]]:
        query = f"SELECT DISTINCT ?entity ?value WHERE {{ $values {pattern} }}"
        found: dict[str, set[str]] = defaultdict(set)
        for entity, value in self._ask(query, "entity", entities):
            found[entity_of(entity)].add(entity_of(value))
        return {entity: frozenset(values - {UNKNOWN}) for entity, values in sorted(found.items())}

    def _labels(self, entities: Iterable[str]) -> dict[str, str]:
        """Labels in the language; where there is none, those for all languages ("mul")."""
        language = self.paths.language
        query = (
            "SELECT ?entity ?label WHERE { $values ?entity rdfs:label ?label "
            f'FILTER(LANG(?label) IN ("{language}", "mul")) }}'
        )
        found: dict[str, tuple[bool, str]] = {}
        for entity, label in self._ask(query, "entity", entities):
            name, key = entity_of(entity), (label.language != language, label.value.strip())
            found[name] = min(found.get(name, key), key)
        return {name: text for name, (_, text) in sorted(found.items())}

    def _years(self, name: str, entities: Iterable[str]) -> dict[str, int]:
        """The earliest year of a property of each entity."""
        query = f"SELECT DISTINCT ?entity ?date WHERE {{ $values ?entity wdt:{name} ?date }}"
        found: dict[str, int] = {}
        for entity, date in self._ask(query, "entity", entities):
            if year := year_of(date):
                name = entity_of(entity)
                found[name] = min(found.get(name, 9999), int(year))
        return dict(sorted(found.items()))

    def _told_by(self, entities: set[str]) -> dict[str, frozenset[str]]:
        hops = self.paths.hops.values()
        names = {name for hop in hops for name in (*hop.told_by, *hop.source_told_by)}
        told = {}
        for name in sorted(names):
            query = f"SELECT DISTINCT ?entity WHERE {{ $values ?entity wdt:{name} ?told }}"
            told[name] = frozenset(
                entity_of(row[0]) for row in self._ask(query, "entity", entities)
            )
        return told

    def _sitelinks(self, entities: Iterable[str]) -> dict[str, int]:
        if not self.has_sitelinks:
            return {}
        query = "SELECT ?entity ?number WHERE { $values ?entity wikibase:sitelinks ?number }"
        rows = self._ask(query, "entity", entities)
        return {entity_of(entity): int(number.value) for entity, number in rows}


def _pattern(name: str, inverse: bool, source: str, target: str) -> str:
    first, last = (target, source) if inverse else (source, target)
    return f"{first} wdt:{name} {last}"


def _statements(hop: Hop, name: str, inverse: bool) -> str:
    """The query for statements of every rank; of a year also how exact it is."""
    if hop.value == "year":
        return (
            f"SELECT DISTINCT ?from ?to ?precision WHERE {{ $values ?from p:{name} ?statement . "
            f"?statement <{_VALUE_NODE}{name}> ?value . ?value wikibase:timeValue ?to ; "
            "wikibase:timePrecision ?precision }"
        )
    first, last = ("?to", "?from") if inverse else ("?from", "?to")
    return (
        f"SELECT DISTINCT ?from ?to WHERE {{ $values {first} p:{name} ?statement . "
        f"?statement ps:{name} {last} }}"
    )


def _count(rest: Sequence[Term | None]) -> int:
    """The number at the end of a row, if there is one."""
    return int(rest[0].value) if rest and rest[0] is not None else 0


def _is_exact(precision: Term | None) -> bool:
    return (
        precision is not None
        and precision.value.isdecimal()
        and int(precision.value) >= YEAR_PRECISION
    )
