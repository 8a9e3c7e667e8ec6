"""From questions to rows: distractors for each question from pools of related nodes.

A family is a pool of nodes for each key (the concept, its gold, or the gold's part of speech).
Asking the same question again with distractors of another family, or of another distance, is a
*perturbation* in the sense of Richardson & Sabharwal (TACL 2020, section 3.2): :func:`perturb`.
The choice that all rows of a question have in common is then its gold, so that a model
that sees several of them need not know the answer. :func:`draw_once` asks each question once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import (
    Candidates,
    Draw,
    draw_balanced,
    draw_uniform,
    ranks_within,
    sorted_by,
)
from builders.engine.options import RANDOM
from builders.engine.workers import workers
from kb_cache.graph import Graph
from kbprobe.arrays import AnyInts, Bools, Ints, contains, ragged_ranges, sorted_unique
from kbprobe.processes import side_by_side
from kbprobe.rng import RandomGenerator

NEVER_DRAWN = -1
"""The kind of nodes that are no distractor of anything."""

CHUNK_ROWS = 1 << 16
"""Rows drawn for at a time under uniform sampling: bounds memory whatever the probe's size."""

FORKED_ROWS = 1 << 20
"""Rows to draw for from which on processes are worth being started."""

POOL_SAMPLE = 24
"""Members looked at in a larger pool under uniform sampling, where a handful will be used."""

BALANCED_POOL_SAMPLE = 96
FILL_SAMPLE = 16


@dataclass(frozen=True)
class Pool:
    """Ragged lists of nodes: those of key ``i`` are ``node[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    node: Ints
    group: Ints | None = None

    @classmethod
    def of(cls, graph: Graph) -> Pool:
        """Take each node's neighbours as its pool."""
        return cls(graph.indptr, graph.indices)

    @classmethod
    def empty(cls) -> Pool:
        """Return a pool without keys, for a family that is drawn in another way."""
        return cls(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))

    def with_empty_key(self) -> Pool:
        """Add a last key that has no nodes."""
        return Pool(np.append(self.indptr, self.indptr[-1]), self.node, self.group)

    @classmethod
    def from_pairs(cls, keys: int, key: Ints, node: Ints, group: Ints | None = None) -> Pool:
        """Collect pairs (key, node) in any order; ``keys`` is the number of keys."""
        order = np.argsort(key, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=keys))])
        return cls(indptr, node[order], None if group is None else group[order])

    def restricted(self, allowed: Bools) -> Pool:
        """Keep the nodes marked in ``allowed``."""
        keep = allowed[self.node]
        indptr = np.concatenate([[0], np.cumsum(keep)])[self.indptr]
        return Pool(indptr, self.node[keep], None if self.group is None else self.group[keep])

    def candidates(self, keys: Ints, limit: int, rng: RandomGenerator) -> Candidates:
        """Return each key's pool, or ``limit`` random draws from it where it is much larger.

        Rows of the result are positions in ``keys``; each (row, node) occurs once.
        """
        start, length = self.indptr[keys], np.diff(self.indptr)[keys]
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
        group = None if self.group is None else self.group[at[order]]
        return Candidates(row[order], self.node[at[order]], group)


def family_label(name: str, distance: int) -> str:
    """Return ``sister 2`` for a family at a distance, its bare name where that is 0."""
    return f"{name} {distance}" if distance else name


class Family(NamedTuple):
    """A way of choosing distractors: pools, and the key of each question's pool."""

    name: str
    distance: int
    pool: Pool
    key: Ints

    @property
    def label(self) -> str:
        """Name and distance, as counts and tables show them."""
        return family_label(self.name, self.distance)


