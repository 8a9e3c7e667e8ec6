"""Distractor families: where a question's distractors come from, and what cannot be one.

A *perturbation* is one family's rows: the same questions, with distractors of that family. Under
*grouped* sampling the questions of a pool share their choices (see
:mod:`builders.engine.draw.pools`). Under *uniform* sampling each question's distractors are drawn
independently, with every candidate equally likely, as Richardson & Sabharwal (TACL 2020, section
3.2) describe: golds can then be recognised without the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import (
    Candidates,
    Draw,
    draw_uniform,
    ranks_within,
    sorted_by,
)
from builders.engine.options import RANDOM
from kb_cache.graph import Graph
from kbprobe.arrays import AnyInts, Bools, Ints, KeySet, mask_at, ragged_ranges, sorted_unique
from kbprobe.rng import RandomGenerator

NEVER_DRAWN = -1
"""The kind of nodes that are never drawn as distractors."""

CHUNK_ROWS = 1 << 16
"""Rows per chunk under uniform sampling: bounds memory for probes of any size."""

POOL_SAMPLE = 24
"""Number of draws from a large pool under uniform sampling; only a few of them are used."""

FILL_SAMPLE = 16


@dataclass(frozen=True)
class Pool:
    """Ragged lists of nodes: those of key ``i`` are ``node[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    node: Ints

    @classmethod
    def of(cls, graph: Graph) -> Pool:
        """Take each node's neighbours as its pool."""
        return cls(graph.indptr, graph.indices)

    @classmethod
    def from_pairs(cls, keys: int, key: Ints, node: Ints) -> Pool:
        """Collect pairs (key, node) in any order; ``keys`` is the number of keys."""
        order = np.argsort(key, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=keys))])
        return cls(indptr, node[order])

    def restricted(self, allowed: Bools) -> Pool:
        """Keep the nodes marked in ``allowed``."""
        keep = allowed[self.node]
        indptr = np.concatenate([[0], np.cumsum(keep)])[self.indptr]
        return Pool(indptr, self.node[keep])

    def candidates(self, keys: Ints, limit: int, rng: RandomGenerator) -> Candidates:
        """Return each key's pool, or ``limit`` random draws from it if it is much larger.

        Rows of the result are positions in ``keys`` (a key of -1 has no pool); each (row, node)
        occurs once.
        """
        start = self.indptr[keys]
        length = np.where(keys < 0, 0, np.diff(self.indptr)[keys])
        large = length > 2 * limit
        rows = np.arange(keys.size, dtype=np.int64)
        whole = ~large
        row = np.repeat(rows[whole], length[whole])
        at = ragged_ranges(start[whole], length[whole])
        if large.any():
            drawn = np.repeat(rows[large], limit)
            nth = np.tile(np.arange(limit, dtype=np.int64), int(large.sum()))
            offset = rng.below(length[drawn], drawn, nth)
            row, at = np.concatenate([row, drawn]), np.concatenate([at, start[drawn] + offset])
        span = int(self.node.max(initial=0)) + 1
        key = row * span + self.node[at]
        order = np.argsort(key, kind="stable")
        order = order[np.concatenate([[True], np.diff(key[order]) > 0])] if order.size else order
        return Candidates(row[order], self.node[at[order]])


def family_label(name: str, distance: int) -> str:
    """Return ``sister 2`` for a family at a distance, or just its name if the distance is 0."""
    return f"{name} {distance}" if distance else name


class ChoiceKinds(NamedTuple):
    """A division of distractors by their relation to the concept and the gold.

    Attributes:
        names: those of the kinds.
        of: function of parallel arrays of concepts, golds and distractors that returns the index of
            each distractor's kind; -1 for none.
    """

    names: Sequence[str]
    of: Callable[[Ints, Ints, Ints], Ints]


class Family(NamedTuple):
    """A way of choosing distractors for some questions.

    Attributes:
        name, distance: the family's name and distance.
        key: (questions,) questions with the same key may share choices; -1: with no other.
        unit: (questions,) a group has at most one question of each unit; None: of each gold.
        kin: (questions,) questions with the same number, such as the senses of a word, are put in
            one group, completed with others of the same key; None: no questions belong together.
        by_row: rows of a group without distractors of the family are random ones, rather than
            being counted with the rest of their group.
        pool: candidates by key, for uniform sampling; None: the golds of the key.
        close: (questions,) in matched groups, questions with neighbouring keys may share choices,
            and of these, those with the same number are preferred; None: only those of one key may.
        kinds: what the family's distractors are in particular; None: nothing.
    """

    name: str
    distance: int
    key: Ints
    unit: Ints | None = None
    kin: Ints | None = None
    by_row: bool = False
    pool: Pool | None = None
    close: Ints | None = None
    kinds: ChoiceKinds | None = None

    @property
    def label(self) -> str:
        """Name and distance, as counts and tables show them."""
        return family_label(self.name, self.distance)


