"""Which answers may stand together: rules for the choices of questions about paths and facts.

The choices of a question are alike: years near each other, people of one country, profession,
gender and era, places of one country. See :mod:`builders.compositions.draws`.
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
"""The rule's own pool first (of no name), then those to which it is widened, step by step."""

NEAR_YEARS = 3
"""How far apart near years are at most: times what they are at least."""

ERA = 25
"""Years between the births of people of one era."""

ALIKE_SITELINKS = 4.0
"""The better known of two has at most so many times the sitelinks of the other."""


class OpenQuestion(NamedTuple):
    """A question that needs distractors.

    Attributes:
        key: its identity.
        gold: the node of its answer.
        valid: all its valid answers.
        also: what it may mean as well, and what lies on the way; no distractors either.
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
    """Tells, for the golds of some questions and other answers, which may stand together.

    Attributes:
        golds: all answers, each a node.
        number: node -> its place in ``golds``.
        stated: (golds,) whether an answer is one of the path's, wherever that begins.
        levels: how many pools distractors are looked for in, the narrowest first.
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
        """The levels in turn, each with whether questions may be given up for their answers.

        There are always enough years.
        """
        lend = (False,) if self.hop.value == "year" else (False, True)
        return itertools.product(range(self.levels), lend)

    def _golds_not_false(self) -> list[frozenset[int]]:
        """Return, of each question, the answers that are not wrong.

        Of places, neither those that a right one lies in nor those that lie in it are wrong.
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
        """Mark in a (golds, golds) matrix which may be distractors of which at a level."""
        return self._near[level]

    def is_false(self, row: int, gold: int) -> bool:
        """Tell whether a gold is a wrong answer to a question."""
        return gold not in self._not_false[row]

    def differ(self, one: int, other: int) -> bool:
        """Tell whether two golds read so differently that they may stand together.

        A name may not hold the other as a whole: *Germany* and *Nazi Germany*.
        """
        if self.hop.value == "year":
            return abs(int(self.golds[one]) - int(self.golds[other])) >= self.hop.apart
        mine, others = self._words[one], self._words[other]
        return not (mine <= others or others <= mine)


def all_years(years: set[str]) -> set[str]:
    """All years from the first to the last of some."""
    numbers = [int(year) for year in years]
    return {str(year) for year in range(min(numbers, default=0), max(numbers, default=-1) + 1)}


def _further(knowledge: Knowledge, hop: Hop, answers: set[str]) -> set[str]:
    """Return what may be a distractor though it is no answer of the path: a year, a place."""
    if hop.choices == "near_years":
        return all_years(answers)
    if hop.choices != "same_country":
        return set()
    places = knowledge.collected.country
    return {node for node in places if knowledge.label(node) and knowledge.is_of_a_class(hop, node)}


Nearness = Sequence[Bools]
"""Of each level, a (golds, golds) matrix of what may stand beside what."""


def _years(rules: AnswerRules) -> Nearness:
    years = np.array([int(gold) for gold in rules.golds])
    near = np.abs(years[:, None] - years) <= NEAR_YEARS * rules.hop.apart
    return near & rules.stated, near


def _people(rules: AnswerRules) -> Nearness:
    known = rules.knowledge.collected
    born = np.array([float(known.birth.get(gold, np.nan)) for gold in rules.golds])
    apart = np.abs(born[:, None] - born) > ERA  # False where either is not known
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
    """Mark those that share none of their things, though some of both are known."""
    known = np.array([bool(things.get(gold)) for gold in rules.golds])
    return np.asarray(~_shared(rules, things) & known & known[:, None])


def _alike_in_sitelinks(rules: AnswerRules) -> Bools:
    links = rules.knowledge.collected.sitelinks
    number: Floats = np.array([float(links.get(gold, np.nan)) for gold in rules.golds]) + 1
    ratio = number / number[:, None]
    # NaN, where either is not known, is not apart.
    return np.asarray(~((ratio > ALIKE_SITELINKS) | (ratio < 1 / ALIKE_SITELINKS)))


_NEARNESS: Mapping[str, Callable[[AnswerRules], Nearness]] = {
    "near_years": _years,
    "like_people": _people,
    "same_country": _places,
    "same_kind": _kinds,
}
