"""Which questions about two properties can be asked, of which gold, with which distractors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import first_of_each, ranks_within, sorted_by
from builders.properties.facts import PLACE, Evidence
from kb_cache.graph import Graph
from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    contains,
    joined,
    lines_of,
    ragged_ranges,
    sorted_unique,
)
from kbprobe.rng import RandomGenerator

OVERSAMPLING = 6
"""Questions looked at for a gold of property_conjunction_but_not, in multiples of its cap."""

NEITHER = 96
"""Concepts looked at for one that has neither property."""

FEW = 1.2
"""A relation may have this many times its share were all alike, where there are few."""

TRIES = 96
"""Sets of distractors looked at for a question."""

PASSES, STEP, LIMIT = 24, 0.3, 30
"""How often the weights of sets of distractors are fitted, and how far (as a logarithm)."""

EXCESS, UNEVEN, SLACK = 1.35, 1.1, 6
"""A label may be gold this many times as often as its uses as a distractor allow, a rank this many
times as often as others; both a few more times, in a small split."""

ROUNDS = 10
"""How often rows that tip the balance are dropped, and the rest redrawn."""


class PropertyPairs(NamedTuple):
    """Questions with their golds: parallel arrays, of places in `Evidence`."""

    gold: Ints
    first: Ints
    second: Ints


class Sides(NamedTuple):
    """What may stand as a distractor: parallel arrays; ``row`` is a line of the questions.

    Distractors of one side are wrong by the second property, those of the other by the first. Each
    row needs both.
    """

    row: Ints
    node: Ints
    side: Ints

    @classmethod
    def of(cls, *sides: tuple[Ints, Ints]) -> Sides:
        """Join the candidates (row, node) of both sides."""
        number = np.repeat(np.arange(len(sides), dtype=np.int64), [row.size for row, _ in sides])
        return cls(*joined(sides), number)


class Offers(NamedTuple):
    """Rows that may be made: ``line`` is a question, ``nodes`` (offers, K - 1) its distractors."""

    line: Ints
    nodes: Ints


Askable = tuple[PropertyPairs, Sides]


def conjunctions(evidence: Evidence) -> Askable:
    """What has both: the gold is sure to; a distractor has one and lacks the other.

    A distractor's own property may rest on a single edge: it makes the distractor plausible, and
    need not be true.
    """
    gold, first, second = pairs = _pairs(evidence)
    which, concept = np.nonzero(evidence.said.T)
    holders = _ragged(which, concept, evidence.relation.size)
    sides = []
    for has, lacked in ((first, second), (second, first)):
        row, node = holders.expand(has)
        fits = node != gold[row]
        row, node = row[fits], node[fits]
        fits = _differ(evidence, node, lacked[row], gold[row])
        sides.append((row[fits], node[fits]))
    return pairs, Sides.of(*sides)


def exceptions(evidence: Evidence, cap: int, rng: RandomGenerator) -> Askable:
    """What has the first but not the second.

    The gold is sure to have the first and lacks the second. One distractor has both: it is sure
    to have the second, and has the first if only by a single edge. The other lacks both: without
    it, the second property alone would tell the gold.

    Args:
        evidence: what has what.
        cap: most questions for a gold that will be asked; 0: no bound.
        rng: chance, to choose among more.
    """
    size = evidence.relation.size
    sure, (owner, has) = evidence.sure, np.nonzero(evidence.said)
    line, first = _ragged(owner, has, evidence.concept.size).expand(sure.concept)
    second = sure.property[line]
    # What is itself a negation cannot be denied in plain words.
    fits = (evidence.relation[second] % 2 == 0) & (evidence.relation[first] % 2 == 0)
    fits &= _apart(evidence, first, second)
    key, holder = (first * size + second)[fits], sure.concept[line[fits]]
    asked = sorted_unique(key)
    both = _ragged(np.searchsorted(asked, key), holder, asked.size)

    line, gold = _ragged(sure.property, sure.concept, size).expand(asked // size)
    fits = evidence.lacks[gold, asked[line] % size]
    line, gold = line[fits], gold[fits]
    if cap:
        keep = first_of_each(gold, OVERSAMPLING * cap, rng, asked[line])
        line, gold = line[keep], gold[keep]
    first, second = asked[line] // size, asked[line] % size
    row, node = both.expand(line)
    fits = _differ(evidence, gold[row], second[row], node)
    with_both = row[fits], node[fits]
    row = np.repeat(np.arange(gold.size, dtype=np.int64), NEITHER)
    nth = np.tile(np.arange(NEITHER), gold.size)
    node = rng.child("neither").below(evidence.concept.size, gold[row], asked[line][row], nth)
    row, node = np.divmod(sorted_unique(row * evidence.concept.size + node), evidence.concept.size)
    fits = evidence.lacks[node, second[row]] & (node != gold[row])
    fits &= _differ(evidence, node, first[row], gold[row])
    return PropertyPairs(gold, first, second), Sides.of(with_both, (row[fits], node[fits]))


def _pairs(evidence: Evidence) -> PropertyPairs:
    """Every concept with every two of the properties that it is sure to have."""
    concept, owned, _ = evidence.sure
    after = np.searchsorted(concept, concept, side="right")
    line = np.arange(concept.size, dtype=np.int64)
    one = np.repeat(line, after - line - 1)
    other = ragged_ranges(line + 1, after - line - 1)
    fits = _apart(evidence, owned[one], owned[other])
    return PropertyPairs(concept[one[fits]], owned[one[fits]], owned[other[fits]])


def _apart(evidence: Evidence, one: Ints, other: Ints) -> Bools:
    """Whether two properties have different objects, and neither is a place within the other."""
    a, b = evidence.object[one], evidence.object[other]
    is_place = np.array(evidence.relation_names)[evidence.relation] == PLACE
    keys, size = evidence.within.keys, len(evidence.within)
    nested = contains(keys, a * size + b) | contains(keys, b * size + a)
    return np.asarray((a != b) & ~(is_place[one] & is_place[other] & nested))


def _differ(evidence: Evidence, without: Ints, lacked: Ints, having: Ints) -> Bools:
    """Whether a concept lacks a property for sure that another has.

    What is in the other's field may well have it too, unless edges deny it, or WordNet, which knows
    what is a kind of what.
    """
    field = evidence.field
    known = np.array(evidence.relation_names)[evidence.relation] == "IsA"
    return np.asarray(
        evidence.lacks[without, lacked]
        & ((field[without] != field[having]) | evidence.denied[without, lacked] | known[lacked])
    )


def _ragged(owner: Ints, member: Ints, owners: int) -> Graph:
    size = max(owners, int(member.max(initial=0)) + 1)
    return Graph.from_edges(size, owner, member)


def with_both(sides: Sides, questions: int) -> Bools:
    """Mark the questions that have a candidate on either side."""
    marked = np.zeros((2, questions), dtype=np.bool_)
    marked[sides.side, sides.row] = True
    return np.asarray(marked.all(axis=0))


def split_concepts(
    evidence: Evidence, shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return a split for each concept: 0 train, 1 validation, 2 test.

    Golds and distractors alike belong to one split. Concepts are divided relation by relation (that
    of most of their properties), so that every split has the same mix of relations.
    """
    codes = len(evidence.relation_names)
    key = evidence.sure.concept * codes + evidence.relation[evidence.sure.property]
    cells, times = np.unique(key, return_counts=True)
    concept, relation = cells // codes, cells % codes
    order = np.lexsort((relation, -times, concept))
    foremost = order[ranks_within(concept[order]) == 0]
    concept, relation = concept[foremost], relation[foremost]
    order = np.lexsort((rng.bits(evidence.concept[concept]), relation))
    concept, relation = concept[order], relation[order]
    place = (ranks_within(relation) + rng.uniform(relation)) / np.bincount(relation)[relation]
    splits = np.zeros(evidence.concept.size, dtype=np.int64)
    splits[concept] = np.searchsorted(np.cumsum(shares)[:2], place, side="right")
    return splits


