"""Which answers may stand together: rules for choice groups of questions about paths and facts.

The golds of a group are alike (years near each other, people of one gender and era, places of one
country), and each is a wrong answer to the others' questions. See
:mod:`builders.engine.draw.groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from builders.compositions.chains import Edge, Knowledge, number_of, same_text
from builders.compositions.facts import UNKNOWN
from builders.compositions.paths import Hop
from builders.engine.draw.groups import GroupRules
from builders.engine.plan import text_key
from kbprobe.arrays import Bools, Floats, Ints

LEVELS: Mapping[str, tuple[str, ...]] = {
    "near_years": ("", "within 60 years", "any year"),
    "like_people": ("", "unlike in nothing known", "any person"),
    "same_country": ("", "any country"),
    "same_kind": ("", "any kind"),
}
"""The rule's own pool first (of no name), then those to which it is widened, step by step."""

NEAR_YEARS = (25, 60)
LEAST_GAP = 5
"""Years between two choices, and between a distractor and all valid answers: sources differ."""

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
        also: what it may mean as well; no distractors either.
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
            knowledge.other_readings(hops, nodes[0]),
        )


class AnswerRules(GroupRules):
    """Tells, for the golds of some questions, which may stand together and which are alike."""

    def __init__(self, knowledge: Knowledge, rule: str, asked: Sequence[OpenQuestion]) -> None:
        self.knowledge = knowledge
        self.rule = rule
        self.asked = asked
        self.golds = sorted({one.gold for one in asked}, key=number_of)
        number = {gold: at for at, gold in enumerate(self.golds)}
        self.gold: Sequence[int] = [number[one.gold] for one in asked]
        self.row_keys = np.array([one.key for one in asked], dtype=np.int64)
        self.gold_keys = np.array([number_of(gold) for gold in self.golds], dtype=np.int64)
        self.levels = len(LEVELS[rule])
        self._words = [frozenset(same_text(knowledge.label(gold)).split()) for gold in self.golds]
        self._not_false = [self._barred(one) for one in asked]
        self._alike = _LIKENESS[rule](knowledge, self.golds)

    def _barred(self, one: OpenQuestion) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes and the texts that are no wrong answers to a question."""
        areas = self.knowledge.collected.areas
        meant = (one.valid | one.also) - {UNKNOWN}
        around = frozenset().union(*(areas.get(node, frozenset()) for node in meant))
        texts = frozenset(same_text(self.knowledge.label(node)) for node in meant)
        return meant | around, texts

    def alike(self, level: int, gold: int) -> Bools:
        """Mark the golds that may stand beside one at a level."""
        found = self._alike(level, gold)
        found[gold] = False
        return found

    def is_false(self, row: int, gold: int) -> bool:
        """Tell whether a gold is a wrong answer to a question."""
        nodes, texts = self._not_false[row]
        name = self.golds[gold]
        if self.rule == "near_years":
            return all(abs(int(name) - int(year)) >= LEAST_GAP for year in nodes)
        areas = self.knowledge.collected.areas.get(name, frozenset())
        return (
            name not in nodes
            and areas.isdisjoint(self.asked[row].valid | self.asked[row].also)
            and same_text(self.knowledge.label(name)) not in texts
        )

    def differ(self, one: int, other: int) -> bool:
        """Tell whether two golds read so differently that they may stand together.

        A name may not hold the other as a whole: *Germany* and *Nazi Germany*.
        """
        if self.rule == "near_years":
            return abs(int(self.golds[one]) - int(self.golds[other])) >= LEAST_GAP
        mine, others = self._words[one], self._words[other]
        return not (mine <= others or others <= mine)


Likeness = Callable[[int, int], Bools]


def _years(_: Knowledge, golds: Sequence[str]) -> Likeness:
    years = np.array([int(gold) for gold in golds])

    def alike(level: int, gold: int) -> Bools:
        if level >= len(NEAR_YEARS):
            return np.ones(years.size, dtype=np.bool_)
        return np.asarray(np.abs(years - years[gold]) <= NEAR_YEARS[level])

    return alike


def _people(knowledge: Knowledge, golds: Sequence[str]) -> Likeness:
    collected = knowledge.collected
    gender, known = _incidence([collected.gender.get(gold, frozenset()) for gold in golds])
    born = np.array([float(collected.birth.get(gold, np.nan)) for gold in golds])
    popular = _alike_in_sitelinks(knowledge, golds)

    def alike(level: int, gold: int) -> Bools:
        if level == 2:
            return np.ones(born.size, dtype=np.bool_)
        shared = (gender @ gender[gold]) > 0
        if level == 1:
            shared |= ~known | ~known[gold]
        apart = np.abs(born - born[gold]) > ERA  # False where either is not known
        return np.asarray(shared & ~apart & (popular(gold) | (level == 1)))

    return alike


def _sharing(
    knowledge: Knowledge, golds: Sequence[str], things: Mapping[str, frozenset[str]]
) -> Likeness:
    """Alike are those that share one of their things, and are about as well known."""
    held, _ = _incidence([things.get(gold, frozenset()) for gold in golds])
    popular = _alike_in_sitelinks(knowledge, golds)

    def alike(level: int, gold: int) -> Bools:
        if level:
            return np.ones(len(golds), dtype=np.bool_)
        return np.asarray(((held @ held[gold]) > 0) & popular(gold))

    return alike


def _incidence(sets: Sequence[frozenset[str]]) -> tuple[Ints, Bools]:
    """Return (lines, things) 0 and 1, and which lines hold anything."""
    column = {thing: at for at, thing in enumerate(sorted(frozenset().union(*sets)))}
    matrix = np.zeros((len(sets), len(column)), dtype=np.int64)
    for line, things in enumerate(sets):
        matrix[line, [column[thing] for thing in things]] = 1
    return matrix, np.asarray(matrix.any(axis=1))


def _alike_in_sitelinks(knowledge: Knowledge, golds: Sequence[str]) -> Callable[[int], Bools]:
    links = knowledge.collected.sitelinks
    number: Floats = np.array([float(links.get(gold, np.nan)) for gold in golds])

    def alike(gold: int) -> Bools:
        ratio = (number + 1) / (number[gold] + 1)
        apart = (ratio > ALIKE_SITELINKS) | (ratio < 1 / ALIKE_SITELINKS)
        return np.asarray(~apart)  # NaN, where either is not known, is not apart

    return alike


_LIKENESS: Mapping[str, Callable[[Knowledge, Sequence[str]], Likeness]] = {
    "near_years": _years,
    "like_people": _people,
    "same_country": lambda known, golds: _sharing(known, golds, known.collected.country),
    "same_kind": lambda known, golds: _sharing(known, golds, known.collected.classes),
}
