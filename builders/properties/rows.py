"""Which questions about two properties can be asked, of which gold, with which distractors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import (
    Candidates,
    draw_balanced,
    draw_uniform,
    first_of_each,
    ranks_within,
)
from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Floats, Ints, joined, lines_of, ragged_ranges, sorted_unique
from kbprobe.columns import positions
from kbprobe.rng import RandomGenerator

ROUNDS = 8
"""How often rows whose gold is not a distractor often enough are dropped, and the rest redrawn."""

EXCESS, RARE_EXCESS = 1.35, 1.5
"""A label may be gold this many times as often as its uses as a distractor allow; where every
concept is a label of its own, numbers are small."""

NEITHER = 120
"""Concepts without either property: twice as many are looked at for a row."""

PART = 20_000
"""Pairs for which candidates are looked up at once: this bounds memory."""

FEW = 60
"""Up to this many properties asked about, no relation is held to its share."""


class PropertyPairs(NamedTuple):
    """Questions with their golds: parallel arrays, of places in `Evidence`."""

    gold: Ints
    first: Ints
    second: Ints


class Sides(NamedTuple):
    """What may stand as a distractor: parallel arrays; ``row`` is a line of the questions.

    Distractors of side 0 differ from the gold by the second property, those of side 1 by the
    first. Each row needs both.
    """

    row: Ints
    node: Ints
    side: Ints

    @classmethod
    def of(cls, *sides: tuple[Ints, Ints]) -> Sides:
        """Join the candidates (row, node) of both sides."""
        number = np.repeat(np.arange(len(sides), dtype=np.int64), [row.size for row, _ in sides])
        return cls(*joined(sides), number)


class PropertyChoices(NamedTuple):
    """Rows: ``line`` indexes the questions, ``nodes`` (rows, K - 1) are places of concepts."""

    line: Ints
    nodes: Ints


Askable = tuple[PropertyPairs, Sides]


def conjunctions(evidence: Evidence) -> Askable:
    """What has both: the gold is sure to; a distractor has one and lacks the other.

    A distractor's own property may rest on a single edge: it makes the distractor plausible, and
    need not be true.
    """
    gold, first, second = pairs = _pairs(evidence)
    concept, which = np.nonzero(evidence.plausible)
    holders = _ragged(which, concept, evidence.relation.size)
    return pairs, Sides.of(
        _having(holders, gold, first, second, evidence.lacks),
        _having(holders, gold, second, first, evidence.lacks),
    )


def exceptions(evidence: Evidence, rng: RandomGenerator) -> Askable:
    """What has the first but not the second.

    The gold is sure to have the first property, and lacks the second. Distractors of side 0 have
    both, the second for sure; those of side 1 have neither. So who knows but one half of the
    question is left with two choices.

    Where statistics tell what lacks a property, the gold has the first by a firm edge.
    """
    size, sure = evidence.relation.size, evidence.sure
    owner, has = np.nonzero(evidence.plausible)
    line, first = _ragged(owner, has, evidence.concept.size).expand(sure.concept)
    second = sure.property[line]
    # What is itself a negation cannot be denied in plain words.
    fits = (evidence.relation[second] % 2 == 0) & (evidence.relation[first] % 2 == 0)
    fits &= evidence.object[first] != evidence.object[second]
    # Of a thing nobody would deny what is said of events.
    event = np.isin(np.array(evidence.relation_names)[evidence.relation], EVENTS)
    fits &= event[first] | ~event[second]
    key, holder = (first * size + second)[fits], sure.concept[line[fits]]
    asked = sorted_unique(key)
    both = _ragged(np.searchsorted(asked, key), holder, asked.size)

    firm = evidence.reviewed[sure.property] | (sure.weight >= evidence.rules.min_weight_firm)
    holders = _ragged(sure.property[firm], sure.concept[firm], size)
    line, gold = holders.expand(asked // size)
    fits = evidence.lacks[gold, asked[line] % size]
    line, gold = line[fits], gold[fits]
    pairs = PropertyPairs(gold, asked[line] // size, asked[line] % size)

    # In parts: there are many pairs, and few of what is looked at has neither property.
    parts = [(np.empty(0, dtype=np.int64),) * 2]
    for start in range(0, gold.size, PART):
        part = np.arange(start, min(start + PART, gold.size))
        row, node = _neither(evidence, lines_of(pairs, part), rng)
        parts.append((row + start, node))
    return pairs, Sides.of(both.expand(line), joined(parts))


def _neither(evidence: Evidence, pairs: PropertyPairs, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Look for concepts without either property: pairs (row, concept), `NEITHER` tries each.

    Half of the tries share something else with the gold, and are not as easily told from it.
    """
    gold, sure = pairs.gold, evidence.sure
    row = np.repeat(np.arange(gold.size, dtype=np.int64), 2 * NEITHER)
    nth = np.tile(np.arange(2 * NEITHER, dtype=np.int64), gold.size)
    chance = rng.uniform(gold[row], pairs.first[row], pairs.second[row], nth)
    able = sorted_unique(sure.concept)
    node = able[(chance * able.size).astype(np.int64)]
    own = _ragged(sure.concept, sure.property, evidence.concept.size)
    near = np.flatnonzero(nth < NEITHER)
    shared = _one_of(own, gold[row[near]], chance[near])
    again = rng.child("akin").uniform(gold[row[near]], shared, pairs.second[row[near]], nth[near])
    holders = _ragged(sure.property, sure.concept, evidence.relation.size)
    node[near] = _one_of(holders, shared, again)
    row, node = np.divmod(sorted_unique(row * evidence.concept.size + node), evidence.concept.size)
    fits = evidence.lacks[node, pairs.first[row]] & evidence.lacks[node, pairs.second[row]]
    return row[fits], node[fits]