@dataclass(frozen=True)
class Truth:
    """What may not stand as a distractor, because it is true or could be taken for true.

    Attributes:
        size: number of nodes.
        true_of: sorted keys ``concept * size + node`` of what is true of each concept.
        alike: sorted keys ``node * size + node`` of nodes that share a name or a text.
        field: (size,) nodes of one field (0 or more) are too near in meaning for one row: neither
            stands beside a gold of its field, nor two of them among random distractors. -1: of no
            field. None: there are no fields.
    """

    size: int
    true_of: Ints
    alike: Ints
    field: Ints | None = None

    @classmethod
    def of(cls, concepts: Ints, position: Ints, node: Ints, alike: Graph, *near: Graph) -> Truth:
        """Take as true the concepts, what is true of them, and all that is near or alike to these.

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
        """Return the truth with more that is true of nodes: concept -> node."""
        keys = [self.true_of, *(graph.keys for graph in more)]
        return replace(self, true_of=sorted_unique(np.concatenate(keys)))

    def and_alike(self, more: Graph) -> Truth:
        """Return the truth with more nodes that may be taken for one another."""
        return replace(self, alike=sorted_unique(np.concatenate([self.alike, more.keys])))

    def groups(self, nodes: Ints) -> Ints | None:
        """Number the nodes so that at most one of a number may be drawn for a row."""
        if self.field is None:
            return None
        return np.where(self.field[nodes] < 0, self.size + nodes, self.field[nodes])

    def apart(self, pool: Pool) -> Pool:
        """Return a family's pool such that at most one node of a field is drawn for a row.

        A pool that has groups of its own keeps the nodes of no field.
        """
        if self.field is None:
            return pool
        if pool.group is None:
            return replace(pool, group=self.groups(pool.node))
        return pool.restricted(self.field < 0)

    @cached_property
    def _has_likes(self) -> Bools:
        likes = np.zeros(self.size, dtype=np.bool_)
        likes[self.alike % self.size] = True
        return likes

    def is_false(self, concept: Ints, gold: Ints, node: Ints) -> Bools:
        """Tell for parallel arrays whether ``node`` is a wrong answer beside ``gold``."""
        false = (node != gold) & (node != concept)
        false &= ~contains(self.true_of, concept * self.size + node)
        if self.field is not None:
            false &= (self.field[node] < 0) | (self.field[node] != self.field[gold])
        # Few nodes are like any other: only those need the search.
        doubtful = np.flatnonzero(false & self._has_likes[node])
        asked = np.stack([gold[doubtful], concept[doubtful]]) * self.size + node[doubtful]
        false[doubtful] = ~contains(self.alike, asked).any(axis=0)
        return np.asarray(false)


@dataclass(frozen=True)
class QuestionBatch:
    """The questions to draw distractors for: parallel arrays, one line each."""

    concept: Ints
    gold: Ints
    split: Ints
    kind: Ints
    """Part of speech: fills and random distractors are of the gold's kind."""
    weight: Ints
    """How many questions a line stands for, which will show the same choices."""

    def take(self, rows: Ints) -> QuestionBatch:
        """Return some of the questions."""
        columns = (self.concept, self.gold, self.split, self.kind, self.weight)
        return QuestionBatch(*(column[rows] for column in columns))


class Perturbation(NamedTuple):
    """One family's rows: ``rows`` index the questions; ``filled`` marks random fills."""

    family: Family
    rows: AnyInts
    nodes: AnyInts
    filled: Bools


