"""Build chains that can be asked about from collected facts, each with all valid answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np

from builders.compositions.facts import UNKNOWN, Collected, Link
from builders.compositions.paths import Hop, Path
from builders.engine.draw.balanced import first_of_each
from builders.engine.plan import Flags, text_key
from builders.english.word_lists import data_table
from kb_cache.frequency import FUNCTION_WORDS
from kbprobe.arrays import Bools
from kbprobe.rng import RandomGenerator

_WORD = re.compile(r"[^\W_]+")
_NO_LABEL = re.compile(r"Q[0-9]+|.*[\\\x00-\x1f].*", re.DOTALL)
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())

SHORTEST_STEM = 4
"""Minimum length of a common prefix of two related words (*America*, *American*)."""


@cache
def _wrong_statements() -> frozenset[tuple[str, ...]]:
    """Return statements of Wikidata, as subject, property and object, that are not true."""
    entries = data_table("doubtful", "builders.compositions")["statements"]
    return frozenset(tuple(entry.split()) for entry in entries)


@cache
def _shared_titles() -> frozenset[str]:
    """Return titles of more than one well-known film, normalized."""
    return frozenset(map(same_text, data_table("doubtful", "builders.compositions")["titles"]))


LIFE = 100
"""Maximum lifetime in years of people whose death is not stated."""

LATEST = 9999


class Edge(NamedTuple):
    """A fact: a hop from an entity to a value, by one of the hop's properties."""

    hop: str
    source: str
    target: str
    way: int


class Chain(NamedTuple):
    """A question: a path, and the facts that lead from its start to the gold."""

    path: str
    edges: tuple[Edge, ...]

    @property
    def start(self) -> str:
        """The entity asked about."""
        return self.edges[0].source

    @property
    def carrier(self) -> str:
        """The entity whose value in the last fact is the answer."""
        return self.edges[-1].source

    @property
    def gold(self) -> str:
        """The answer."""
        return self.edges[-1].target

    @property
    def asked(self) -> str:
        """The question and its answer, regardless of the facts between them."""
        return f"{self.start} {self.gold}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes on the path, the start first and the gold last."""
        return (self.start, *(edge.target for edge in self.edges))


def number_of(node: str) -> int:
    """Return a key of a node for random generators: 42 for Q42, the negated year for a year."""
    return int(node[1:]) if node.startswith("Q") else -int(node)


def same_text(text: str) -> str:
    """Normalize case, punctuation and spaces, so that texts that read the same are equal."""
    return " ".join(_WORD.findall(text.casefold())) or text.casefold()


