"""Choice groups of the property probes: three questions with the same three choices.

Each of the three concepts is the gold of one question, so that a model that sees only the choices
is right in one of three rows, whatever it knows about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from builders.properties.kinds import PLACE
from builders.properties.options import CAP_PER_QUESTION, MAX_SHARE, PropertyOptions
from builders.properties.rows import FEW, PropertyPairs, graph_of, one_of, pairs_of
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

TRIES = 4
"""Maximum number of pairs of concepts tried for a concept and two of its properties."""

NEAR = 400
"""Maximum number of concepts tried that share a property with another, to limit time."""

VARIANTS = 4
"""Number of choices of three properties tried for three concepts."""

REPEATS = 4
"""Maximum number of conjunctions with the same question and gold, but different distractors."""

MOST_IN_PLACE, MOST_EXTRA = 0.39, 6
"""The largest share of a split's questions, and how many more, whose gold may be in the same place
of the order of similarity. At a third, two of five questions of a small ConceptNet are lost."""

CELLS = 10_000_000
"""Maximum number of pairs of a group and a property processed at once, to limit memory."""


class ChoiceRules(NamedTuple):
    """What decides which of the possible groups are chosen, besides limits on repetition.

    Attributes:
        askable: function that returns which questions may be asked.
        places: function from (questions, 5) the gold, two properties and the other choices to how
            many of these are more similar to the question than the gold; None: choices are not
            matched.
    """

    askable: Callable[[PropertyPairs], Bools]
    places: Callable[[Ints], Ints] | None = None


class Triples(NamedTuple):
    """Triples of concepts of which any two share a property that the third lacks.

    Attributes:
        columns: the properties considered, as indices of those of the evidence.
        nodes: (triples, 3) concepts, ascending within a triple.
    """

    columns: Ints
    nodes: Ints


def sharing_triples(evidence: Evidence, askable: Bools, rng: RandomGenerator) -> Triples:
    """Find the triples of concepts of which any two share an askable property the third lacks."""
    columns = np.flatnonzero(askable)
    sure, lacks = _tables(evidence, columns)
    active = np.flatnonzero(np.count_nonzero(sure, axis=1) >= 2)
    # Products of these matrices count properties, and are exact.
    has, lacked = sure[active].astype(np.float32), lacks[active].astype(np.float32)
    held, missed = (np.packbits(table[active], axis=1) for table in (sure, lacks))
    parts = [np.empty((0, 3), dtype=np.int64)]
    for at in range(active.size):
        near = at + 1 + np.flatnonzero(has[at + 1 :] @ has[at])
        if near.size > NEAR:
            chosen = np.argsort(rng.bits(active[at], active[near]), kind="stable")[:NEAR]
            near = np.sort(near[chosen])
        alone = (has[at] * has[near]) @ lacked[near].T > 0
        one, other = np.nonzero(np.triu(alone & alone.T, 1))
        one, other = near[one], near[other]
        third = (held[one] & held[other] & missed[at]).any(axis=1)
        nodes = np.stack([np.full(one.size, at, dtype=np.int64), one, other], axis=1)
        parts.append(active[nodes[third]])
    return Triples(columns, np.concatenate(parts))


def conjunction_groups(
    evidence: Evidence,
    triples: Triples,
    split: Ints,
    options: PropertyOptions,
    rng: RandomGenerator,
    rules: ChoiceRules,
) -> tuple[PropertyPairs, Ints]:
    """Put concepts in groups of three, with three properties of which each lacks another one.

    So each concept is the only one that has both of two properties, and each of the others has one
    of these.

    Args:
        evidence: what concepts have and lack.
        triples: concepts that can form a group.
        split: (concepts,) the split of each concept; groups are within one split.
        options: limits on how often the same gold, question or relation may occur.
        rng: chooses properties and groups.
        rules: which groups may be chosen.

    Returns:
        Questions with their golds, the three of a group in sequence; and (questions, 2) the other
        choices: one that has the first property, and one that has the second.
    """
    columns, nodes = triples
    nodes = nodes[(split[nodes] == split[nodes[:, :1]]).all(axis=1)]
    nodes = np.repeat(nodes, VARIANTS, axis=0)
    sure, lacks = _tables(evidence, columns)
    names = np.array(evidence.relation_names)[evidence.relation[columns]]
    event, kind, target = np.isin(names, EVENTS), names == "IsA", evidence.object[columns]
    shared = np.zeros((len(nodes), 3), dtype=np.int64)
    part = max(CELLS // max(columns.size, 1), 1)
    for lacking in range(3):
        one, other = (place for place in range(3) if place != lacking)
        for start in range(0, len(nodes), part):
            line = np.arange(start, min(start + part, len(nodes)), dtype=np.int64)
            here = nodes[line]
            fits = sure[here[:, one]] & sure[here[:, other]] & lacks[here[:, lacking]]
            row, column = np.nonzero(fits)
            chance = np.full(fits.shape, -1.0)
            chance[row, column] = rng.child("shared", lacking).uniform(
                *here[row].T, line[row] % VARIANTS, columns[column]
            )
            shared[line, lacking] = chance.argmax(axis=1)
    # Two kinds are mostly two senses of a word; properties of events fit nothing else.
    able = np.count_nonzero(kind[shared], axis=1) <= 1
    # Nobody lists all things found at both of two places: readers found 53% of such rows sound.
    able &= np.count_nonzero(names[shared] == PLACE, axis=1) <= 1
    able &= (event[shared] == event[shared[:, :1]]).all(axis=1)
    able &= (np.diff(np.sort(target[shared], axis=1), axis=1) > 0).all(axis=1)
    nodes, shared = nodes[able], columns[shared[able]]
    rows = []
    for gold in range(3):
        one, other = (place for place in range(3) if place != gold)
        # The property that `other` lacks is shared with `one`.
        picked = nodes[:, gold], shared[:, other], shared[:, one], nodes[:, one], nodes[:, other]
        rows.append(np.stack(picked, axis=1))
    made = np.stack(rows, axis=1)
    return _chosen(made, REPEATS, evidence, split, options, rng.child("choose"), rules)


def exception_groups(
    evidence: Evidence,
    askable: Bools,
    deniable: Bools,
    split: Ints,
    options: PropertyOptions,
    rng: RandomGenerator,
    rules: ChoiceRules,
) -> tuple[PropertyPairs, Ints]:
    """Put concepts in groups of three, and find a question with "but not" for each.

    One of the three shares a property with each of the others, which the third lacks. Questions ask
    for a shared property but not for another one that only the other sharer has. So in every row
    one distractor has both properties and one has neither.

    Args:
        evidence: what concepts have and lack.
        askable: (properties,) what may be asked about.
        deniable: (properties,) what may be denied.
        split: (concepts,) the split of each concept; groups are within one split.
        options: limits on how often the same gold, question or relation may occur.
        rng: chooses concepts, properties and groups.
        rules: which groups may be chosen.

    Returns:
        Questions with their golds, the three of a group in sequence; and (questions, 2) the
        distractors with both properties and with neither.
    """
    columns = np.flatnonzero(askable | deniable)
    local = np.full(askable.size, -1, dtype=np.int64)
    local[columns] = np.arange(columns.size)
    fits = _fitting(evidence, columns) & askable[columns][:, None] & deniable[columns]
    sure, lacks = _tables(evidence, columns)

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
        chance = rng.child("denied", start)
        # The hub can be asked for by either of the properties that it shares.
        by_first = rng.child("hub", start).below(2, b, a, c) == 0
        p = np.where(by_first, *shared)
        d = np.where(by_first, a, c), np.where(by_first, c, a)
        asked = ((a, shared[0], b, c), (c, shared[1], b, a), (b, p, *d))
        made, able = [], np.ones(a.size, dtype=np.bool_)
        for number, (gold, has, both, neither) in enumerate(asked):
            possible = sure[both] & lacks[gold] & lacks[neither] & fits[has]
            able &= possible.any(axis=1)
            row, column = np.nonzero(possible)
            lot = np.full(possible.shape, -1.0)
            lot[row, column] = chance.uniform(number * a.size + row, column)
            denied = lot.argmax(axis=1)
            made.append(np.stack([gold, columns[has], columns[denied], both, neither], axis=1))
        rows.append(np.stack(made, axis=1)[able])
    groups = np.concatenate(rows)
    return _chosen(groups, 1, evidence, split, options, rng.child("choose"), rules)


def _tables(evidence: Evidence, columns: Ints) -> tuple[Bools, Bools]:
    """Return (concepts, columns) what concepts surely have, and what they lack."""
    sure = np.zeros((evidence.concept.size, evidence.relation.size), dtype=np.bool_)
    sure[evidence.sure.concept, evidence.sure.property] = True
    return sure[:, columns], evidence.lacks[:, columns]


def _sharing(
    holders: Graph, lacks: Bools, hub: Ints, has: Ints, lacked: Ints, split: Ints
) -> Graph:
    """Return the graph from lines to concepts of the hub's split with only one property."""
    line, node = holders.expand(has)
    fits = lacks[node, lacked[line]] & (split[node] == split[hub[line]])
    return Graph.from_edges(max(hub.size, len(split)), line[fits], node[fits])