def perturb(
    asked: QuestionBatch,
    families: Sequence[Family],
    truth: Truth,
    node_kind: Ints,
    *,
    distractors: int,
    max_fill: int,
    sampling: str,
    repeats: int,
    rng: RandomGenerator,
) -> Iterator[Perturbation]:
    """Draw distractors for every question and family.

    Args:
        asked: the questions.
        families: the families to draw from; one whose name is ``random`` needs no pool.
        truth: which nodes are wrong answers to which question.
        node_kind: part of speech of every node; ``NEVER_DRAWN`` for no distractor of anything.
        distractors: how many each row needs.
        max_fill: how many of them may be random where a family runs short.
        sampling: ``uniform`` or ``balanced`` (see :mod:`builders.engine.draw.balanced`).
        repeats: rows for each question, family and distance.
        rng: the random generator.
    """
    balanced = sampling == "balanced"
    kinds, drawable = int(node_kind.max(initial=0)) + 1, np.flatnonzero(node_kind >= 0)
    anywhere = Pool.from_pairs(kinds, node_kind[drawable], drawable, truth.groups(drawable))
    if balanced:
        # A split at a time, from that split's golds.
        batches = [
            ("split", int(x), np.flatnonzero(asked.split == x)) for x in sorted_unique(asked.split)
        ]
    else:
        lines = np.arange(asked.gold.size, dtype=np.int64)
        batches = [
            ("rows", at, lines[at : at + CHUNK_ROWS]) for at in range(0, lines.size, CHUNK_ROWS)
        ]

    def draw(job: tuple[Family, Ints, RandomGenerator]) -> tuple[AnyInts, AnyInts, Bools]:
        family, rows, chance = job
        some = asked.take(rows)
        # Balanced, random distractors are golds of the split, each as often as it is gold.
        if balanced:
            at_random = Pool.from_pairs(kinds, some.kind, some.gold, truth.groups(some.gold))
        else:
            at_random = anywhere
        sample = BALANCED_POOL_SAMPLE if balanced else POOL_SAMPLE
        if family.name == RANDOM:
            pool, key = at_random, some.kind
            sample = 4 * distractors if balanced else sample
        else:
            pool, key = truth.apart(family.pool), family.key[rows]
            if balanced:
                pool = pool.restricted(np.bincount(some.gold, minlength=truth.size) > 0)
            elif drawable.size < node_kind.size:
                pool = pool.restricted(node_kind >= 0)
        found = _false_only(pool.candidates(key, sample, chance), some, truth)
        if balanced:
            drawn = draw_balanced(
                found, some.gold, truth.size, distractors, max_fill, chance, weight=some.weight
            )
        else:
            drawn = draw_uniform(found, np.arange(rows.size), distractors, chance)
        drawn, filled = _fill(drawn, some, at_random, truth, max_fill, chance.child("fill"))
        # Kept for all families until the last is drawn: as narrow as they can be.
        return rows[drawn.rows].astype(np.int32), drawn.nodes.astype(np.int32), filled

    jobs = [
        (family, rows, rng.child(family.name, family.distance, repeat).child(what, first))
        for family in families
        for repeat in range(repeats)
        for what, first, rows in batches
    ]
    # Draws depend on nothing but their rng, so they may run side by side: NumPy sorts and
    # gathers without holding the interpreter's lock, if only for a part of the time.
    fork = sum(rows.size for _, rows, _ in jobs) >= FORKED_ROWS
    for (family, *_), drawn in zip(
        jobs, side_by_side(draw, jobs, workers().count, fork=fork), strict=True
    ):
        yield Perturbation(family, *drawn)


def draw_once(
    asked: QuestionBatch,
    families: Sequence[Family],
    truth: Truth,
    node_kind: Ints,
    *,
    distractors: int,
    max_fill: int,
    sampling: str,
    rng: RandomGenerator,
) -> Iterator[Perturbation]:
    """Draw distractors for every question once, from one of the families.

    Each question gets one of the families other than ``random``, with equal chance, whatever its
    pools hold. Rows of a family are those of this random part that :func:`perturb` draws for all
    questions: balanced for the part alone, most pools would be too small. What a family cannot
    serve is asked with random distractors, if those are among the families, and is else left out;
    they are balanced for the questions that get them. The arguments are those of :func:`perturb`.
    """
    draw = partial(
        perturb,
        truth=truth,
        node_kind=node_kind,
        distractors=distractors,
        max_fill=max_fill,
        sampling=sampling,
        repeats=1,
        rng=rng,
    )
    related = [family for family in families if family.name != RANDOM]
    number = {family.label: at for at, family in enumerate(related)}
    chosen = rng.child("family").below(max(len(related), 1), asked.concept, asked.gold)
    left = np.ones(asked.gold.size, dtype=np.bool_)
    for part in draw(asked, related):
        mine = chosen[part.rows] == number[part.family.label]
        left[part.rows[mine]] = False
        yield Perturbation(part.family, part.rows[mine], part.nodes[mine], part.filled[mine])
    rest = np.flatnonzero(left)
    for part in draw(asked.take(rest), [family for family in families if family.name == RANDOM]):
        yield part._replace(rows=rest[part.rows])


def _false_only(candidates: Candidates, asked: QuestionBatch, truth: Truth) -> Candidates:
    row, node = candidates.row, candidates.node
    return candidates.take(truth.is_false(asked.concept[row], asked.gold[row], node))


def _fill(
    draw: Draw, asked: QuestionBatch, pool: Pool, truth: Truth, max_fill: int, rng: RandomGenerator
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
    # Gaps stand at the end of a line, so the nth fill goes to the nth gap.
    column = (nodes.shape[1] - wanted)[found.row] + ranks_within(found.row)
    nodes[short[found.row], column] = found.node
    return Draw(rows[whole], nodes[whole]), filled[whole]