class Knowledge:
    """Queries on the collected facts, as questions need them."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self.paths = collected.paths

    def label(self, node: str) -> str:
        """Return the text of a node: its label, or the year itself."""
        return self.collected.labels.get(node, "") if node.startswith("Q") else node

    def links(self, hop: str, entity: str) -> Sequence[Link]:
        """Return all statements of a hop from an entity."""
        return self.collected.links.get(hop, {}).get(entity, ())

    def golds(self, hop: Hop, entity: str) -> list[Link]:
        """Return the statements that can give a gold: one for each value."""
        links = [link for link in self.links(hop.id, entity) if link.best]
        if hop.fallback and links:
            first = min(link.way for link in links)
            links = [link for link in links if link.way == first]
        by_target = {link.target: link for link in sorted(links, key=lambda link: -link.way)}
        return sorted(by_target.values())

    def is_of_a_class(self, hop: Hop, target: str) -> bool:
        """Return whether a hop's value is of one of the required classes."""
        collected = self.collected
        return hop.value == "year" or (
            collected.is_a(target, hop.target, hop.told_by)
            and not (hop.never and collected.is_a(target, hop.never))
        )

    def can_be_gold(self, hop: Hop, link: Link) -> bool:
        """Return whether a statement's value could be a choice."""
        label = self.label(link.target)
        return (
            link.target != UNKNOWN
            and link.exact
            and self.is_of_a_class(hop, link.target)
            and self.collected.has_occupation(link.target, hop.occupations)
            and bool(label)
            and not _NO_LABEL.fullmatch(label)
        )

    def ends(self, hops: Iterable[Hop], start: str) -> set[str]:
        """Return all nodes that hops reach from an entity, by statements of any rank and class."""
        reached = {start}
        for hop in hops:
            reached = {
                link.target
                for entity in reached
                for link in self.links(hop.id, entity)
                if link.target != UNKNOWN
            }
        return reached

    def last_facts(self, hops: Sequence[Hop]) -> list[tuple[str, Link]]:
        """Return all facts that end a path from any start: an entity and one of its statements."""
        entities = set(self.collected.links.get(hops[0].id, {}))
        for hop in hops[:-1]:
            entities = {link.target for entity in entities for link in self.links(hop.id, entity)}
        return [
            (entity, link)
            for entity in sorted(entities - {UNKNOWN}, key=number_of)
            for link in self.golds(hops[-1], entity)
        ]

    def share_a_country(self, entity: str, other: str) -> bool:
        """Return whether two entities share a country, or the country of one is unknown."""
        mine, others = self._countries(entity), self._countries(other)
        return not (mine and others) or not mine.isdisjoint(others)

    def _countries(self, node: str) -> frozenset[str]:
        known = self.collected
        return known.citizenship.get(node, frozenset()) | known.country.get(node, frozenset())

    @cached_property
    def _by_label(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for entity, label in self.collected.labels.items():
            found[same_text(label)].append(entity)
        return found

    def named(self, label: str) -> Sequence[str]:
        """Return all entities whose label reads the same."""
        return self._by_label.get(same_text(label), ())

    def valid(self, hops: Sequence[Hop], start: str) -> frozenset[str]:
        """Return all valid answers to a question, for every entity that it may refer to."""
        meant = {start, *self.named(self.label(start))}
        return frozenset().union(*(self.ends(hops, entity) for entity in meant))

    def has_several(self, hops: Sequence[Hop], start: str) -> bool:
        """Return whether a question has several valid answers."""
        return len(self.valid(hops, start)) > 1

    def other_readings(self, hops: Sequence[Hop], start: str) -> frozenset[str]:
        """Return answers under other readings of a question, such as a year of opening."""
        also = self.collected.also.get(hops[-1].id, {})
        meant = {start, *self.named(self.label(start))}
        bearers = set().union(*(self.ends(hops[:-1], entity) for entity in meant))
        return frozenset().union(*(also.get(entity, frozenset()) for entity in bearers))

    def died(self, node: str) -> int:
        """Return the year by which a person was dead, as far as known."""
        birth, death = self.collected.birth, self.collected.death
        return death.get(node, birth.get(node, LATEST - LIFE) + LIFE)

    def latest(self, hop: Hop, person: str) -> int:
        """Return the last year in which a person can have taken a step, as far as known."""
        died = self.died(person)
        if not hop.until_age or person not in self.collected.birth:
            return died
        return min(died, self.collected.birth[person] + hop.until_age)


def find_chains(knowledge: Knowledge, *, unambiguous: bool, dropped: Counter[str]) -> list[Chain]:
    """Find the chains that can be asked about, path by path; count the others by reason.

    Args:
        knowledge: what was collected.
        unambiguous: leave out questions that have several valid answers.
        dropped: counts by ``PATH: reason``, added to.
    """
    found = []
    for path in knowledge.paths.paths.values():
        hops = knowledge.paths.of(path)
        for start in sorted(knowledge.collected.links.get(hops[0].id, {}), key=number_of):
            for chain in _chains_from(knowledge, path, hops, start):
                reason = _reason_against(knowledge, hops, chain)
                if not reason and unambiguous and knowledge.has_several(hops, start):
                    reason = "several answers are valid (--unambiguous)"
                if reason:
                    dropped[f"{path.id}: {reason}"] += 1
                else:
                    found.append(chain)
    return found


def _chains_from(
    knowledge: Knowledge, path: Path, hops: Sequence[Hop], start: str
) -> Iterable[Chain]:
    partial: list[tuple[Edge, ...]] = [()]
    for hop in hops:
        partial = [
            (*edges, Edge(hop.id, entity, link.target, link.way))
            for edges in partial
            if (entity := edges[-1].target if edges else start) != UNKNOWN
            for link in knowledge.golds(hop, entity)
        ]
    return (Chain(path.id, edges) for edges in partial)


def _reason_against(knowledge: Knowledge, hops: Sequence[Hop], chain: Chain) -> str:
    """Return why a chain cannot be asked about; empty if it can."""
    collected = knowledge.collected
    for at, (hop, edge) in enumerate(zip(hops, chain.edges, strict=True)):
        if edge.target == UNKNOWN:
            return "the value is unknown, or no year after Christ"
        if hop.value == "year" and not all(
            link.exact
            for link in knowledge.links(hop.id, edge.source)
            if (link.target, link.way) == (edge.target, edge.way)
        ):
            return "the date is not exact to the year"
        # Later entities are described by the hop that leads to them.
        fits = at > 0 or collected.is_a(
            edge.source, hop.source, hop.source_told_by, hop.source_not_told_by
        )
        fits &= knowledge.is_of_a_class(hop, edge.target)
        if not fits:
            return "something on the way is not of the class asked for, or no class is stated"
        if not (
            collected.has_occupation(edge.source, hop.source_occupations)
            and collected.has_occupation(edge.target, hop.occupations)
        ):
            return "somebody on the way has other occupations"
        ends = (edge.source, edge.target)
        way = hop.ways[edge.way]
        stated = ends[::-1] if way.inverse else ends
        if (stated[0], way.name, stated[1]) in _wrong_statements():
            return "a reader found a fact on the way wrong"
        if at == 0 and ends[hop.listed == "to"] not in collected.listed[hop.id]:
            return "not among those that --min-sitelinks and --max-listed look up"
    if hops[-1].value == "year" and (
        any(knowledge.died(node) < int(chain.gold) for node in chain.nodes)
        or (len(hops) > 1 and knowledge.latest(hops[-2], chain.edges[-2].source) < int(chain.gold))
    ):
        return "the year is later than the life of somebody on the way"
    labels = [knowledge.label(node) for node in chain.nodes]
    if any(not label or _NO_LABEL.fullmatch(label) for label in labels):
        return "a label is missing, or no name"
    if len(set(chain.nodes)) < len(chain.nodes):
        return "the path is circular"
    gives_away = any(share_a_word(label, labels[-1]) for label in labels[:-1])
    if gives_away or any(map(share_a_word, labels, labels[1:])):
        return "a name gives an answer away"
    return ""


def share_a_word(one: str, other: str) -> bool:
    """Return whether two labels share a content word, or words with a common stem.

    >>> share_a_word("The Boston Band", "Boston")
    True
    """
    pairs = ((a, b) for a in _words(one) for b in _words(other))
    return any(a == b or _kin(a, b) for a, b in pairs)


def _words(label: str) -> list[str]:
    words = _WORD.findall(label.casefold())
    return [word for word in words if len(word) > 1 and word not in _FUNCTION_WORDS]


def _kin(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= SHORTEST_STEM and longer.startswith(shorter)


def cap(
    chains: list[Chain], most: Mapping[str, int], rng: RandomGenerator, dropped: Counter[str]
) -> list[Chain]:
    """Limit the chains of a path with the same start, carrier or gold; drop others at random.

    Args:
        chains: to choose from.
        most: attribute -> maximum number of chains; 0 for no limit.
        rng: the random generator.
        dropped: counts by ``PATH: reason``, added to.
    """
    words = {
        "asked": "question and answer",
        "start": "entity asked about",
        "carrier": "entity that bears the answer",
    }
    for name, limit in most.items():
        if not limit or not chains:
            continue
        cell = [text_key(name, chain.path, getattr(chain, name)) for chain in chains]
        identity = [text_key(chain.path, *chain.nodes) for chain in chains]
        keep = first_of_each(np.array(cell), limit, rng.child(name), np.array(identity))
        reason = f"beyond the most rows of one {words.get(name, name)}"
        chains = kept(chains, keep, reason, dropped)
    return chains


def one_path_for_each_bearer(
    chains: list[Chain], rng: RandomGenerator, dropped: Counter[str]
) -> list[Chain]:
    """Ask about each bearer of an answer on one path only, drawn from those that lead to it.

    Two paths would show its answer with different choices, so that it would be the one that recurs.
    """
    paths: dict[tuple[str, str], set[str]] = defaultdict(set)
    for chain in chains:
        paths[chain.edges[-1][:2]].add(chain.path)
    lot = rng.bits(np.array([text_key(*bearer) for bearer in paths], dtype=np.int64)).tolist()
    home = {
        bearer: sorted(some)[drawn % len(some)]
        for (bearer, some), drawn in zip(paths.items(), lot, strict=True)
    }
    keep = np.array([home[chain.edges[-1][:2]] == chain.path for chain in chains], dtype=np.bool_)
    return kept(chains, keep, "its answer is asked for on another path", dropped)


def kept(chains: Sequence[Chain], keep: Bools, reason: str, dropped: Counter[str]) -> list[Chain]:
    """Return the marked chains; count the others, path by path."""
    dropped.update(f"{chain.path}: {reason}" for chain in compress(chains, ~keep))
    return list(compress(chains, keep))


SHARED_NAME = "shared_name"
SEVERAL_VALUES = "several_values"
ONE_SIDED = "one_sided"
CONTESTED = "contested"
UNKNOWN_LIFE = "unknown_life"
LITTLE_KNOWN = "little_known"
CONTRADICTED = "contradicted"

DOUBTS: Mapping[str, str] = {
    SHARED_NAME: "something else of its kind has the name of the entity asked about, a band that "
    "of a person, or several films have its title and the source states no year",
    SEVERAL_VALUES: "a date, place or director on the path is one of several in the source",
    ONE_SIDED: "the source states a marriage of one spouse only",
    CONTESTED: "the source also calls a couple unmarried, or a place of study an employer",
    UNKNOWN_LIFE: "the source says neither when a student lived nor when enough others did who "
    "studied there, so the year cannot be checked",
    LITTLE_KNOWN: "the source knows few students of the place of study, which is often a small one "
    "or a school of a university",
    CONTRADICTED: "the year is later than the life of somebody else who studied there",
}
"""The flags that a question can have, and what they mean."""

WITNESSES = 5
"""Minimum number of other students with known dates to make a year credible."""

STUDENTS = 10
"""Minimum number of students in the source for a place of study to count as well known."""

SLACK = 10
"""Years by which another student may exceed the usual age before a date is doubtful."""


class Doubts:
    """Finds the flags of chains."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def of(self, chains: Sequence[Chain]) -> Flags:
        """Return the flags of some chains."""
        return Flags.of_lines(DOUBTS, [frozenset(self._doubts(chain)) for chain in chains])

    def _doubts(self, chain: Chain) -> Iterator[str]:
        hops = [self.knowledge.paths.hops[edge.hop] for edge in chain.edges]
        if self._shares_its_name(hops[0], chain.start):
            yield SHARED_NAME
        steps = list(zip(hops, chain.edges, strict=True))
        for at, (hop, edge) in enumerate(steps):
            links = self.knowledge.links(hop.id, edge.source)
            values = {link.target for link in links} - {UNKNOWN}
            if hop.single and len(values) > 1:
                yield SEVERAL_VALUES
            if hop.mutual:
                ways = {hop.ways[link.way] for link in links if link.target == edge.target}
                if len({way.inverse for way in ways}) < 2:
                    yield ONE_SIDED
            doubtful = self.knowledge.collected.contested.get(hop.id, {})
            if edge.target in doubtful.get(edge.source, ()):
                yield CONTESTED
            if hop.until_age and at + 1 < len(steps) and steps[at + 1][0].value == "year":
                yield from self._about_lives(hop, edge, int(steps[at + 1][1].target))

    def _shares_its_name(self, hop: Hop, start: str) -> bool:
        collected, label = self.knowledge.collected, self.knowledge.label(start)
        if (
            hop.source_year
            and start not in collected.years
            and same_text(label) in _shared_titles()
        ):
            return True
        # Questions say "the film"; people have their names only, which a band may have too.
        hops = [hop] if hop.source_year else self.knowledge.paths.hops.values()
        kinds = [kind for some in hops for kind in some.source]
        others = collected.namesakes.get(start, frozenset())
        return collected.among(others, kinds) or any(
            other != start and self.knowledge.links(hop.id, other)
            for other in self.knowledge.named(label)
        )

    def _about_lives(self, hop: Hop, edge: Edge, year: int) -> Iterator[str]:
        collected = self.knowledge.collected
        lives = collected.birth.keys() | collected.death.keys()
        students = self._who[hop.id].get(edge.target, [])
        if len(students) < STUDENTS:
            yield LITTLE_KNOWN
        known = [person for person in students if person in lives]
        if edge.source not in lives and len(known) < WITNESSES:
            yield UNKNOWN_LIFE
        if any(self.knowledge.latest(hop, person) + SLACK < year for person in known):
            yield CONTRADICTED

    @cached_property
    def _who(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Hop -> value -> the entities that have the value."""
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for name, links in self.knowledge.collected.links.items():
            for entity, some in links.items():
                for link in some:
                    found[name][link.target].append(entity)
        return found