@dataclass(frozen=True)
class Truth:
    """Nodes that must not be distractors, because they are true or could be taken as true.

    Attributes:
        size: number of nodes.
        true_of: sorted keys ``concept * size + node`` of the nodes true of each concept.
        alike: sorted keys ``node * size + node`` of nodes that share a name or a text.
    """

    size: int
    true_of: Ints
    alike: Ints

    @classmethod
    def of(cls, concepts: Ints, position: Ints, node: Ints, alike: Graph, *near: Graph) -> Truth:
        """Treat as true the concepts, the nodes true of them, and all nodes near or like these.

        ``node`` is true of the concept at ``position``; each graph is followed once.
        """
        size = len(alike)
        owner = np.concatenate([concepts, concepts[position]])
        member = np.concatenate([concepts, node])
        for graph in (*near, alike):
            at, other = graph.expand(member)
            owner, member = np.append(owner, owner[at]), np.append(member, other)
        return cls(size, sorted_unique(owner * size + member), alike.keys)

    def and_true(self, *more: Graph) -> Truth:
        """Return the truth with additional pairs: concept -> node true of it."""
        keys = [self.true_of, *(graph.keys for graph in more)]
        return replace(self, true_of=sorted_unique(np.concatenate(keys)))

    @cached_property
    def _has_likes(self) -> Bools:
        return mask_at(self.size, self.alike % self.size)

    def is_false(self, concept: Ints, gold: Ints, node: Ints) -> Bools:
        """Return for parallel arrays whether ``node`` is a wrong answer next to ``gold``."""
        false = (node != gold) & (node != concept)
        false &= ~self._true_keys.contains(concept * self.size + node)
        # Few nodes are like others, and only those need the search.
        doubtful = np.flatnonzero(false & self._has_likes[node])
        asked = np.stack([gold[doubtful], concept[doubtful]]) * self.size + node[doubtful]
        false[doubtful] = ~self._alike_keys.contains(asked.ravel()).reshape(2, -1).any(axis=0)
        return np.asarray(false)

    def false_among(self, concept: Ints, gold: Ints, nodes: Ints) -> Bools:
        """Return (questions, nodes) what `is_false` does, of each question and each node.

        ``nodes`` are distinct and ascending.
        """
        false = (concept[:, None] != nodes) & (gold[:, None] != nodes)
        for keys, node in ((self.true_of, concept), (self.alike, concept), (self.alike, gold)):
            distinct, number = np.unique(node, return_inverse=True)
            start, end = np.searchsorted(keys, [distinct * self.size, (distinct + 1) * self.size])
            other = keys[ragged_ranges(start, end - start)] % self.size
            place = np.minimum(np.searchsorted(nodes, other), nodes.size - 1)
            known = nodes[place] == other
            true = np.zeros((distinct.size, nodes.size), dtype=np.bool_)
            true[np.repeat(np.arange(distinct.size), end - start)[known], place[known]] = True
            false &= ~true[number]
        return np.asarray(false)

    @cached_property
    def _true_keys(self) -> KeySet:
        return KeySet(self.true_of)

    @cached_property
    def _alike_keys(self) -> KeySet:
        return KeySet(self.alike)


Wrong = Callable[[Ints, Ints], Bools]
"""Function of two parallel arrays of questions from the same pools that returns whether the gold of
the second is clearly a wrong answer to the first."""


@dataclass(frozen=True)
class GroupRules:
    """Constraints on groups.

    Attributes:
        size: the number of questions in a group, and of choices.
        uses: the number of groups of a family that a question may be in.
        wrong: whether the gold of one question may be a choice next to that of another.
    """

    size: int
    uses: int
    wrong: Wrong

    def sound(self, groups: Ints) -> Bools:
        """Return (groups, size, size) whether the gold of the third is wrong for the second."""
        one = np.repeat(groups, self.size, axis=1).ravel()
        other = np.tile(groups, (1, self.size)).ravel()
        return self.wrong(one, other).reshape(-1, self.size, self.size)


def others_of(size: int) -> Ints:
    """Return (size, size - 1) the places of the others of each member of a group."""
    return np.array([[j for j in range(size) if j != i] for i in range(size)])


@dataclass(frozen=True)
class DrawRequest:
    """The questions to draw distractors for: parallel arrays, one line each."""

    concept: Ints
    gold: Ints
    kind: Ints
    """Part of speech: fills and random distractors are of the gold's kind."""

    def take(self, rows: Ints) -> DrawRequest:
        """Return some of the questions."""
        return DrawRequest(self.concept[rows], self.gold[rows], self.kind[rows])


