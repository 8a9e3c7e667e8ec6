"""The choices of questions: which answers may be shown together, and sets of them drawn at random.

The choices of a question are similar: nearby years, people of the same country, profession, gender
and era, or places in the same country. Of a choice set only some are golds.

The questions about one *bearer* of an answer (a band and its year, an actor and their spouse) show
the same choices; otherwise its answer would be the one choice that recurs. A choice set contains
the answers of as many bearers as a question has choices. At least one of them is not asked about in
any split, so that no answer can be found by eliminating those of other rows.

Guarantee, up to chance: an answer that is right for several bearers (a year, London) is right in
one of K rows that show it; an answer of a single bearer is in one set, and whether it is a gold
there does not depend on its text. A model that sees only the choices does no better than guessing.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from builders.compositions.chains import Edge, Knowledge, number_of, same_text
from builders.compositions.facts import UNKNOWN
from builders.compositions.paths import Hop
from builders.engine.plan import text_key
from kb_cache.frequency import zipf_frequencies
from kbprobe.arrays import Bools, Floats
from kbprobe.rng import RandomGenerator

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
        answers = {*(question.gold for question in asked), *others}
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
                [int(node) for node in question.valid | question.also if node.isdigit()]
                for question in self.asked
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
        for question in self.asked:
            meant = (question.valid | question.also) - {UNKNOWN}
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


DRAWS, SPARED = 8, 0.97
"""Number of draws to choose from, and the minimum size of a draw relative to the largest."""

FREQUENT = 3
"""Minimum number of bearers of an answer whose rows are balanced: learners may know its text."""

MOST = 0.8
"""Minimum share of a bearer's questions for which a distractor is wrong; others are dropped."""


class Bearer(NamedTuple):
    """An answer, with the questions about the entity that has it.

    Attributes:
        gold: the number of the answer.
        key: its identity.
        members: the questions; none if it is only a distractor.
    """

    gold: int
    key: int
    members: tuple[int, ...] = ()


class ChoiceSet(NamedTuple):
    """Answers that are shown together.

    Attributes:
        bearers: the bearers of the answers.
        asked: those that are asked about, with the questions that show the set.
        level: the pool that the answers come from.
    """

    bearers: tuple[Bearer, ...]
    asked: tuple[Bearer, ...]
    level: int

    @property
    def rows(self) -> int:
        """Number of questions that show the set."""
        return sum(len(bearer.members) for bearer in self.asked)


def draw_sets(
    rules: AnswerRules,
    bearers: Iterable[Bearer],
    size: int,
    rng: RandomGenerator,
    all_asked: bool = False,
) -> list[ChoiceSet]:
    """Put the answers of bearers in sets of ``size``, those with the most questions first.

    The pool of a level is exhausted before the next is used. With ``all_asked``, each answer of a
    set is a gold: then the choices reveal nothing, but elimination reveals everything.
    """
    return _ChoiceDraw(rules, list(bearers), size, rng, all_asked).run()


def draw_balanced(
    rules: AnswerRules, bearers: Sequence[Bearer], size: int, rng: RandomGenerator
) -> list[ChoiceSet]:
    """Draw sets several times, and return those whose choices reveal least about the gold.

    Rerandomization (Morgan & Rubin, 2012): few rows are balanced by chance alone in large samples
    only.
    """
    drawn = [draw_sets(rules, bearers, size, rng.child("draw", number)) for number in range(DRAWS)]
    rows = [sum(some.rows for some in sets) for sets in drawn]
    able = [sets for sets, count in zip(drawn, rows, strict=True) if count >= SPARED * max(rows)]
    labels = [rules.knowledge.label(gold) for gold in rules.golds]
    looks = np.array([[len(label) for label in labels], zipf_frequencies(labels)])
    return min(able, key=lambda sets: _told(sets, looks))


