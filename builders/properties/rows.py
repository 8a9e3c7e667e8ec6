"""Questions about two properties that can be asked, with their golds and distractors."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from builders.engine.splits import assign_splits
from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from builders.properties.options import FIRM_WEIGHT
from kb_cache.graph import Graph
from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    joined,
    lines_of,
    mask_at,
    occurrences,
    ragged_ranges,
    sorted_unique,
)
from kbprobe.rng import RandomGenerator

ROUNDS = 6
"""Number of rounds in which the split of each concept is reconsidered."""

STARTS = 8
"""Number of searches for splits, of which the best is used."""

NEITHER = 120
"""Half the number of concepts tried per row when looking for some without either property."""

PART = 20_000
"""Maximum number of pairs for which candidates are looked up at once, to limit memory."""

FEW = 60
"""Number of properties asked about up to which the share of relations is not limited."""


class PropertyPairs(NamedTuple):
    """Questions with their golds: parallel arrays of indices of `Evidence`."""

    gold: Ints
    first: Ints
    second: Ints


class Sides(NamedTuple):
    """Candidate distractors: parallel arrays; ``row`` is a line of the questions.

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
    """Rows: ``line`` indexes the questions, ``nodes`` (rows, K - 1) the concepts."""

    line: Ints
    nodes: Ints


Askable = tuple[PropertyPairs, Sides]


def conjunctions(evidence: Evidence) -> Askable:
    """Return questions for what has both properties; distractors have one and lack the other.

    A distractor's own property may come from a single edge: it makes the distractor plausible, and
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
    """Return questions for what has the first property but not the second.

    The gold is sure to have the first property, and lacks the second. Distractors of side 0 have
    both, the second for sure; those of side 1 have neither. So a model that knows only one half of
    the question is left with two choices.

    If statistics decide what lacks a property, the gold has the first one by a firm edge.
    """
    size, sure = evidence.relation.size, evidence.sure
    owner, has = np.nonzero(evidence.plausible)
    line, first = graph_of(owner, has, evidence.concept.size).expand(sure.concept)
    second = sure.property[line]
    # What is itself a negation cannot be denied in plain words.
    fits = (evidence.relation[second] % 2 == 0) & (evidence.relation[first] % 2 == 0)
    fits &= evidence.object[first] != evidence.object[second]
    # Properties of events are not denied of things.
    event = np.isin(np.array(evidence.relation_names)[evidence.relation], EVENTS)
    fits &= event[first] | ~event[second]
    key, holder = (first * size + second)[fits], sure.concept[line[fits]]
    asked = sorted_unique(key)
    both = graph_of(np.searchsorted(asked, key), holder, asked.size)

    firm = evidence.reviewed[sure.property] | (sure.weight >= FIRM_WEIGHT)
    holders = graph_of(sure.property[firm], sure.concept[firm], size)
    line, gold = holders.expand(asked // size)
    fits = evidence.lacks[gold, asked[line] % size]
    line, gold = line[fits], gold[fits]
    pairs = PropertyPairs(gold, asked[line] // size, asked[line] % size)

    # In parts, since there are many pairs, and few candidates have neither property.
    parts = [(np.empty(0, dtype=np.int64),) * 2]
    for start in range(0, gold.size, PART):
        part = np.arange(start, min(start + PART, gold.size))
        row, node = _neither(evidence, lines_of(pairs, part), rng)
        parts.append((row + start, node))
    return pairs, Sides.of(both.expand(line), joined(parts))


def _neither(evidence: Evidence, pairs: PropertyPairs, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Look for concepts without either property: pairs (row, concept), `NEITHER` tries each.

    Half of the candidates share something else with the gold, which makes them harder.
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
    """Return every concept with every two of its sure properties."""
    concept, owned = evidence.sure.concept, evidence.sure.property
    after = np.searchsorted(concept, concept, side="right")
    line = np.arange(concept.size, dtype=np.int64)
    one = np.repeat(line, after - line - 1)
    other = ragged_ranges(line + 1, after - line - 1)
    fits = evidence.object[owned[one]] != evidence.object[owned[other]]
    # A word of two kinds mostly has two senses: gin, the drink and the game.
    kinds = np.array(evidence.relation_names)[evidence.relation] == "IsA"
    fits &= ~(kinds[owned[one]] & kinds[owned[other]])
    one, other = one[fits], other[fits]
    return PropertyPairs(concept[one], owned[one], owned[other])


def _having(holders: Graph, gold: Ints, has: Ints, lacked: Ints, lacks: Bools) -> tuple[Ints, Ints]:
    """Return pairs (row, concept): it has one property, lacks the other, and is not the gold."""
    row, node = holders.expand(has)
    fits = lacks[node, lacked[row]] & (node != gold[row])
    return row[fits], node[fits]


def one_of(graph: Graph, nodes: Ints, chance: Floats) -> Ints:
    """Return one neighbour of each node, drawn by ``chance`` (0 to 1); each must have some."""
    return graph.indices[graph.indptr[nodes] + (chance * graph.degrees[nodes]).astype(np.int64)]


def graph_of(owner: Ints, member: Ints, owners: int) -> Graph:
    """Return the graph from owners (``owners`` in number) to members."""
    size = max(owners, int(member.max(initial=0)) + 1)
    return Graph.from_edges(size, owner, member)


def with_both(sides: Sides, questions: int) -> Bools:
    """Mark the questions that have candidates on both sides."""
    marked = mask_at((2, questions), (sides.side, sides.row))
    return np.asarray(marked.all(axis=0))


def sides_of(sides: Sides, lines: Ints) -> Sides:
    """Return the candidates of some lines of the questions, renumbered."""
    row, picked = occurrences(sides.row, lines)
    return lines_of(sides, picked)._replace(row=row)


def split_concepts(
    triples: Ints, concepts: int, shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return a split for each concept: 0 train, 1 validation, 2 test.

    Both golds and distractors belong to one split. Concepts that can form a choice group are
    preferably put in the same split: of `STARTS` local searches, the one that keeps most triples in
    the splits (by the sum of the square roots) is used. All computations use integers.

    Args:
        triples: (triples, 3) concepts that can form a choice group (see
            `builders.properties.groups`).
        concepts: number of concepts.
        shares: of train, validation and test.
        rng: the random generator.
    """
    member = np.repeat(np.arange(len(triples), dtype=np.int64), 3)
    own = graph_of(triples.ravel(), member, concepts)
    best, most = np.zeros(concepts, dtype=np.int64), -1
    for start in range(STARTS):
        splits = _searched(triples, own, concepts, shares, rng.child("start", start))
        within = splits[triples][(splits[triples] == splits[triples[:, :1]]).all(axis=1), 0]
        value = sum(map(isqrt, np.bincount(within, minlength=len(shares)).tolist()))
        if value > most:
            best, most = splits, value
    return best