class Perturbation(NamedTuple):
    """One family's rows: ``rows`` index the questions; ``filled`` marks random fills."""

    family: Family
    rows: AnyInts
    nodes: AnyInts
    filled: Bools


def perturb(
    asked: DrawRequest,
    families: Sequence[Family],
    truth: Truth,
    node_kind: Ints,
    *,
    distractors: int,
    max_fill: int,
    repeats: int,
    rng: RandomGenerator,
) -> Iterator[Perturbation]:
    """Draw distractors for each question and family independently and uniformly.

    Args:
        asked: the questions.
        families: the families to draw from; one whose name is ``random`` needs no pool.
        truth: which nodes are wrong answers to which question.
        node_kind: part of speech of every node; ``NEVER_DRAWN`` for nodes that are never
            distractors.
        distractors: the number of distractors per row.
        max_fill: how many of them may be random if a family has too few.
        repeats: rows for each question, family and distance.
        rng: the random generator.
    """
    kinds, drawable = int(node_kind.max(initial=0)) + 1, np.flatnonzero(node_kind >= 0)
    anywhere = Pool.from_pairs(kinds, node_kind[drawable], drawable)

    def draw(family: Family, rows: Ints, chance: RandomGenerator) -> Perturbation:
        some = asked.take(rows)
        if family.name == RANDOM:
            pool, key = anywhere, some.kind
        else:
            pool, keys = _pool_of(family, asked)
            key = keys[rows]
            if drawable.size < node_kind.size:
                pool = pool.restricted(node_kind >= 0)
        found = _false_only(pool.candidates(key, POOL_SAMPLE, chance), some, truth)
        drawn = draw_uniform(found, np.arange(rows.size), distractors, chance)
        drawn, filled = _fill(drawn, some, anywhere, truth, max_fill, chance.child("fill"))
        # All families are kept in memory until the last is drawn: use narrow types.
        narrow = rows[drawn.rows].astype(np.int32), drawn.nodes.astype(np.int32)
        return Perturbation(family, *narrow, filled)

    lines = np.arange(asked.gold.size, dtype=np.int64)
    for family in families:
        for repeat in range(repeats):
            chance = rng.child(family.name, family.distance, repeat)
            for start in range(0, lines.size, CHUNK_ROWS):
                yield draw(family, lines[start : start + CHUNK_ROWS], chance.child("rows", start))


def _pool_of(family: Family, asked: DrawRequest) -> tuple[Pool, Ints]:
    """Return a family's candidates by key, and the key of each question.

    By default, the candidates are the golds of the questions of a key, or of the kin of a kind.
    """
    if family.pool is not None:
        return family.pool, family.key
    key = family.key
    if family.kin is not None:
        kin = np.stack([key, family.kin, asked.kind])
        key = np.where(key < 0, -1, np.unique(kin, axis=1, return_inverse=True)[1])
    known = key >= 0
    return Pool.from_pairs(int(key.max(initial=0)) + 1, key[known], asked.gold[known]), key


def _false_only(candidates: Candidates, asked: DrawRequest, truth: Truth) -> Candidates:
    row, node = candidates.row, candidates.node
    return candidates.take(truth.is_false(asked.concept[row], asked.gold[row], node))


def _fill(
    draw: Draw, asked: DrawRequest, pool: Pool, truth: Truth, max_fill: int, rng: RandomGenerator
) -> tuple[Draw, Bools]:
    """Fill gaps (-1) with random nodes of the gold's kind; drop rows with too many gaps."""
    gaps = (draw.nodes < 0).sum(axis=1)
    usable = (gaps <= max_fill) & (gaps < draw.nodes.shape[1])
    rows, nodes = draw.rows[usable], draw.nodes[usable]
    filled = nodes < 0
    short = np.flatnonzero(filled.any(axis=1))
    if short.size == 0:
        return Draw(rows, nodes), filled
    some = asked.take(rows[short])
    found = _false_only(pool.candidates(some.kind, FILL_SAMPLE, rng), some, truth)
    fresh = ~(nodes[short][found.row] == found.node[:, None]).any(axis=1)
    found = found.take(np.asarray(fresh))
    order = sorted_by(found.row, rng.uniform(found.row, found.node))
    found = found.take(order)
    wanted = filled[short].sum(axis=1)
    keep = ranks_within(found.row) < wanted[found.row]
    found = found.take(keep)
    complete = np.bincount(found.row, minlength=short.size) == wanted
    found = found.take(complete[found.row])
    whole = np.ones(rows.size, dtype=np.bool_)
    whole[short[~complete]] = False
    # Gaps are at the end of a line, so the nth fill goes to the nth gap.
    column = (nodes.shape[1] - wanted)[found.row] + ranks_within(found.row)
    nodes[short[found.row], column] = found.node
    return Draw(rows[whole], nodes[whole]), filled[whole]
