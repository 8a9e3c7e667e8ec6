"""Query a SPARQL source for all facts that the paths need.

All queries are plain SPARQL 1.1, ask for chunks of VALUES, and select only what determines their
answers, so that an endpoint, a store in process and a cache of answers give the same tables.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from builders.compositions.facts import (
    UNKNOWN,
    Collected,
    Link,
    entity_of,
    may_be_a_century,
    year_of,
)
from kbprobe.errors import SourceError

if TYPE_CHECKING:
    from builders.compositions.paths import Hop, PathSet
    from kb_cache.wikidata.sparql.session import QuerySession
    from kb_cache.wikidata.sparql.types import QuerySource, Term

logger = logging.getLogger(__name__)

YEAR_PRECISION = 9
"""``wikibase:timePrecision`` of a date that is exact to the year; decades have 8."""

OCCUPATION = "P106"

_WIDER = "wdt:P131|wdt:P17|wdt:P279|wdt:P361"
"""What leads to a place, class or whole that something of any kind lies in or belongs to."""

_VALUE_NODE = "http://www.wikidata.org/prop/statement/value/"


def collect(
    source: QuerySource, paths: PathSet, min_sitelinks: int = 0, max_listed: int = 0
) -> Collected:
    """Query a source for all facts that the paths need.

    Args:
        source: what to ask.
        paths: what to ask about.
        min_sitelinks: minimum number of sitelinks of entities, if the source states them.
        max_listed: maximum number of entities of each kind to begin with, those with most sitelinks
            if the source states them; 0 for all.

    Raises:
        SourceError: the source cannot answer, or has no data on the paths.
    """
    from kb_cache.wikidata.sparql.session import QuerySession

    session = QuerySession(source)
    found = _FactCollector(session, paths, min_sitelinks, max_listed).run()
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
    """Return whom a dump asks to credit; endpoints state nothing and count as Wikidata."""
    names = ("attribution", "citation", "language")
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


class _FactCollector:
    """Runs the queries, path by path and hop by hop."""

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
        self.imprecise: set[str] = set()

    def run(self) -> dict[str, Any]:
        """Run all queries, and return the fields of `Collected`."""
        self.sitelinks_path = self._path_to_sitelinks()
        self._collect_kinds()
        for path in self.paths.paths.values():
            hops = self.paths.of(path)
            entities = self._starts(hops[0])
            for hop in hops:
                others = self._namesakes(hop, entities)
                self._follow(hop, entities | others)
                if hop is hops[0]:
                    entities |= others
                if hops[-1].value == "year" or hop.until_age:
                    self.dated |= entities
                ends = (self.links[hop.id][entity] for entity in entities)
                entities = {link.target for links in ends for link in links if link.target}
        of_any_kind = self._values_of_any_kind()
        entities, targets = self._entities()
        if not targets:
            raise SourceError(
                f"{self.session.source.name} holds nothing on the paths "
                f"{', '.join(self.paths.paths)}. "
                "Is it Wikidata's own data (http://www.wikidata.org/entity/...)?"
                f"{self._about_sitelinks()}"
            )
        classes = self._sets("?entity wdt:P31 ?value", entities)
        people = targets["like_people"]
        places = targets["same_country"]
        also, contested = self._other_readings()
        return {
            "also": also,
            "contested": contested,
            "namesakes": self._classes_of_namesakes(),
            "occupations": self._sets(
                f"?entity wdt:{OCCUPATION} ?value", self._with_occupation() | people
            ),
            "listed": self.listed,
            "links": {
                hop: {entity: tuple(sorted(links)) for entity, links in sorted(found.items())}
                for hop, found in self.links.items()
            },
            "labels": self._labels(entities),
            "classes": classes,
            "kinds": self.kinds,
            "told_by": self._told_by(entities - classes.keys()),
            "years": self._years_of_starts(),
            "gender": self._sets("?entity wdt:P21 ?value", people),
            "birth": self._years("P569", people | self.dated),
            "death": self._years("P570", self.dated),
            "citizenship": self._sets("?entity wdt:P27 ?value", people),
            "country": self._sets("?entity wdt:P131*/wdt:P17 ?value", places),
            "areas": {
                **self._sets("?entity wdt:P131+ ?value", places),
                **self._sets(f"?entity ({_WIDER})+ ?value", of_any_kind),
            },
            "sitelinks": self._sitelinks(set().union(*targets.values())),
        }

    def _ask(self, query: str, variable: str, values: Iterable[str]) -> Iterable[tuple[Any, ...]]:
        from kb_cache.wikidata.sparql.session import select_values

        return select_values(self.session, query, variable, values).rows

    def _holds(self, pattern: str) -> bool:
        """Return whether a pattern has matches. Counts them, since their order is undefined."""
        query = f"SELECT (COUNT(*) AS ?n) WHERE {{ SELECT * WHERE {{ {pattern} }} LIMIT 1 }}"
        (row,) = self.session.select(query).rows
        return row[0] is not None and row[0].value != "0"

    def _path_to_sitelinks(self) -> str:
        """Return the property path from an entity to its sitelinks; "" if none are stated.

        The query service states them of entities, raw dumps of the data nodes about entities.
        """
        if not self._holds("?entity wikibase:sitelinks ?number"):
            return ""
        of_entities = self._holds("?entity wikibase:sitelinks ?number ; wdt:P31 ?class")
        return "wikibase:sitelinks" if of_entities else "^schema:about/wikibase:sitelinks"

    def _about_sitelinks(self) -> str:
        if not self.sitelinks_path or not self.min_sitelinks:
            return ""
        return (
            f" Paths start only at entities with at least {self.min_sitelinks} sitelinks; "
            "--min-sitelinks 0 includes all."
        )

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
        """Query all entities of the hop's classes, if it names any, that have such a statement."""
        ends = ("?entity", "?end") if hop.listed == "from" else ("?end", "?entity")
        several = " UNION ".join(f"{{ {_pattern(*way, *ends)} }}" for way in hop.ways)
        has = f"FILTER EXISTS {{ {several} }}"
        variables, known = self._well_known("?entity")
        if not hop.start_classes:
            query = f"SELECT DISTINCT ?entity {variables} WHERE {{ {several} {known}}}"
            rows = self.session.select(query).rows
            return self._best_known({entity_of(row[0]): _count(row[1:]) for row in rows})
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
        """Return the parts of a query that leave out entities stated to have few sitelinks."""
        if not self.sitelinks_path:
            return "", ""
        pattern = f"OPTIONAL {{ {variable} {self.sitelinks_path} ?sitelinks }} "
        few = f"BOUND(?sitelinks) && ?sitelinks < {self.min_sitelinks}"
        return "?sitelinks", f"{pattern}FILTER(!({few})) "

    def _best_known(self, found: Mapping[str, int]) -> set[str]:
        """Return the entities with most sitelinks, or all if sitelinks are not stated."""
        order = sorted(found.keys() - {UNKNOWN}, key=lambda entity: (-found[entity], entity))
        return set(order[: self.max_listed] if self.sitelinks_path and self.max_listed else order)

    def _namesakes(self, hop: Hop, entities: set[str]) -> set[str]:
        """Find other entities with the same label and such a statement, which could be meant."""
        ends = "?other", "?end"
        several = " UNION ".join(f"{{ {_pattern(*way, *ends)} }}" for way in hop.ways)
        found = self._of_one_name(entities, "?other", f"FILTER EXISTS {{ {several} }}")
        return {entity_of(other) for _, (other,) in found} - {UNKNOWN}

    def _classes_of_namesakes(self) -> dict[str, frozenset[str]]:
        """Return the classes of all namesakes of entities that paths begin with."""
        starts: set[str] = set()
        for path in self.paths.paths.values():
            starts |= self.links[path.hops[0]].keys()
        found: dict[str, set[str]] = defaultdict(set)
        for entity, (_, kind) in self._of_one_name(
            starts, "?other ?class", "?other wdt:P31 ?class"
        ):
            found[entity].add(entity_of(kind))
        return {entity: frozenset(kinds - {UNKNOWN}) for entity, kinds in sorted(found.items())}

    def _of_one_name(
        self, entities: Iterable[str], variables: str, pattern: str
    ) -> Iterator[tuple[str, tuple[Term | None, ...]]]:
        """Query other entities (?other) with the label of some, whichever of the two tags it has.

        Texts are asked for with both tags: a store has an index of labels, but none of their texts.
        """
        from kb_cache.wikidata.sparql.session import tagged_literal

        named: dict[str, set[str]] = defaultdict(set)
        for entity, label in self._ask(self._labels_query, "entity", entities):
            named[label.value].add(entity_of(entity))
        tags = self._tag, "mul"
        labels = [tagged_literal(text, tag) for text in named for tag in tags]
        query = (
            f"SELECT DISTINCT ?label {variables} WHERE {{ $values ?other rdfs:label ?label . "
            f"{pattern} }}"
        )
        for label, other, *rest in self._ask(query, "label", labels):
            for entity in named[label.value] - {entity_of(other)}:
                yield entity, (other, *rest)

    def _other_readings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Query answers under other readings of hops, and values that make facts doubtful."""
        also, contested = {}, {}
        for name, hop in self.paths.hops.items():
            entities = self.links[name].keys()
            read = year_of if hop.value == "year" else entity_of
            doubtful = self._along(hop.contested_by, entities, read)
            others = self._along(hop.also, entities, read)
            contested[name] = doubtful
            also[name] = {
                entity: doubtful.get(entity, frozenset()) | others.get(entity, frozenset())
                for entity in sorted(doubtful.keys() | others.keys())
            }
        return also, contested

    def _along(
        self, steps: Sequence[str], entities: Iterable[str], read: Callable[[Term | None], str]
    ) -> dict[str, frozenset[str]]:
        """Follow properties, or chains of properties, from some entities."""
        if not steps:
            return {}
        paths = "|".join(_property_path(step) for step in steps)
        query = f"SELECT DISTINCT ?entity ?value WHERE {{ $values ?entity {paths} ?value }}"
        return self._gathered(query, entities, read)

    def _with_occupation(self) -> set[str]:
        """Return the entities whose occupations matter."""
        people: set[str] = set()
        for name, found in self.links.items():
            hop = self.paths.hops[name]
            if hop.source_occupations:
                people |= found.keys()
            if hop.occupations:
                people |= {link.target for links in found.values() for link in links}
        return people - {UNKNOWN}

    def _follow(self, hop: Hop, entities: set[str]) -> None:
        """Query all statements of some entities, of every rank if the source has ranks."""
        new = entities - self.asked[hop.id]
        self.asked[hop.id] |= new
        read = year_of if hop.value == "year" else entity_of
        exact: dict[tuple[str, int, str], bool] = {}
        year_alone: set[tuple[str, int, str]] = set()
        all_links: list[tuple[str, int, str, bool]] = []
        for at, way in enumerate(hop.ways):
            pattern = _pattern(*way, "?from", "?to")
            query = f"SELECT DISTINCT ?from ?to WHERE {{ $values {pattern} }}"
            for row in self._ask(query, "from", new):
                key = (entity_of(row[0]), at, read(row[1]))
                all_links.append((*key, True))
                if hop.value == "year" and not may_be_a_century(row[1]):
                    year_alone.add(key)
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
            is_exact = exact.get(key, hop.value != "year" or key in year_alone)
            self.links[hop.id][entity].add(Link(target, at, key in best, is_exact))
        if hop.value == "year" and all_links and not exact and hop.id not in self.imprecise:
            self.imprecise.add(hop.id)
            logger.warning(
                "%s states no precision of dates for %s: 1 January of 1900, 2000 and the like may "
                "mean a century, and is not asked about",
                self.session.source.name,
                hop.id,
            )

    def _has_statements(self, name: str) -> bool:
        if name not in self.statements:
            self.statements[name] = self._holds(f"?statement ps:{name} ?value")
        return self.statements[name]

    def _entities(self) -> tuple[set[str], dict[str, set[str]]]:
        """Return all entities found, and by rule for distractors those that can be choices."""
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

    def _values_of_any_kind(self) -> set[str]:
        """Return the values of hops that begin a path and name no class.

        Raises:
            SourceError: the source states none of one of them.
        """
        found: set[str] = set()
        for path in self.paths.paths.values():
            hop = self.paths.hops[path.hops[0]]
            if not hop.start_classes:
                links = self.links[hop.id].values()
                own = {link.target for some in links for link in some} - {UNKNOWN}
                if not own:
                    raise SourceError(
                        f"{self.session.source.name} states no entity as {hop.edges[0]} of "
                        "another. Check its number in --paths, or leave it out; dates, numbers and "
                        f"texts cannot be asked for by a number.{self._about_sitelinks()}"
                    )
                found |= own
        return found

    def _sets(self, pattern: str, entities: Iterable[str]) -> dict[str, frozenset[str]]:
        query = f"SELECT DISTINCT ?entity ?value WHERE {{ $values {pattern} }}"
        return self._gathered(query, entities, entity_of)

    def _gathered(
        self, query: str, entities: Iterable[str], read: Callable[[Term | None], str]
    ) -> dict[str, frozenset[str]]:
        """Query pairs of an entity and a value; return the values of each entity."""
        found: dict[str, set[str]] = defaultdict(set)
        for entity, value in self._ask(query, "entity", entities):
            found[entity_of(entity)].add(read(value))
        return {entity: frozenset(values - {UNKNOWN}) for entity, values in sorted(found.items())}

    @property
    def _labels_query(self) -> str:
        return (
            "SELECT ?entity ?label WHERE { $values ?entity rdfs:label ?label "
            f'FILTER(LANG(?label) IN ("{self._tag}", "mul")) }}'
        )

    @property
    def _tag(self) -> str:
        """The tag of labels in the language, as Wikidata and stores write it: zh-hans."""
        return self.paths.language.lower()

    def _labels(self, entities: Iterable[str]) -> dict[str, str]:
        """Return labels in the language, or else those for all languages ("mul")."""
        found: dict[str, tuple[bool, str]] = {}
        for entity, label in self._ask(self._labels_query, "entity", entities):
            name = entity_of(entity)
            key = (label.language != self._tag, label.value.strip())
            found[name] = min(found.get(name, key), key)
        return {name: text for name, (_, text) in sorted(found.items())}

    def _years(self, name: str, entities: Iterable[str]) -> dict[str, int]:
        """Return the earliest year of a property of each entity."""
        query = f"SELECT DISTINCT ?entity ?date WHERE {{ $values ?entity wdt:{name} ?date }}"
        found: dict[str, int] = {}
        for entity, date in self._ask(query, "entity", entities):
            if year := year_of(date):
                name = entity_of(entity)
                found[name] = min(found.get(name, 9999), int(year))
        return dict(sorted(found.items()))

    def _years_of_starts(self) -> dict[str, int]:
        """Return the years of entities that paths begin with, for hops that name a property."""
        found: dict[str, int] = {}
        for name, hop in self.paths.hops.items():
            if hop.source_year:
                found |= self._years(hop.source_year, self.links[name].keys())
        return found

    def _told_by(self, entities: set[str]) -> dict[str, frozenset[str]]:
        hops = self.paths.hops.values()
        names = {
            name
            for hop in hops
            for name in (*hop.told_by, *hop.source_told_by, *hop.source_not_told_by)
        }
        told = {}
        for name in sorted(names):
            query = f"SELECT DISTINCT ?entity WHERE {{ $values ?entity wdt:{name} ?told }}"
            told[name] = frozenset(
                entity_of(row[0]) for row in self._ask(query, "entity", entities)
            )
        return told

    def _sitelinks(self, entities: Iterable[str]) -> dict[str, int]:
        if not self.sitelinks_path:
            return {}
        query = f"SELECT ?entity ?number WHERE {{ $values ?entity {self.sitelinks_path} ?number }}"
        rows = self._ask(query, "entity", entities)
        return {entity_of(row[0]): _count(row[1:]) for row in rows}


def _pattern(name: str, inverse: bool, source: str, target: str) -> str:
    first, last = (target, source) if inverse else (source, target)
    return f"{first} wdt:{name} {last}"


def _property_path(steps: str) -> str:
    """Return "P19/^P17" as a SPARQL property path."""
    ways = [(step.startswith("^"), step.removeprefix("^")) for step in steps.split("/")]
    return "/".join(f"{'^' if inverse else ''}wdt:{name}" for inverse, name in ways)


def _statements(hop: Hop, name: str, inverse: bool) -> str:
    """Return the query for statements of every rank, with the precision of years."""
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
    """Return the number at the end of a row; 0 if there is none."""
    return int(rest[0].value) if rest and rest[0] and rest[0].value.isdecimal() else 0


def _is_exact(precision: Term | None) -> bool:
    return (
        precision is not None
        and precision.value.isdecimal()
        and int(precision.value) >= YEAR_PRECISION
    )