def _pairs(evidence: Evidence) -> PropertyPairs:
    """Every concept with every two of the properties that it is sure to have."""
    concept, owned = evidence.sure.concept, evidence.sure.property
    after = np.searchsorted(concept, concept, side="right")
    line = np.arange(concept.size, dtype=np.int64)
    one = np.repeat(line, after - line - 1)
    other = ragged_ranges(line + 1, after - line - 1)
    fits = evidence.object[owned[one]] != evidence.object[owned[other]]
    # A word of two kinds is mostly one of two senses: gin, the drink and the game.
    kinds = np.array(evidence.relation_names)[evidence.relation] == "IsA"
    fits &= ~(kinds[owned[one]] & kinds[owned[other]])
    one, other = one[fits], other[fits]
    return PropertyPairs(concept[one], owned[one], owned[other])


def _having(holders: Graph, gold: Ints, has: Ints, lacked: Ints, lacks: Bools) -> tuple[Ints, Ints]:
    """Pairs (row, concept): the concept has one property, lacks the other, and is not the gold."""
    row, node = holders.expand(has)
    fits = lacks[node, lacked[row]] & (node != gold[row])
    return row[fits], node[fits]


def _one_of(graph: Graph, nodes: Ints, chance: Floats) -> Ints:
    """Return one neighbour of each node, which has some; ``chance`` is from 0 to 1."""
    return graph.indices[graph.indptr[nodes] + (chance * graph.degrees[nodes]).astype(np.int64)]


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


