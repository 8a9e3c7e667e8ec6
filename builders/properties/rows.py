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
from builders.properties.facts import PLACE, Evidence
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Ints, joined, lines_of, ragged_ranges, sorted_unique
from kbprobe.rng import RandomGenerator

OVERSAMPLING = 12
"""Questions looked at for a gold of property_conjunction_but_not, in multiples of its cap."""

ROUNDS = 8
"""How often rows whose gold is not a distractor often enough are dropped, and the rest redrawn."""


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
    which, concept = np.nonzero(evidence.said.T)
    holders = _ragged(which, concept, evidence.relation.size)
    return pairs, Sides.of(
        _having(holders, gold, first, second, evidence.lacks),
        _having(holders, gold, second, first, evidence.lacks),
    )


def exceptions(evidence: Evidence, cap: int, rng: RandomGenerator) -> Askable:
    """What has the first but not the second.

    The gold has the first by a firm edge (one property carries the whole answer) and lacks the
    second. Distractors are sure to have the second, which alone makes them wrong. Those of side 0
    have the first as well, if only by a single edge; those of side 1 lack it.

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
    fits &= evidence.object[first] != evidence.object[second]
    key, holder = (first * size + second)[fits], sure.concept[line[fits]]
    asked = sorted_unique(key)
    both = _ragged(np.searchsorted(asked, key), holder, asked.size)

    firm = sure.weight >= evidence.rules.min_weight_firm
    firm_holders = _ragged(sure.property[firm], sure.concept[firm], size)
    line, gold = firm_holders.expand(asked // size)
    fits = evidence.lacks[gold, asked[line] % size]
    line, gold = line[fits], gold[fits]
    if cap:
        keep = first_of_each(gold, OVERSAMPLING * cap, rng, asked[line])
        line, gold = line[keep], gold[keep]
    pairs = PropertyPairs(gold, asked[line] // size, asked[line] % size)
    nobody = np.full(gold.size, -1, dtype=np.int64)
    holders = _ragged(sure.property, sure.concept, size)
    only = _having(holders, nobody, pairs.second, pairs.first, evidence.lacks)
    return pairs, Sides.of(both.expand(line), only)


def _pairs(evidence: Evidence) -> PropertyPairs:
    """Every concept with every two of the properties that it is sure to have.

    Two places count only by edges of `Rules.min_weight_loose` or more.
    """
    concept, owned, weight = evidence.sure
    heavy = weight >= evidence.rules.min_weight_loose
    after = np.searchsorted(concept, concept, side="right")
    line = np.arange(concept.size, dtype=np.int64)
    one = np.repeat(line, after - line - 1)
    other = ragged_ranges(line + 1, after - line - 1)
    place = np.array(evidence.relation_names)[evidence.relation[owned]] == PLACE
    fits = evidence.object[owned[one]] != evidence.object[owned[other]]
    fits &= ~(place[one] & place[other]) | (heavy[one] & heavy[other])
    one, other = one[fits], other[fits]
    return PropertyPairs(concept[one], owned[one], owned[other])


def _having(holders: Graph, gold: Ints, has: Ints, lacked: Ints, lacks: Bools) -> tuple[Ints, Ints]:
    """Pairs (row, concept): the concept has one property, lacks the other, and is not the gold."""
    row, node = holders.expand(has)
    fits = lacks[node, lacked[row]] & (node != gold[row])
    return row[fits], node[fits]


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


def repeated(sides: Sides, times: int, each: int, rng: RandomGenerator) -> tuple[Ints, Sides]:
    """Ask questions several times, each time with other candidates.

    The candidates of the side that has more are divided among the copies, so that no two copies
    show the same choices. Those of the other side are divided too if there are enough, else all
    copies share them.

    Args:
        sides: the candidates, of questions that have some on both sides.
        times: most copies of a question.
        each: how many candidates of one side a copy needs at most.
        rng: divides the candidates.

    Returns:
        For each copy the question, ascending; and the candidates, whose rows are copies.
    """
    cell = sides.row * 2 + sides.side
    order = np.lexsort((rng.bits(cell, sides.node), cell))
    sides, cell = lines_of(sides, order), cell[order]
    count = np.bincount(cell, minlength=2 * (int(sides.row.max(initial=-1)) + 1)).reshape(-1, 2)
    copies = np.clip(count.max(axis=1) // each, 1, times)
    copies[count.min(axis=1) == 0] = 0
    question = np.repeat(np.arange(copies.size, dtype=np.int64), copies)
    mine = copies[sides.row]
    divided = count.ravel()[cell] >= mine * each
    line = np.repeat(np.arange(cell.size, dtype=np.int64), np.where(divided, 1, mine))
    copy = np.where(divided[line], ranks_within(cell)[line] % mine[line], ranks_within(line))
    first = np.cumsum(copies) - copies
    return question, lines_of(sides, line)._replace(row=first[sides.row[line]] + copy)


def draw(
    gold: Ints,
    rows: Ints,
    sides: Sides,
    distractors: int,
    classes: Ints | None,
    rng: RandomGenerator,
) -> PropertyChoices:
    """Choose the distractors of some questions of one split, evenly from both sides.

    Balanced candidates (:func:`builders.engine.draw.balanced.draw_balanced`) with one group for
    each distractor of a row, and with classes of concepts as labels.

    Args:
        gold: the gold of each question.
        rows: the questions to draw for, ascending.
        sides: the candidates.
        distractors: how many each row needs.
        classes: a class for each concept: none is gold more often than in one of K of the choices
            that show it. None: all candidates alike.
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
    if classes is None:
        drawn = draw_uniform(found, np.arange(rows.size, dtype=np.int64), distractors, rng)
    else:
        drawn = draw_balanced(
            found,
            gold[rows],
            classes.size,
            distractors,
            0,
            rng,
            labels=classes,
            excess=1.0,
            rounds=ROUNDS,
        )
    whole = (drawn.nodes >= 0).all(axis=1)
    return PropertyChoices(rows[drawn.rows[whole]], drawn.nodes[whole])