def offered(sides: Sides, questions: int, count: int, rng: RandomGenerator) -> Offers:
    """Put candidates together, at random, evenly from both sides.

    Args:
        sides: the candidates.
        questions: how many questions there are.
        count: distractors of a row.
        rng: the random generator.

    Returns:
        Up to `TRIES` sets for each question that has enough candidates.
    """
    cell = sides.row * 2 + sides.side
    order = np.lexsort((rng.bits(cell, sides.node), cell))
    node, sizes = sides.node[order], np.bincount(cell, minlength=2 * questions).reshape(-1, 2)
    starts = (np.cumsum(sizes) - sizes.ravel()).reshape(-1, 2)
    line = np.repeat(np.flatnonzero(sizes.min(axis=1) > 0), TRIES)
    nth = np.tile(np.arange(TRIES), line.size // TRIES)
    needed = np.full((line.size, 2), count // 2)
    needed[np.arange(line.size), rng.child("odd one").below(2, line, nth)] += count % 2
    enough = (sizes[line] >= needed).all(axis=1)
    line, nth, needed = line[enough], nth[enough], needed[enough]
    from_ = [rng.child("side", side).below(sizes[line, side], line, nth) for side in (0, 1)]
    columns = []
    for slot in range(count):
        side = (slot >= needed[:, 0]).astype(np.int64)
        place = np.where(side == 0, from_[0], from_[1]) + slot - side * needed[:, 0]
        columns.append(node[starts[line, side] + place % sizes[line, side]])
    nodes = np.sort(np.stack(columns, axis=1), axis=1)
    found = np.unique(np.concatenate([line[:, None], nodes], axis=1), axis=0)
    return Offers(found[:, 0], found[:, 1:])


def of_distinct_fields(evidence: Evidence, golds: Ints, offers: Offers) -> Bools:
    """Mark offers whose choices are all of one field, or each of another: none stands apart."""
    field = evidence.field[np.concatenate([golds[offers.line][:, None], offers.nodes], axis=1)]
    distinct = 1 + np.count_nonzero(np.diff(np.sort(field, axis=1), axis=1), axis=1)
    return np.asarray((distinct == 1) | (distinct == field.shape[1]))


def capped(relations: Ints, share: float, rng: RandomGenerator) -> Bools:
    """Mark the rows to keep for no relation to have more than a share of the properties.

    Args:
        relations: (rows, 2) the relations of each row's properties.
        share: most of one relation, of all.
        rng: chooses among rows with the same number of properties of the relation.
    """
    kept = np.arange(len(relations))
    share = max(share, FEW / max(sorted_unique(relations.ravel()).size, 1))
    while kept.size:
        times = np.bincount(relations[kept].ravel())
        most = int(times.argmax())
        if times[most] <= share * 2 * kept.size:
            break
        own = np.count_nonzero(relations[kept] == most, axis=1)
        order = np.lexsort((rng.bits(kept), -own))
        left = times[most] - np.cumsum(own[order])
        enough = left <= share * 2 * (kept.size - 1 - np.arange(kept.size))
        kept = np.sort(kept[order[int(enough.argmax()) + 1 :]])
    marked = np.zeros(len(relations), dtype=np.bool_)
    marked[kept] = True
    return marked


@dataclass(frozen=True, eq=False)
class Balance:
    """What must not tell golds from distractors.

    Attributes:
        labels: for each concept: of the choices with a label, one in K is to be gold.
        measures: for each concept: the gold is to be equally often the first of its row by a
            measure, the second, ...
        said: (concepts, properties) whatever is said of them: the gold is to be equally often the
            choice that shares most with the others, the next, ..., but for what is asked about.
    """

    labels: tuple[Ints, ...]
    measures: tuple[Floats, ...]
    said: Bools

    @cached_property
    def shared(self) -> Floats:
        """(concepts, concepts) how many properties two share."""
        has = self.said.astype(np.float32)
        return np.asarray((has @ has.T).astype(np.float64))

    def measured(self, choices: Ints, asked: Ints) -> list[Floats]:
        """Return what is measured of (rows, K) choices, asked (rows, 2) properties."""
        shared = self.shared[choices[:, :, None], choices[:, None, :]]
        has = self.said[choices[:, :, None], asked[:, None, :]].astype(np.float64)
        shared -= has @ has.transpose(0, 2, 1)
        size = np.sqrt(np.maximum(self.said.sum(axis=1), 1))[choices]
        shared /= size[:, :, None] * size[:, None, :]
        shared *= 1 - np.eye(choices.shape[1])
        return [*(measure[choices] for measure in self.measures), shared.sum(axis=2)]


def draw(
    offers: Offers,
    asking: PropertyPairs,
    balance: Balance | None,
    times: int,
    rng: RandomGenerator,
) -> Offers:
    """Choose among offers so that the looks of the choices do not tell the gold.

    Iterative proportional fitting: an offer wins where an exponential variable divided by its
    weight is smallest, and the weights of labels that are drawn too rarely are raised. Rows go that
    tip the balance still.

    Args:
        offers: rows that may be made, of one split.
        asking: the questions with their golds.
        balance: what to balance; None: every offer is as good as another.
        times: most rows of a question.
        rng: the random generator.
    """
    gold, first, second = lines_of(asking, offers.line)
    choices = np.concatenate([gold[:, None], offers.nodes], axis=1)
    k = choices.shape[1]
    chance = -np.log(rng.uniform(gold, first, second, *offers.nodes.T))
    shown, ranks = [], []
    if balance is not None:
        shown = [label[choices] for label in balance.labels]
        measured = balance.measured(choices, np.stack([first, second], axis=1))
        ranks = [_rank_of_first(value) for value in measured]
    alive = np.ones(asking.gold.size, dtype=np.bool_)
    for round_ in range(ROUNDS):
        here = np.flatnonzero(alive[offers.line])
        line, weight = offers.line[here], np.zeros(here.size)
        won = here
        for _ in range(PASSES):
            order = sorted_by(line, np.exp(-np.clip(weight, -LIMIT, LIMIT)) * chance[here])
            won = here[order[ranks_within(line[order]) < times]]
            for label in shown:
                own, others = _uses(label[won], int(label.max(initial=0)) + 1)
                weight += STEP * np.log(((k - 1) * own + 1) / (others + 1))[label[here, 1:]].sum(1)
            for rank in ranks:
                count = np.bincount(rank[won], minlength=k)
                weight += STEP * np.log((won.size / k + 1) / (count + 1))[rank[here]]
        over = np.zeros(won.size, dtype=np.bool_)
        for number, label in enumerate(shown[1:]):
            own, others = _uses(label[won], int(label.max(initial=0)) + 1)
            allowed = np.ceil(EXCESS * others / (k - 1)).astype(np.int64) + SLACK
            over |= _beyond(label[won, 0], allowed, rng.child("trim", round_, number))
        for number, rank in enumerate(ranks[:-1]):
            allowed = np.full(k, int(UNEVEN * won.size / k) + SLACK)
            over |= _beyond(rank[won], allowed, rng.child("even", round_, number))
        if round_ == ROUNDS - 1 or not over.any():
            break
        alive[offers.line[won[over]]] = False
    return lines_of(offers, np.sort(won))


def _uses(label: Ints, size: int) -> tuple[Ints, Ints]:
    """How often each label is that of a gold (the first column), and of others."""
    own = np.bincount(label[:, 0], minlength=size)
    return own, np.bincount(label[:, 1:].ravel(), minlength=size)


def _beyond(label: Ints, allowed: Ints, rng: RandomGenerator) -> Bools:
    """Mark rows of a label beyond the number allowed, by chance."""
    row = np.arange(label.size)
    order = np.lexsort((rng.bits(row), label))
    marked = np.zeros(label.size, dtype=np.bool_)
    marked[order] = ranks_within(label[order]) >= allowed[label[order]]
    return marked


def _rank_of_first(values: Floats) -> Ints:
    """How many of the others in its line the first value exceeds; of equals, every other one."""
    more = (values[:, :1] > values[:, 1:]).sum(axis=1)
    equal = (values[:, :1] == values[:, 1:]).sum(axis=1)
    return np.asarray(more + (equal + np.arange(len(values)) % 2) // 2)
