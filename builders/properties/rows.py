"""Which questions about two properties can be asked, of which gold, with which distractors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from builders.properties.likeness import Likeness
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Floats, Ints, joined, lines_of, ragged_ranges, sorted_unique
from kbprobe.rng import RandomGenerator

TRIES = 200
"""Sets of distractors that are looked at for a question."""

ROUNDS = 6
"""How often the choice among them is reconsidered."""

WORTH = 6
"""How much imbalance a row is worth, in units of that of a concept which is gold once alone."""

NEITHER = 120
"""Concepts without either property: twice as many are looked at for a row."""

PART = 20_000
"""Pairs for which candidates are looked up at once: this bounds memory."""

MANY = 150
"""Properties of more concepts than this do not hold them together in one split."""

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
    gold, first, second = pairs = pairs_of(evidence)
    concept, which = np.nonzero(evidence.plausible)
    holders = graph_of(which, concept, evidence.relation.size)
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
    line, first = graph_of(owner, has, evidence.concept.size).expand(sure.concept)
    second = sure.property[line]
    # What is itself a negation cannot be denied in plain words.
    fits = (evidence.relation[second] % 2 == 0) & (evidence.relation[first] % 2 == 0)
    fits &= evidence.object[first] != evidence.object[second]
    # Of a thing nobody would deny what is said of events.
    event = np.isin(np.array(evidence.relation_names)[evidence.relation], EVENTS)
    fits &= event[first] | ~event[second]
    key, holder = (first * size + second)[fits], sure.concept[line[fits]]
    asked = sorted_unique(key)
    both = graph_of(np.searchsorted(asked, key), holder, asked.size)

    firm = evidence.reviewed[sure.property] | (sure.weight >= evidence.rules.min_weight_firm)
    holders = graph_of(sure.property[firm], sure.concept[firm], size)
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
    own = graph_of(sure.concept, sure.property, evidence.concept.size)
    near = np.flatnonzero(nth < NEITHER)
    shared = one_of(own, gold[row[near]], chance[near])
    again = rng.child("akin").uniform(gold[row[near]], shared, pairs.second[row[near]], nth[near])
    holders = graph_of(sure.property, sure.concept, evidence.relation.size)
    node[near] = one_of(holders, shared, again)
    row, node = np.divmod(sorted_unique(row * evidence.concept.size + node), evidence.concept.size)
    fits = evidence.lacks[node, pairs.first[row]] & evidence.lacks[node, pairs.second[row]]
    return row[fits], node[fits]


def pairs_of(evidence: Evidence) -> PropertyPairs:
    """Return every concept with every two of the properties that it is sure to have."""
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


def one_of(graph: Graph, nodes: Ints, chance: Floats) -> Ints:
    """Return one neighbour of each node, which has some; ``chance`` is from 0 to 1."""
    return graph.indices[graph.indptr[nodes] + (chance * graph.degrees[nodes]).astype(np.int64)]


def graph_of(owner: Ints, member: Ints, owners: int) -> Graph:
    """Return the graph from owners, of which there are so many, to members."""
    size = max(owners, int(member.max(initial=0)) + 1)
    return Graph.from_edges(size, owner, member)


def with_both(sides: Sides, questions: int) -> Bools:
    """Mark the questions that have a candidate on either side."""
    marked = np.zeros((2, questions), dtype=np.bool_)
    marked[sides.side, sides.row] = True
    return np.asarray(marked.all(axis=0))


def sides_of(sides: Sides, lines: Ints) -> Sides:
    """Return the candidates of some lines of the questions, numbered as these are."""
    order = np.argsort(sides.row, kind="stable")
    first = np.searchsorted(sides.row[order], lines)
    count = np.searchsorted(sides.row[order], lines, side="right") - first
    picked = order[ragged_ranges(first, count)]
    row = np.repeat(np.arange(lines.size, dtype=np.int64), count)
    return lines_of(sides, picked)._replace(row=row)


def split_concepts(
    evidence: Evidence, shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return a split for each concept: 0 train, 1 validation, 2 test.

    Golds and distractors alike belong to one split. Concepts that share properties are rather put
    in one, as a question needs such: each concept joins the split of most of them, as long as none
    is much larger than its share, in `ROUNDS` rounds. All is done in integers.
    """
    edges = np.cumsum(shares)[:2]
    splits = np.searchsorted(edges, rng.uniform(evidence.concept), side="right").astype(np.int64)
    owner, which = evidence.sure.concept, evidence.sure.property
    common = np.bincount(which, minlength=evidence.relation.size)[which] <= MANY
    holders = graph_of(which[common], owner[common], evidence.relation.size)
    own = graph_of(owner[common], which[common], evidence.concept.size)
    target = np.round(np.array(shares) * evidence.concept.size).astype(np.int64)
    size = np.bincount(splits, minlength=target.size)
    for round_ in range(ROUNDS):
        for node in np.argsort(rng.child(round_).bits(evidence.concept), kind="stable").tolist():
            _, near = holders.expand(own.indices[own.indptr[node] : own.indptr[node + 1]])
            times = np.bincount(splits[near], minlength=target.size)
            times[splits[node]] -= np.count_nonzero(near == node)
            size[splits[node]] -= 1
            # What is over its share by a tenth attracts nothing.
            times = times * np.maximum(target * 11 - size * 10, 0) * max(size.sum(), 1)
            best = int((times // np.maximum(target, 1)).argmax()) if times.any() else splits[node]
            splits[node] = best
            size[best] += 1
    return splits


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
    asking: PropertyPairs,
    sides: Sides,
    distractors: int,
    most: tuple[int, int],
    measures: Floats,
    rng: RandomGenerator,
    likeness: Likeness | None = None,
) -> PropertyChoices:
    """Choose the distractors of some questions of one split, evenly from both sides.

    With a ``likeness`` the choices alone do not tell the gold: distractors are as like one another
    as the least like of them is like the gold, and questions and distractors are chosen for every
    concept to be gold in one of K of the rows that show it (see :func:`balanced`).

    Args:
        asking: the questions with their golds.
        sides: the candidates; every line has some on either side.
        distractors: how many each row needs.
        most: most rows with one question, and with one gold.
        measures: (measures, concepts) by which golds shall be neither above nor below the others.
        rng: the random generator.
        likeness: how like concepts are; None: all candidates are alike.

    Returns:
        The rows for which enough were found.
    """
    gold = asking.gold
    order = np.lexsort((sides.node, sides.side, sides.row))
    sides = lines_of(sides, order)
    number = np.arange(2 * gold.size, dtype=np.int64)
    key = sides.row * 2 + sides.side
    first = np.searchsorted(key, number).reshape(-1, 2)
    count = np.searchsorted(key, number, side="right").reshape(-1, 2) - first
    rows = np.arange(gold.size, dtype=np.int64)
    # Each side has places in the row; which has the odd one is random.
    odd = rng.child("odd one").below(2, rows)
    tries = 1 if likeness is None else TRIES
    nth = np.arange(distractors, dtype=np.int64)
    side = np.where(nth[None] % 2 == 0, odd[:, None], 1 - odd[:, None])[:, None]
    chance = rng.child("set").uniform(
        rows[:, None, None], np.arange(tries, dtype=np.int64)[:, None], nth
    )
    row = rows[:, None, None]
    place = first[row, side] + (chance * count[row, side]).astype(np.int64)
    nodes = sides.node[place]
    kept = np.ones(nodes.shape[:2], dtype=np.bool_)
    for one in range(distractors):
        for other in range(one):
            kept &= nodes[:, :, one] != nodes[:, :, other]
    line, which = np.nonzero(kept)
    if likeness is not None:
        kept[line, which] = _alike(gold[line], nodes[line, which], likeness)
        line, which = np.nonzero(kept)
    sets = nodes[line, which]
    if likeness is None:
        return PropertyChoices(line, sets)
    question = np.unique(np.stack(asking[1:]), axis=1, return_inverse=True)[1].ravel()
    leaning = (
        np.sign(measures[:, gold[line], None] - measures[:, sets]).sum(axis=2).astype(np.int64)
    )
    chosen = balanced(gold, question, line, sets, leaning.T, most, rng)
    return PropertyChoices(line[chosen], sets[chosen])


def _alike(gold: Ints, sets: Ints, likeness: Likeness) -> Bools:
    """Mark the sets of distractors of which all share a property, and that are alike enough."""
    one, other = np.triu_indices(sets.shape[1], 1)
    kept = np.ones(gold.size, dtype=np.bool_)
    for a, b in zip(one, other, strict=True):
        kept[kept] = likeness.share_property(sets[kept, a], sets[kept, b])
    near = np.full((2, gold.size), np.inf)
    for nth in range(sets.shape[1]):
        near[0, kept] = np.minimum(near[0, kept], likeness(gold[kept], sets[kept, nth]))
    for a, b in zip(one, other, strict=True):
        near[1, kept] = np.minimum(near[1, kept], likeness(sets[kept, a], sets[kept, b]))
    return np.asarray(kept & (near[1] >= near[0]))


def balanced(
    gold: Ints,
    question: Ints,
    line: Ints,
    sets: Ints,
    leaning: Ints,
    most: tuple[int, int],
    rng: RandomGenerator,
) -> Ints:
    """Choose a set of distractors for each question, or none, by a local search.

    A concept's debt is K - 1 for each row in which it is gold, less one for each in which it is a
    distractor. The search lessens the sum of the squares of all debts, less `WORTH` for each row:
    each choice is the best for all others, and is reconsidered in `ROUNDS` rounds. All is done in
    integers, so that the result is the same on every machine.

    Args:
        gold: the gold of each line.
        question: the question of each line.
        line: the line of each set, ascending.
        sets: (sets, K - 1) the distractors.
        leaning: (sets, measures) above how many distractors the gold is, less those above it: what
            the rows lean to as a whole is kept near to 0.
        most: most rows with one question, and with one gold.
        rng: the order in which questions are looked at.

    Returns:
        Positions of the sets chosen, ascending.
    """
    others = sets.shape[1]
    worth = WORTH * others * others
    debt = np.zeros(int(max(gold.max(initial=-1), sets.max(initial=-1))) + 1, dtype=np.int64)
    asked, golds = np.zeros((2, int(max(question.max(initial=-1), debt.size)) + 1), dtype=np.int64)
    lean = np.zeros(leaning.shape[1], dtype=np.int64)
    lines = sorted_unique(line)
    first = np.searchsorted(line, lines)
    last = np.searchsorted(line, lines, side="right")
    pick = np.full(lines.size, -1, dtype=np.int64)
    for round_ in range(ROUNDS):
        for at in np.argsort(rng.child("round", round_).bits(lines), kind="stable").tolist():
            own, same = gold[lines[at]], question[lines[at]]
            if pick[at] >= 0:
                asked[same] -= 1
                golds[own] -= 1
                debt[own] -= others
                debt[sets[pick[at]]] += 1
                lean -= leaning[pick[at]]
            here = slice(first[at], last[at])
            cost = leaning[here] @ np.clip(lean, -worth, worth) - 2 * debt[sets[here]].sum(axis=1)
            best = int(cost.argmin())
            cost_of_gold = others * (others + 2 * debt[own])
            pick[at] = -1
            room = asked[same] < most[0] and golds[own] < most[1]
            if room and cost[best] + others + cost_of_gold < worth:
                pick[at] = first[at] + best
                asked[same] += 1
                golds[own] += 1
                debt[own] += others
                debt[sets[pick[at]]] -= 1
                lean += leaning[pick[at]]
    return pick[pick >= 0]
