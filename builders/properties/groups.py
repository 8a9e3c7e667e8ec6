"""Choice groups of `property_conjunction_but_not`: three questions with the same three choices.

Each of the three concepts is the gold of one question, so that whoever sees the choices alone is
right in one of three rows, whatever else is known of them. In every row one distractor has both
properties and one has neither.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from builders.properties.kinds import PLACE
from builders.properties.options import PropertyOptions
from builders.properties.rows import FEW, PropertyPairs, graph_of, one_of, pairs_of
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

TRIES = 16
"""Pairs of concepts that are looked at for a concept and two of its properties."""

CELLS = 10_000_000
"""Pairs of a group and a property that are looked at at once: this bounds memory."""


def exception_groups(
    evidence: Evidence,
    askable: Bools,
    deniable: Bools,
    split: Ints,
    options: PropertyOptions,
    rng: RandomGenerator,
) -> tuple[PropertyPairs, Ints]:
    """Put concepts in groups of three, and find a question for each.

    One of the three shares a property with each of the others, which the third of them lacks. Each
    is asked for by a property that it shares, but not one that the other who shares it has alone.

    Args:
        evidence: what concepts have and lack.
        askable: (properties,) what may be asked about.
        deniable: (properties,) what may be denied.
        split: (concepts,) only concepts of one split stand together.
        options: how often the same gold or question may occur, and how often one relation.
        rng: chooses concepts, properties and groups.

    Returns:
        Questions with their golds, three of a group one after the other; and (questions, 2) what
        has both properties, and what has neither.
    """
    columns = np.flatnonzero(askable | deniable)
    local = np.full(askable.size, -1, dtype=np.int64)
    local[columns] = np.arange(columns.size)
    fits = _fitting(evidence, columns) & askable[columns][:, None] & deniable[columns]
    lacks = evidence.lacks[:, columns]
    sure = np.zeros_like(lacks)
    mine = local[evidence.sure.property] >= 0
    sure[evidence.sure.concept[mine], local[evidence.sure.property[mine]]] = True

    hub, one, other = pairs_of(evidence)
    keep = askable[one] & askable[other]
    hub, one, other = hub[keep], local[one[keep]], local[other[keep]]
    owner, held = np.nonzero(sure)
    holders = graph_of(held, owner, max(sure.shape))
    sharing = [_sharing(holders, lacks, hub, *pair, split) for pair in ((one, other), (other, one))]
    able = (sharing[0].degrees > 0) & (sharing[1].degrees > 0)
    line = np.repeat(np.flatnonzero(able), TRIES)
    nth = np.arange(line.size, dtype=np.int64)
    hub, one, other = hub[line], one[line], other[line]
    first, second = (
        one_of(graph, line, rng.child("with", number).uniform(hub, one, other, nth))
        for number, graph in enumerate(sharing)
    )

    rows = [np.empty((0, 3, 5), dtype=np.int64)]
    part = max(CELLS // max(columns.size, 1), 1)
    for start in range(0, hub.size, part):
        here = slice(start, start + part)
        a, b, c = first[here], hub[here], second[here]
        shared = one[here], other[here]
        chance = rng.child("denied", start).uniform(
            np.arange(3 * a.size, dtype=np.int64)[:, None], np.arange(columns.size, dtype=np.int64)
        )
        # The hub is asked for by either of the properties that it shares.
        by_first = rng.child("hub", start).below(2, b, a, c) == 0
        p = np.where(by_first, *shared)
        d = np.where(by_first, a, c), np.where(by_first, c, a)
        asked = ((a, shared[0], b, c), (c, shared[1], b, a), (b, p, *d))
        made, able = [], np.ones(a.size, dtype=np.bool_)
        for number, (gold, has, both, neither) in enumerate(asked):
            possible = sure[both] & lacks[gold] & lacks[neither] & fits[has]
            able &= possible.any(axis=1)
            lot = chance[number * a.size : (number + 1) * a.size]
            denied = np.where(possible, lot, -1.0).argmax(axis=1)
            made.append(np.stack([gold, columns[has], columns[denied], both, neither], axis=1))
        rows.append(np.stack(made, axis=1)[able])
    return _chosen(np.concatenate(rows), evidence, split, options, rng.child("choose"))


def _sharing(
    holders: Graph, lacks: Bools, hub: Ints, has: Ints, lacked: Ints, split: Ints
) -> Graph:
    """Return the graph from lines to concepts of the hub's split with one property alone."""
    line, node = holders.expand(has)
    fits = lacks[node, lacked[line]] & (split[node] == split[hub[line]])
    return Graph.from_edges(max(hub.size, len(split)), line[fits], node[fits])


def _fitting(evidence: Evidence, columns: Ints) -> Bools:
    """(properties, properties) whether the second may be denied of what the first is said of."""
    names = np.array(evidence.relation_names)[evidence.relation[columns]]
    event, place = np.isin(names, EVENTS), names == PLACE
    target = evidence.object[columns]
    fits = target[:, None] != target
    # Of a thing nobody would deny what is said of events.
    fits &= event[:, None] | ~event
    return np.asarray(fits & ~(place[:, None] & place))


def _chosen(
    groups: Ints, evidence: Evidence, split: Ints, options: PropertyOptions, rng: RandomGenerator
) -> tuple[PropertyPairs, Ints]:
    """Choose groups at random, as long as nothing occurs too often.

    A question is asked of no gold twice.
    """
    golds: Counter[int] = Counter()
    asked: Counter[tuple[int, int, int]] = Counter()
    shown: set[tuple[int, int, int, int]] = set()
    relations: Counter[int] = Counter()
    relation = (evidence.relation // 2).tolist()
    kept: list[int] = []
    identity = np.arange(len(groups), dtype=np.int64)
    for at in np.argsort(rng.bits(identity), kind="stable").tolist():
        group = groups[at].tolist()
        part = int(split[group[0][0]])
        questions = [(part, first, second) for _, first, second, _, _ in group]
        answers = [(*question, row[0]) for question, row in zip(questions, group, strict=True)]
        more = Counter(relation[which] for row in group for which in row[1:3])
        size = 2 * 3 * (len(kept) + 1)
        if (
            any(options.cap_per_gold and golds[row[0]] >= options.cap_per_gold for row in group)
            or any(asked[question] >= options.cap_per_question for question in questions)
            or any(answer in shown for answer in answers)
            or any(
                relations[name] + times > max(options.max_share * size, FEW)
                for name, times in more.items()
            )
        ):
            continue
        kept.append(at)
        golds.update(row[0] for row in group)
        asked.update(questions)
        shown.update(answers)
        relations.update(more)
    gold, first, second, both, neither = groups[np.array(kept, dtype=np.int64)].reshape(-1, 5).T
    return PropertyPairs(gold, first, second), np.stack([both, neither], axis=1)