def _fitting(evidence: Evidence, columns: Ints) -> Bools:
    """Return (properties, properties) whether the second may be denied of holders of the first."""
    names = np.array(evidence.relation_names)[evidence.relation[columns]]
    event, place = np.isin(names, EVENTS), names == PLACE
    target = evidence.object[columns]
    fits = target[:, None] != target
    # Properties of events are not denied of things.
    fits &= event[:, None] | ~event
    return np.asarray(fits & ~(place[:, None] & place))


def _chosen(
    groups: Ints,
    repeats: int,
    evidence: Evidence,
    split: Ints,
    options: PropertyOptions,
    rng: RandomGenerator,
    rules: ChoiceRules,
) -> tuple[PropertyPairs, Ints]:
    """Choose groups, those of rare concepts first, within the limits of repetition.

    The same question and gold occur at most ``repeats`` times, and the same three concepts once.
    If choices are matched, the gold is in each place of the order of similarity about equally often
    in each split.
    """
    able = rules.askable(PropertyPairs(*groups.reshape(-1, 5)[:, :3].T))
    groups = groups[able.reshape(-1, 3).all(axis=1)]
    place = None
    if rules.places is not None and len(groups):
        places = rules.places(groups.reshape(-1, 5))
        place = (places.reshape(-1, 3, 1) == np.arange(3)).sum(axis=1)
    in_place = np.zeros((int(split.max(initial=0)) + 1, 3), dtype=np.int64)
    golds: Counter[int] = Counter()
    asked: Counter[tuple[int, int, int]] = Counter()
    answered: Counter[tuple[int, int, int, int]] = Counter()
    together: set[tuple[int, ...]] = set()
    relations: Counter[int] = Counter()
    relation = (evidence.relation // 2).tolist()
    cap = options.cap_per_gold
    kept: list[int] = []
    identity = np.arange(len(groups), dtype=np.int64)
    times = np.bincount(groups[:, :, 0].ravel(), minlength=len(split))
    common = times[groups[:, :, 0]].max(axis=1, initial=0)
    for at in np.lexsort((rng.bits(identity), common)).tolist():
        group = groups[at].tolist()
        if cap and any(golds[row[0]] >= cap for row in group):
            continue
        part = int(split[group[0][0]])
        questions = [(part, min(row[1:3]), max(row[1:3])) for row in group]
        answers = [(*question, row[0]) for question, row in zip(questions, group, strict=True)]
        members = tuple(sorted(row[0] for row in group))
        more = Counter(relation[which] for row in group for which in row[1:3])
        counts = in_place[part] if place is None else in_place[part] + place[at]
        size = 2 * 3 * (len(kept) + 1)
        if (
            any(asked[question] >= CAP_PER_QUESTION for question in questions)
            or any(answered[answer] >= repeats for answer in answers)
            or members in together
            or counts.max() > MOST_IN_PLACE * counts.sum() + MOST_EXTRA
            or any(
                relations[name] + count > max(MAX_SHARE * size, FEW) for name, count in more.items()
            )
        ):
            continue
        kept.append(at)
        in_place[part] = counts
        golds.update(row[0] for row in group)
        asked.update(questions)
        answered.update(answers)
        together.add(members)
        relations.update(more)
    gold, first, second, one, other = groups[np.array(kept, dtype=np.int64)].reshape(-1, 5).T
    return PropertyPairs(gold, first, second), np.stack([one, other], axis=1)