def asked_once(
    pairs: PropertyPairs,
    lines: Ints,
    sides: Sides,
    each: int,
    most: int,
    copies: int,
    favour: Floats,
    rng: RandomGenerator,
) -> tuple[Ints, Sides]:
    """Divide the candidates of a question among the rows that ask it.

    A question may have several golds. A choice that stood in several of its rows would be no gold,
    as a gold is gold of all it stands in: so no choice stands in two.

    Args:
        pairs: the questions with their golds.
        lines: which of them may be asked.
        sides: their candidates, of which no two lines of a question differ but for their golds.
        each: how many candidates of one side a row needs at most.
        most: most rows of a question.
        copies: most rows of a question and gold.
        favour: (concepts,) how much likelier each is to be the gold, where there are several.
        rng: chooses among golds, and divides the candidates.

    Returns:
        For each row its line, ascending; and the candidates, with numbers of rows.
    """
    question = np.full(pairs.gold.size, -1, dtype=np.int64)
    together = np.stack([pairs.first[lines], pairs.second[lines]])
    question[lines] = np.unique(together, axis=1, return_inverse=True)[1].ravel()
    sides = lines_of(sides, question[sides.row] >= 0)
    # The candidates of each question and side, in random order.
    span = int(sides.node.max(initial=0)) + 1
    key = (question[sides.row] * 2 + sides.side) * span + sides.node
    distinct = sorted_unique(key)
    cell = distinct // span
    order = np.lexsort((rng.child("divide").bits(distinct), cell))
    rank = np.empty_like(order)
    rank[order] = ranks_within(cell[order])
    count = np.bincount(cell, minlength=2 * (int(question.max(initial=-1)) + 1)).reshape(-1, 2)
    room = np.minimum(count.min(axis=1) // each, most)
    # The rows of each question: first every gold once, in random order.
    line = np.repeat(lines, copies)
    nth = ranks_within(line)
    race = -np.log(rng.uniform(pairs.gold[line], line, nth)) / favour[pairs.gold[line]]
    order = np.lexsort((race, nth, question[line]))
    line = line[order]
    place = ranks_within(question[line])
    kept = place < room[question[line]]
    line, place = line[kept], place[kept]
    rows = np.bincount(question[line], minlength=room.size)
    # Its candidates are divided among them in turn.
    turn = rank[np.searchsorted(distinct, key)] % np.maximum(rows[question[sides.row]], 1)
    order = np.argsort(line * (most + 1) + place)
    line, place = line[order], place[order]
    row = positions(line * (most + 1) + place, sides.row * (most + 1) + turn)
    return line, lines_of(sides._replace(row=row), row >= 0)


def levelled(choices: Ints, frequency: Floats, rng: RandomGenerator) -> Bools:
    """Mark rows to keep for the gold to be equally often the first by frequency, the second, ...

    Args:
        choices: (rows, K) concepts, the gold first.
        frequency: of every concept.
        rng: chooses the rows to drop.
    """
    shown = frequency[choices]
    rank = (shown[:, :1] > shown[:, 1:]).sum(axis=1)
    # Of equals, every other one counts as less.
    equal = (shown[:, :1] == shown[:, 1:]).sum(axis=1)
    rank += (equal + np.arange(len(rank)) % 2) // 2
    count = np.bincount(rank, minlength=choices.shape[1])
    return first_of_each(rank, int(count.min()), rng, np.arange(rank.size, dtype=np.int64))


def capped(relations: Ints, share: float, rng: RandomGenerator) -> Bools:
    """Mark the rows to keep for no relation to have more than a share of the properties.

    Args:
        relations: (rows, 2) the relations of each row's properties.
        share: most of one relation, of all.
        rng: chooses among rows with the same number of properties of the relation.
    """
    kept = np.arange(len(relations))
    while kept.size:
        times = np.bincount(relations[kept].ravel())
        most = int(times.argmax())
        if times[most] <= max(share * 2 * kept.size, FEW):
            break
        own = np.count_nonzero(relations[kept] == most, axis=1)
        order = np.lexsort((rng.bits(kept), -own))
        left = times[most] - np.cumsum(own[order])
        enough = left <= np.maximum(share * 2 * (kept.size - 1 - np.arange(kept.size)), FEW)
        kept = np.sort(kept[order[int(enough.argmax()) + 1 :]])
    marked = np.zeros(len(relations), dtype=np.bool_)
    marked[kept] = True
    return marked


def draw(
    gold: Ints,
    rows: Ints,
    sides: Sides,
    distractors: int,
    labels: Ints | None,
    rng: RandomGenerator,
) -> PropertyChoices:
    """Choose the distractors of some questions of one split, evenly from both sides.

    Balanced candidates (:func:`builders.engine.draw.balanced.draw_balanced`) with one group for
    each distractor of a row.

    Args:
        gold: the gold of each question.
        rows: the questions to draw for, ascending.
        sides: the candidates.
        distractors: how many each row needs.
        labels: what is balanced, of each concept: no label is much oftener gold than in one of K of
            the choices that show it. None: all candidates are alike.
        rng: the random generator.

    Returns:
        The rows for which enough were found.
    """
    local = np.full(gold.size, -1, dtype=np.int64)
    local[rows] = np.arange(rows.size)
    sides = lines_of(sides, local[sides.row] >= 0)
    row, side = local[sides.row], sides.side
    # Each side has places in the row, one distractor each; which has the odd one is random.
    odd = rng.child("odd one").below(2, rows)[row]
    places = np.where(odd == side, (distractors + 1) // 2, distractors // 2)
    nth = rng.child("slot").below(np.maximum(places, 1), rows[row], sides.node)
    place = np.where(side == 0, nth, distractors - 1 - nth)
    found = Candidates(row, sides.node, place).take(places > 0)
    if labels is None:
        drawn = draw_uniform(found, np.arange(rows.size, dtype=np.int64), distractors, rng)
    else:
        excess = EXCESS if sorted_unique(labels).size < labels.size else RARE_EXCESS
        drawn = draw_balanced(
            found,
            gold[rows],
            labels.size,
            distractors,
            0,
            rng,
            labels=labels,
            excess=excess,
            rounds=ROUNDS,
        )
    whole = (drawn.nodes >= 0).all(axis=1)
    return PropertyChoices(rows[drawn.rows[whole]], drawn.nodes[whole])