def _told(sets: Sequence[ChoiceSet], looks: Floats) -> float:
    """Return how far choices deviate from being right in 1 of K rows that show them.

    Squared deviations are summed over the choices that are first and last by each of ``looks``
    (looks, golds), and by how often they are shown. Single texts are not balanced: if each were
    right in exactly its share of rows, those already used could be eliminated.
    """
    shown = [
        [bearer.gold, *(other.gold for other in some.bearers if other.gold != bearer.gold)]
        for some in sets
        for bearer in some.asked
    ]
    if not shown:
        return 0.0
    choices = np.array(shown)
    rows = np.array([len(bearer.members) for some in sets for bearer in some.asked])
    share = 1 / choices.shape[1]
    times = np.bincount(choices.ravel(), np.repeat(rows, choices.shape[1]), looks.shape[1])
    told = 0.0
    looks = np.concatenate([looks, times[None]])
    for values in (*looks[:, choices], *-looks[:, choices]):
        first = values == values.max(axis=1, keepdims=True)
        told += float((rows * (first[:, 0] / first.sum(axis=1) - share)).sum() ** 2)
    return told


class _ChoiceDraw:
    """The bearers that are in no set yet, and how often each answer was shown.

    Attributes:
        waiting: number -> a bearer that is not in a set yet.
        free: answers that may be distractors any number of times, each as a separate bearer.
        due: (golds,) rows in which an answer of many bearers is still to be a distractor.
    """

    def __init__(
        self,
        rules: AnswerRules,
        bearers: list[Bearer],
        size: int,
        rng: RandomGenerator,
        all_asked: bool,
    ) -> None:
        self.rules = rules
        self.size = size
        self.all_asked = all_asked
        keys = np.array([bearer.key for bearer in bearers], dtype=np.int64)
        lot = rng.child("order").bits(keys).tolist()
        some = 1 + rng.child("asked").below(size - 1, keys)
        self.asked = [size] * len(bearers) if all_asked else some.tolist()
        order = sorted(range(len(bearers)), key=lambda at: (-len(bearers[at].members), lot[at]))
        self.waiting = {at: bearers[at] for at in order}
        times = Counter(bearer.gold for bearer in bearers if bearer.members)
        self.frequent = np.array([times[gold] >= FREQUENT for gold in range(len(rules.golds))])
        names = np.arange(len(rules.golds), dtype=np.int64)
        self.free = [Bearer(int(gold), 0) for gold in np.argsort(rng.child("free").bits(names))]
        self.due = np.zeros(names.size)
        for bearer in bearers:
            self.due[bearer.gold] += (size - 1) * len(bearer.members)

    def run(self) -> list[ChoiceSet]:
        """Return the sets."""
        sets = []
        for level, lend in self.rules.stages:
            for at, first in list(self.waiting.items()):
                if at in self.waiting and first.members and (drawn := self._set(at, level, lend)):
                    sets.append(drawn)
                    for bearer in drawn.bearers:
                        self.due[bearer.gold] -= drawn.rows
                    for bearer in drawn.asked:
                        self.due[bearer.gold] += len(bearer.members)
        return sets if self.all_asked else self._balanced(sets)

    def _set(self, first: int, level: int, lend: bool) -> ChoiceSet | None:
        """Complete a bearer's set; return None if there are too few partners."""
        near = self.rules.near(level)[self.waiting[first].gold]
        others = [at for at, bearer in self.waiting.items() if near[bearer.gold]]
        asked = [at for at in others if self.waiting[at].members]
        free = [bearer for bearer in self.free if near[bearer.gold] and not self.all_asked]
        # The answers that have been distractors least often come first.
        free.sort(key=lambda bearer: -self.due[bearer.gold])
        often = [bearer for bearer in free if self.frequent[bearer.gold]]
        chosen = [self.waiting[first]]
        taken = [first]
        for at in asked:
            if len(chosen) < self.asked[first] and self._fits(level, self.waiting[at], chosen):
                chosen.append(self.waiting[at])
                taken.append(at)
        number = len(chosen)
        for some in (
            [bearer for bearer in often if self.due[bearer.gold] > 0],
            [at for at in others if at not in asked and not self.frequent[self.waiting[at].gold]],
            [bearer for bearer in free if not self.rules.stated[bearer.gold]],
            asked[::-1] if lend else [],
            often,
        ):
            for other in some:
                bearer = self.waiting[other] if isinstance(other, int) else other
                if len(chosen) < self.size and self._fits(level, bearer, chosen):
                    chosen.append(bearer)
                    taken += [other] if isinstance(other, int) else []
        if len(chosen) < self.size:
            return None
        for at in taken:
            del self.waiting[at]
        return ChoiceSet(tuple(chosen), self._answerable(chosen[:number], chosen), level)

    def _answerable(self, asked: Sequence[Bearer], shown: Sequence[Bearer]) -> tuple[Bearer, ...]:
        """Leave out the questions to which a distractor is a right answer."""
        kept = []
        for bearer in asked:
            others = [other.gold for other in shown if other is not bearer]
            members = [
                member
                for member in bearer.members
                if all(self.rules.is_false(member, gold) for gold in others)
            ]
            kept.append(bearer._replace(members=tuple(members)))
        return tuple(kept)

    def _fits(self, level: int, bearer: Bearer, chosen: Sequence[Bearer]) -> bool:
        near = self.rules.near(level)[bearer.gold]
        return all(near[other.gold] and fit(self.rules, bearer, other) for other in chosen)

    def _balanced(self, sets: list[ChoiceSet]) -> list[ChoiceSet]:
        """Limit each frequent answer to its share of the rows that show it."""
        for gold in np.flatnonzero(self.frequent).tolist():
            while True:
                shown = [
                    some for some in sets if any(bearer.gold == gold for bearer in some.bearers)
                ]
                mine = [(at, bearer) for at, some in enumerate(sets) for bearer in some.asked]
                mine = [(at, bearer) for at, bearer in mine if bearer.gold == gold]
                right = sum(len(bearer.members) for _, bearer in mine)
                if not mine or self.size * (right - 2) <= sum(some.rows for some in shown):
                    break
                at, least = min(mine, key=lambda pair: (len(pair[1].members), pair[1].key))
                asked = tuple(bearer for bearer in sets[at].asked if bearer is not least)
                sets[at] = sets[at]._replace(asked=asked)
        return [some for some in sets if some.rows]


