"""Rules for which answers may be choices of the same question about a path or fact.

The choices of a question are similar: nearby years, people of the same country, profession, gender
and era, or places in the same country. See :mod:`builders.compositions.draws`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from builders.compositions.chains import Edge, Knowledge, number_of, same_text
from builders.compositions.facts import UNKNOWN
from builders.compositions.paths import Hop
from builders.engine.plan import text_key
from kbprobe.arrays import Bools, Floats

LEVELS: Mapping[str, tuple[str, ...]] = {
    "near_years": ("", "another near year"),
    "like_people": ("", "unlike in nothing known", "any person"),
    "same_country": ("", "another place of the country", "any country"),
    "same_kind": ("", "any kind"),
}
"""Rule -> its pools of answers, from its own (without a name) to successively wider ones."""

NEAR_YEARS = 3
"""Maximum distance of nearby years, as a multiple of the minimum distance."""

ERA = 25
"""Maximum number of years between the births of people of the same era."""

ALIKE_SITELINKS = 4.0
"""Maximum ratio of the sitelinks of two answers that are equally well known."""


class OpenQuestion(NamedTuple):
    """A question that needs distractors.

    Attributes:
        key: its identity.
        gold: the node of its answer.
        valid: all its valid answers.
        also: answers under other readings, and nodes on the path; these are no distractors either.
    """

    key: int
    gold: str
    valid: frozenset[str]
    also: frozenset[str] = frozenset()

    @classmethod
    def about(
        cls, knowledge: Knowledge, hops: Sequence[Hop], edges: Sequence[Edge]
    ) -> OpenQuestion:
        """Return the question that asks for the end of some hops."""
        nodes = (edges[0].source, *(edge.target for edge in edges))
        return cls(
            text_key(*(nodes if len(edges) > 1 else edges[0][:3])),
            nodes[-1],
            knowledge.valid(hops, nodes[0]),
            knowledge.other_readings(hops, nodes[0]).union(nodes[:-1]),
        )


class AnswerRules:
    """Determines which of the golds of some questions and other answers may be shown together.

    Attributes:
        golds: all answers, each a node.
        number: node -> its index in ``golds``.
        stated: (golds,) whether an answer ends the path from any start.
        levels: number of pools in which distractors are searched, narrowest first.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        hop: Hop,
        asked: Sequence[OpenQuestion],
        others: Iterable[str] = (),
    ) -> None:
        self.knowledge = knowledge
        self.hop = hop
        self.asked = asked
        answers = {*(one.gold for one in asked), *others}
        self.golds = sorted(answers | _further(knowledge, hop, answers), key=number_of)
        self.stated = np.array([gold in answers for gold in self.golds])
        self.number = {gold: at for at, gold in enumerate(self.golds)}
        self.levels = len(LEVELS[hop.choices])
        self._words = [frozenset(same_text(knowledge.label(gold)).split()) for gold in self.golds]
        self._not_false = self._golds_not_false()
        self._near = _NEARNESS[hop.choices](self)

    @property
    def stages(self) -> Iterable[tuple[int, bool]]:
        """The levels in turn, each with whether questions may be dropped to use their answers.

        There are always enough years.
        """
        lend = (False,) if self.hop.value == "year" else (False, True)
        return itertools.product(range(self.levels), lend)

    def _golds_not_false(self) -> list[frozenset[int]]:
        """Return for each question the answers that are not clearly wrong.

        For places, neither those that contain a right one nor those inside it are clearly wrong.
        """
        if self.hop.value == "year":
            years = [
                [int(node) for node in one.valid | one.also if node.isdigit()] for one in self.asked
            ]
            return [
                frozenset(
                    number
                    for year in some
                    for near in range(year - self.hop.apart + 1, year + self.hop.apart)
                    if (number := self.number.get(str(near))) is not None
                )
                for some in years
            ]
        areas = self.knowledge.collected.areas
        by_name: dict[str, set[int]] = defaultdict(set)
        for gold, at in self.number.items():
            for name in (gold, same_text(self.knowledge.label(gold)), *areas.get(gold, ())):
                by_name[name].add(at)
        found = []
        for one in self.asked:
            meant = (one.valid | one.also) - {UNKNOWN}
            around = {name for node in meant for name in areas.get(node, ())}
            texts = {same_text(self.knowledge.label(node)) for node in meant}
            some = [by_name[name] for name in meant | texts if name in by_name]
            inside = {self.number[name] for name in around if name in self.number}
            found.append(frozenset().union(inside, *some))
        return found

    def near(self, level: int) -> Bools:
        """Return (golds, golds) which answers may be distractors of which at a level."""
        return self._near[level]

    def is_false(self, row: int, gold: int) -> bool:
        """Return whether a gold is a wrong answer to a question."""
        return gold not in self._not_false[row]

    def differ(self, one: int, other: int) -> bool:
        """Return whether two golds differ enough in their texts to be shown together.

        One name may not contain all of the other: *Germany* and *Nazi Germany*.
        """
        if self.hop.value == "year":
            return abs(int(self.golds[one]) - int(self.golds[other])) >= self.hop.apart
        mine, others = self._words[one], self._words[other]
        return not (mine <= others or others <= mine)