def _searched(
    triples: Ints,
    own: Graph,
    concepts: int,
    shares: tuple[float, float, float],
    rng: RandomGenerator,
) -> Ints:
    """Return the splits of one local search; ``own`` leads from concepts to their triples.

    In `ROUNDS` rounds, each concept joins the split of most of its partners, counting pairs that
    are together first, as long as no split is much larger than its share.
    """
    number = np.arange(concepts, dtype=np.int64)
    splits = assign_splits(number, shares, rng)
    moving = np.flatnonzero(own.degrees[:concepts])
    target = np.maximum(np.round(np.array(shares) * moving.size), 1).astype(np.int64)
    size = np.bincount(splits[moving], minlength=target.size)
    for round_ in range(ROUNDS):
        order = np.argsort(rng.child(round_).bits(moving), kind="stable")
        for node in moving[order].tolist():
            rows = triples[own.indices[own.indptr[node] : own.indptr[node + 1]]]
            one, other = splits[rows[rows != node].reshape(-1, 2)].T
            both = np.bincount(one[one == other], minlength=target.size)
            each = np.bincount(np.concatenate([one, other]), minlength=target.size)
            size[splits[node]] -= 1
            # Splits that exceed their share by a tenth attract no concepts.
            pull = (5 * both + each) * np.maximum(target * 11 - size * 10, 0)
            if pull.any():
                splits[node] = int((pull * moving.size**2 // target**2).argmax())
            size[splits[node]] += 1
    return splits


def capped(relations: Ints, share: float, rng: RandomGenerator) -> Bools:
    """Mark the rows to keep such that no relation exceeds its share of the properties.

    Args:
        relations: (rows, 2) the relations of each row's properties.
        share: maximum share of a relation.
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
    return mask_at(len(relations), kept)


def draw(
    asking: PropertyPairs, sides: Sides, distractors: int, rng: RandomGenerator
) -> PropertyChoices:
    """Choose the distractors of some questions of one split, evenly from both sides.

    Args:
        asking: the questions with their golds.
        sides: the candidates; every line has some on both sides.
        distractors: how many each row needs.
        rng: the random generator.

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
    # Each side gets half of the row; which side gets the odd one is random.
    odd = rng.child("odd one").below(2, rows)
    nth = np.arange(distractors, dtype=np.int64)
    side = np.where(nth[None] % 2 == 0, odd[:, None], 1 - odd[:, None])
    chance = rng.child("set").uniform(rows[:, None], nth)
    place = first[rows[:, None], side] + (chance * count[rows[:, None], side]).astype(np.int64)
    nodes = sides.node[place]
    ordered = np.sort(nodes, axis=1)
    line = np.flatnonzero((ordered[:, 1:] != ordered[:, :-1]).all(axis=1))
    return PropertyChoices(line, nodes[line])