def draw_each(
    rules: AnswerRules, bearers: Sequence[Bearer], size: int, rng: RandomGenerator
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Draw distractors for each question separately: the answers used least so far.

    Returns:
        Each question that has enough wrong answers, with these answers and their levels.
    """
    used = np.zeros(len(rules.golds), dtype=np.int64)
    drawn = []
    for bearer in bearers:
        chosen: list[tuple[int, int]] = []
        taken = [bearer]
        for level in range(rules.levels):
            others = np.flatnonzero(rules.near(level)[bearer.gold])
            lot = rng.bits(bearer.key, others)
            for other in others[np.lexsort((lot, used[others]))].tolist():
                candidate = Bearer(other, 0)
                if len(taken) < size and all(fit(rules, candidate, some) for some in taken):
                    chosen.append((other, level))
                    taken.append(candidate)
        if len(taken) == size:
            used[[other for other, _ in chosen]] += 1
            drawn += [(member, chosen) for member in bearer.members]
    return drawn


def fit(rules: AnswerRules, bearer: Bearer, other: Bearer) -> bool:
    """Return whether two answers differ, and each is wrong for most of the other's questions."""
    return rules.differ(bearer.gold, other.gold) and all(
        sum(rules.is_false(member, gold) for member in members) >= MOST * len(members)
        for members, gold in ((bearer.members, other.gold), (other.members, bearer.gold))
    )