def all_years(years: set[str]) -> set[str]:
    """Return all years from the first to the last of some years."""
    numbers = [int(year) for year in years]
    return {str(year) for year in range(min(numbers, default=0), max(numbers, default=-1) + 1)}


def _further(knowledge: Knowledge, hop: Hop, answers: set[str]) -> set[str]:
    """Return possible distractors that are not answers of the path: years or places."""
    if hop.choices == "near_years":
        return all_years(answers)
    if hop.choices != "same_country":
        return set()
    places = knowledge.collected.country
    return {node for node in places if knowledge.label(node) and knowledge.is_of_a_class(hop, node)}


Nearness = Sequence[Bools]
"""For each level, a (golds, golds) matrix of which answers may be shown together."""


def _years(rules: AnswerRules) -> Nearness:
    years = np.array([int(gold) for gold in rules.golds])
    near = np.abs(years[:, None] - years) <= NEAR_YEARS * rules.hop.apart
    return near & rules.stated, near


def _people(rules: AnswerRules) -> Nearness:
    known = rules.knowledge.collected
    born = np.array([float(known.birth.get(gold, np.nan)) for gold in rules.golds])
    apart = np.abs(born[:, None] - born) > ERA  # false if either is unknown
    apart |= _unlike(rules, known.gender)
    popular = _alike_in_sitelinks(rules)
    like = _shared(rules, known.citizenship) & _shared(rules, known.occupations)
    unlike = _unlike(rules, known.citizenship) | _unlike(rules, known.occupations)
    return like & ~apart & popular, ~apart & ~unlike, np.ones_like(apart)


def _places(rules: AnswerRules) -> Nearness:
    near = _shared(rules, rules.knowledge.collected.country) & _alike_in_sitelinks(rules)
    return near & rules.stated, near, np.tile(rules.stated, (rules.stated.size, 1))


def _kinds(rules: AnswerRules) -> Nearness:
    shared = _shared(rules, rules.knowledge.collected.classes)
    return shared & _alike_in_sitelinks(rules), np.ones_like(shared)


def _shared(rules: AnswerRules, things: Mapping[str, frozenset[str]]) -> Bools:
    sets = [things.get(gold, frozenset()) for gold in rules.golds]
    column = {thing: at for at, thing in enumerate(sorted(frozenset().union(*sets)))}
    matrix = np.zeros((len(sets), len(column)), dtype=np.float32)
    for line, own in enumerate(sets):
        matrix[line, [column[thing] for thing in own]] = 1
    return np.asarray(matrix @ matrix.T > 0)


def _unlike(rules: AnswerRules, things: Mapping[str, frozenset[str]]) -> Bools:
    """Mark pairs of golds that have known things, but none in common."""
    known = np.array([bool(things.get(gold)) for gold in rules.golds])
    return np.asarray(~_shared(rules, things) & known & known[:, None])


def _alike_in_sitelinks(rules: AnswerRules) -> Bools:
    links = rules.knowledge.collected.sitelinks
    number: Floats = np.array([float(links.get(gold, np.nan)) for gold in rules.golds]) + 1
    ratio = number / number[:, None]
    # NaN (either is unknown) does not count as different.
    return np.asarray(~((ratio > ALIKE_SITELINKS) | (ratio < 1 / ALIKE_SITELINKS)))


_NEARNESS: Mapping[str, Callable[[AnswerRules], Nearness]] = {
    "near_years": _years,
    "like_people": _people,
    "same_country": _places,
    "same_kind": _kinds,
}
