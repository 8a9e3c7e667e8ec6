"""How a plan's choices are ordered, how wordings are chosen, and where answers come from.

Most probes use the defaults: choices shuffled row by row, any wording for any question, answers
from the knowledge base. A plan that needs another strategy has one of the objects here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from builders.engine.draw.balanced import ranks_within
from kbprobe.arrays import Bools, Ints, Some, UInts
from kbprobe.rng import RandomGenerator

Golds = Callable[[], Ints]


@dataclass(frozen=True)
class Shuffled:
    """Each row's choices are shuffled, whatever other rows show."""

    def take(self, rows: Some) -> Shuffled:
        """Return the strategy restricted to some rows."""
        return self

    def kept_together(self, cluster: Ints) -> Ints:
        """Return a group number for each row: cutting a split keeps groups together."""
        return cluster

    def side_by_side(self, cluster: Ints, question: Ints) -> Ints:
        """Return a group number for each row: the rows of a group are contiguous.

        ``question`` holds the keys of the rows' questions.
        """
        return cluster

    def order(self, ids: UInts, nodes: Ints, keys: Ints, rng: RandomGenerator) -> Ints:
        """Return (rows, K) which of the plan's choices is at each position.

        ``ids`` are the rows'; ``nodes`` (rows, K) the choices, gold first; ``keys`` (rows, K) their
        identities in the knowledge base.
        """
        cell = np.arange(nodes.shape[1], dtype=np.int64)
        return np.argsort(rng.bits(ids[:, None], cell[None, :]), axis=1)


@dataclass(frozen=True)
class FixedScale(Shuffled):
    """Choices are the steps of a scale, in the order of their nodes in every row."""

    def order(self, ids: UInts, nodes: Ints, keys: Ints, rng: RandomGenerator) -> Ints:
        """Return the order of the scale."""
        return np.argsort(nodes, axis=1)


@dataclass(frozen=True)
class Scattered(FixedScale):
    """Like `FixedScale`, but the rows of a cluster are not contiguous.

    If a cluster contains each answer once, earlier rows would otherwise reveal a row's answer.
    """

    def side_by_side(self, cluster: Ints, question: Ints) -> Ints:
        """Return the rows' own questions."""
        return question


@dataclass(frozen=True)
class ByChoiceGroup(Shuffled):
    """Rows of a group have the same choices in the same order, each the gold of one row.

    Each position then holds the gold equally often. ``group`` is the number of each row's group.
    """

    group: Ints

    def take(self, rows: Some) -> ByChoiceGroup:
        """Return the groups of some rows."""
        return ByChoiceGroup(self.group[rows])

    def kept_together(self, cluster: Ints) -> Ints:
        """Return the groups: part of a group would show choices that are never gold."""
        return self.group

    def order(self, ids: UInts, nodes: Ints, keys: Ints, rng: RandomGenerator) -> Ints:
        """Return one random order for each group."""
        return np.argsort(rng.bits(self.group[:, None], keys), axis=1)


@dataclass(frozen=True)
class AnyWording:
    """Every wording of the template fits every question; one is drawn per question."""

    def choose(
        self, used: Ints, key: Ints, gold: Golds, ids: Sequence[str], rng: RandomGenerator
    ) -> Ints:
        """Return the index of each question's wording, given the ids of all.

        ``used`` are lines of the plan's questions, ``key`` their identities, and ``gold()`` returns
        a gold of each.
        """
        return rng.below(len(ids), key)


def name_of_wording(id: str) -> str:
    """Return the name of the questions that a wording belongs to, where each has its own.

    >>> name_of_wording("capital.2"), name_of_wording("band-start-paper")
    ('capital', 'band-start')
    """
    return id[: max(id.rfind("."), id.rfind("-"), 0)]


@dataclass(frozen=True)
class WordingsByName(AnyWording):
    """Each question has wordings of its own, found by their ids (`name_of_wording`).

    ``name`` (questions,) is the index of each question's name in ``names``.
    """

    name: Ints
    names: tuple[str, ...]

    def choose(
        self, used: Ints, key: Ints, gold: Golds, ids: Sequence[str], rng: RandomGenerator
    ) -> Ints:
        """Draw one of the wordings of each question's name."""
        number = {name: place for place, name in enumerate(self.names)}
        named = np.array([number.get(name_of_wording(one), -1) for one in ids])
        order = np.argsort(named, kind="stable")
        first, end = np.searchsorted(named[order], [self.name[used], self.name[used] + 1])
        return np.asarray(order[first + rng.below(end - first, key)])


@dataclass(frozen=True)
class BalancedWordings(AnyWording):
    """Questions with one carrier sentence and gold use all wordings equally often.

    The wording then reveals nothing about the gold. ``carrier`` numbers everything that a question
    shows besides its arguments (a part of speech, an article).
    """

    carrier: Ints

    def choose(
        self, used: Ints, key: Ints, gold: Golds, ids: Sequence[str], rng: RandomGenerator
    ) -> Ints:
        """Deal the wordings out in turn, within each carrier and gold in random order."""
        carrier, golds, count = self.carrier[used], gold(), len(ids)
        order = np.lexsort((rng.bits(key), golds, carrier))
        _, group = np.unique(np.stack([carrier, golds])[:, order], axis=1, return_inverse=True)
        wording = np.empty_like(order)
        # Every gold of a carrier begins with the same wording, so that remainders cancel out.
        first = rng.child("first").below(count, carrier[order])
        wording[order] = (ranks_within(group) + first) % count
        return wording


@dataclass(frozen=True)
class FromKnowledgeBase:
    """A row's answer is what the knowledge base says; its id depends on it."""

    def known(self, rows: int) -> Bools:
        """(rows,) whether a row has an answer yet."""
        return np.ones(rows, dtype=np.bool_)

    def identity(self, nodes: Ints) -> Ints:
        """Return (K, rows) the choices that determine a row's id: the gold, then the others."""
        return np.concatenate([nodes[:, :1], np.sort(nodes[:, 1:], axis=1)], axis=1).T

    def take(self, rows: Some) -> FromKnowledgeBase:
        """Return the source of some rows' answers."""
        return self


@dataclass(frozen=True)
class FromAnnotators(FromKnowledgeBase):
    """Answers come from people, or a rule in their place; the ids do not depend on them.

    Attributes:
        labelled: (rows,) whether the row has an answer yet; if it has none, column 0 of the plan's
            ``nodes`` is a choice like any other.
        about: what the manifest and the card say about the answers, JSON-ready, including a
            description of the ``source`` ("votes of annotators").
        lines: the labels of each row, JSON-ready: the lines of the probe's labels file.
        natural: whether the answers are left unbalanced.
    """

    labelled: Bools
    about: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]] = ()
    natural: bool = False

    def known(self, rows: int) -> Bools:
        """(rows,) whether a row has an answer yet."""
        return self.labelled

    def identity(self, nodes: Ints) -> Ints:
        """(K, rows) the choices in order: a row is the same before and after it is labelled."""
        return np.sort(nodes, axis=1).T

    def take(self, rows: Some) -> FromAnnotators:
        """Return the source of some rows' answers."""
        return replace(self, labelled=self.labelled[rows])
