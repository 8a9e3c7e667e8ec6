"""Flags for questions that remain doubtful although the source has an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from builders.compositions.chains import Chain, Edge, Knowledge
from builders.compositions.facts import UNKNOWN
from builders.compositions.paths import Hop
from builders.engine.plan import Flags

SHARED_NAME = "shared_name"
SEVERAL_VALUES = "several_values"
ONE_SIDED = "one_sided"
CONTESTED = "contested"
UNKNOWN_LIFE = "unknown_life"
LITTLE_KNOWN = "little_known"
CONTRADICTED = "contradicted"

DOUBTS: Mapping[str, str] = {
    SHARED_NAME: "something else of its kind has the name of the entity asked about",
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
        found = [frozenset(self._doubts(chain)) for chain in chains]
        flags = Flags.none(len(chains))
        for name in DOUBTS:
            flags = flags.mark(name, np.array([name in some for some in found], dtype=np.bool_))
        return flags

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
        others = self.knowledge.collected.namesakes.get(start, frozenset())
        return self.knowledge.collected.among(others, hop.source) or any(
            other != start and self.knowledge.links(hop.id, other)
            for other in self.knowledge.named(self.knowledge.label(start))
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
