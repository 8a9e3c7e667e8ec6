"""Choice groups that the questions about one entity share.

A question's answer is borne by an entity on its path: a year by a band, a spouse by an actor. Were
each question to get other distractors, whoever sees all questions about one band would know its
year: the one choice that recurs. So the golds of *bearers* stand together, not those of single
questions: three bands and their years are found, and then as many questions about each, all of
which show the same three years.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builders.compositions.chains import Edge
from builders.compositions.choices import AnswerRules
from builders.engine.draw.groups import ChoiceGroup, GroupRules, search_groups
from builders.engine.plan import text_key
from kbprobe.arrays import Bools
from kbprobe.rng import RandomGenerator

Fact = tuple[str, str, str]
"""A hop, the entity that has the answer, and the answer."""


class Bearer(NamedTuple):
    """An entity that has an answer, or several that share one, with the questions about them.

    Attributes:
        gold: the number of the answer.
        key: its identity.
        facts: the facts that tell the answer: one for each entity.
        members: the questions.
    """

    gold: int
    key: int
    facts: tuple[Fact, ...]
    members: tuple[int, ...]


def shared_groups(
    rules: AnswerRules, last: Sequence[Edge], size: int, rng: RandomGenerator
) -> list[ChoiceGroup]:
    """Put questions in groups of ``size`` such that all about one bearer show the same choices.

    Bearers with many questions come first, and stand beside others with as many, or several of
    one answer that have as many together; so few questions are left over.

    Args:
        rules: those of the questions.
        last: of each question, the fact that tells its answer.
        size: questions of a group: the number of choices.
        rng: the random generator.
    """
    groups: list[ChoiceGroup] = []
    left = _bearers(rules, last, rng)
    sizes = sorted({len(one.members) for one in left}, reverse=True)
    last_level = rules.levels - 1
    for rows, level in (
        *((rows, level) for rows in sizes for level in range(last_level)),
        *((rows, last_level) for rows in sizes),
    ):
        waiting = _bundles(left, rows)
        if len(waiting) < size:
            continue
        stage = _BearerRules(rules, waiting, level, rows)
        taken: set[Fact] = set()
        for found in search_groups(stage, size, rng.child("bearers", level, rows)):
            some = [waiting[at] for at in found.members]
            members = [_answerable(rules, one, some)[:rows] for one in some]
            if count := min(map(len, members)):
                questions = zip(*(one[:count] for one in members), strict=True)
                groups += [ChoiceGroup(one, level) for one in questions]
                taken.update(fact for one in some for fact in one.facts)
        left = [one for one in left if taken.isdisjoint(one.facts)]
    return groups


def _bearers(rules: AnswerRules, last: Sequence[Edge], rng: RandomGenerator) -> list[Bearer]:
    """Return single bearers, those with most questions first."""
    found: dict[Fact, list[int]] = defaultdict(list)
    for at in np.argsort(rng.child("members").bits(rules.row_keys), kind="stable").tolist():
        found[last[at][:3]].append(at)
    bearers = [
        Bearer(rules.gold[members[0]], text_key(*fact), (fact,), tuple(members))
        for fact, members in sorted(found.items())
    ]
    return sorted(bearers, key=lambda one: -len(one.members))


def _bundles(bearers: Sequence[Bearer], rows: int) -> list[Bearer]:
    """Put bearers of one answer together until they have ``rows`` questions; drop the others.

    What a bundle cannot use of its last bearer would be left over, so one that fits is preferred.
    """
    by_gold: dict[int, list[Bearer]] = defaultdict(list)
    for one in bearers:
        by_gold[one.gold].append(one)
    found = []
    for gold, some in by_gold.items():
        waiting = list(some)
        while waiting:
            bundle = [waiting.pop(0)]
            total = len(bundle[0].members)
            for one in list(waiting):
                if total + len(one.members) <= rows:
                    bundle.append(one)
                    waiting.remove(one)
                    total += len(one.members)
            if total >= rows:
                facts = tuple(fact for one in bundle for fact in one.facts)
                members = tuple(member for one in bundle for member in one.members)
                found.append(Bearer(gold, bundle[0].key, facts, members))
    return found


def _answerable(rules: AnswerRules, one: Bearer, group: Sequence[Bearer]) -> list[int]:
    """The questions of a bearer to which all other golds of the group are wrong answers."""
    others = [other.gold for other in group if other is not one]
    return [
        member for member in one.members if all(rules.is_false(member, gold) for gold in others)
    ]


class _BearerRules(GroupRules):
    """The rules of questions, of one level, for bearers with at least so many rows."""

    levels = 1

    def __init__(
        self, rules: AnswerRules, bearers: Sequence[Bearer], level: int, rows: int
    ) -> None:
        self.rules = rules
        self.bearers = bearers
        self.level = level
        self.rows = rows
        self.gold: Sequence[int] = [one.gold for one in bearers]
        self.row_keys = np.array([one.key for one in bearers], dtype=np.int64)
        self.gold_keys = rules.gold_keys

    def alike(self, level: int, gold: int) -> Bools:
        """Mark the golds that may stand beside one at the rules' level."""
        return self.rules.alike(self.level, gold)

    def differ(self, one: int, other: int) -> bool:
        """Tell whether two golds may stand in one group."""
        return self.rules.differ(one, other)

    def is_false(self, row: int, gold: int) -> bool:
        """Tell whether a gold is a wrong answer to enough of a bearer's questions."""
        members = self.bearers[row].members
        return sum(self.rules.is_false(member, gold) for member in members) >= self.rows
