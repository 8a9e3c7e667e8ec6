"""What a table's facts are asked for: relations, their inverses, and paths of two.

A distractor must be false, but a table states what is true. So a relation is asked about if a
subject has one object (any other is false), or if the user says that the table states all objects
(``--closed``). What is left out is counted, with the option that would ask about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from builders.engine.drops import DropLog
from builders.tables.options import ALL, FactOptions
from kb_cache.graph import Graph
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Bools, Ints, lines_of
from kbprobe.errors import UsageError, did_you_mean

Ends = tuple[Ints, Ints, Ints, Bools]
"""The subject, object and kind of each fact, and whether it is asked for: parallel arrays."""


class Way(NamedTuple):
    """One way to ask for facts.

    Attributes:
        relations: the names of the relations that lead from what is asked about to the answer.
        inverse: whether the only relation is followed from object to subject.
        several: whether some question has several answers.
        single: whether each answer is known to be a single thing, whatever the relation is called.
    """

    relations: tuple[str, ...]
    inverse: bool = False
    several: bool = False
    single: bool = False

    @property
    def name(self) -> str:
        """The relation of items that are asked in this way."""
        return f"{self.relations[0]} (inverse)" if self.inverse else ", ".join(self.relations)


class AskedFacts(NamedTuple):
    """The facts of all ways: parallel arrays.

    Attributes:
        ways: the ways.
        way: (facts,) index into ``ways``.
        subject: (facts,) the text of what is asked about.
        object: (facts,) the text of the answer.
        kind: (facts,) the kind of the answer.
        asked: (facts,) whether it is asked for; others are only known to be true.
        dropped: reason -> how many of the table's facts are not asked for.
    """

    ways: tuple[Way, ...]
    way: Ints
    subject: Ints
    object: Ints
    kind: Ints
    asked: Bools
    dropped: DropLog


@lru_cache(maxsize=2)
def asked_facts(table: FactTable, options: FactOptions) -> AskedFacts:
    """Return what is asked of a table.

    Raises:
        UsageError: an option names a relation that the table lacks, or nothing is left to ask.
    """
    for option in ("closed", "functional", "transitive"):
        _check_names(table, option, getattr(options, option))
    dropped = DropLog()
    for reason, count in table.left_out.items():
        dropped[reason] = count
    kept = _of_asked_relations(table, options, dropped)
    dropped.require(int(kept.sum()))
    columns = (table.subject, table.relation, table.object, table.kind, table.current)
    subject, relation, target, kind, current = lines_of(columns, kept)
    dropped["an earlier year"] += int((~current).sum())
    parts: list[Ends] = []
    ways: list[Way] = []
    for code in np.unique(relation).tolist():
        lines = relation == code
        some = lines_of((subject, target, kind, current), lines)
        name = table.relations[code]
        if name in options.transitive:
            some = _with_closure(len(table.texts), *some)
        single = bool(options.separator) or name in options.functional
        ways.append(Way((name,), several=_repeats(some[0]), single=single))
        parts.append(some)
        if options.inverse:
            one, other, _, now = some
            ways.append(Way((name,), inverse=True, several=_repeats(other)))
            parts.append((other, one, np.zeros_like(one), now))
    if options.hops > 1:
        for way, some in _paths([*ways], [*parts]):
            ways.append(way)
            parts.append(some)
    number = np.repeat(np.arange(len(parts)), [some[0].size for some in parts]).astype(np.int64)
    one, other, kinds = (np.concatenate([some[end] for some in parts]) for end in range(3))
    asked = np.concatenate([some[3] for some in parts])
    facts = AskedFacts(tuple(ways), number, one, other, kinds, asked, dropped)
    return _large_enough(facts, options)


def _check_names(table: FactTable, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.relations and not (option == "closed" and name == ALL):
            raise UsageError(
                f"--{option} {name}: the table has no such relation."
                f"{did_you_mean(name, table.relations)} It has: {', '.join(table.relations)}"
            )


def _of_asked_relations(table: FactTable, options: FactOptions, dropped: DropLog) -> Bools:
    """Mark the facts of relations whose other objects are known to be false."""
    kept = np.ones(len(table), dtype=np.bool_)
    for code, name in enumerate(table.relations):
        lines = np.flatnonzero((table.relation == code) & table.current)
        subjects, count = np.unique(table.subject[lines], return_counts=True)
        several = subjects[count > 1]
        of_these = np.isin(table.subject, several) & (table.relation == code)
        if not several.size or name in options.closed or ALL in options.closed:
            continue
        if name in options.functional:
            reason = f"{name!r} is --functional, but {several.size:,} subjects have several objects"
            kept &= ~of_these
            dropped[reason] += int(of_these.sum())
            continue
        reason = (
            f"{name!r} has several objects for {several.size:,} subjects: ask with --closed "
            f"{name} if the table states all, or --functional {name} if there is only one"
        )
        dropped[reason] += int((table.relation == code).sum())
        kept &= table.relation != code
    return kept


def _repeats(subject: Ints) -> bool:
    return bool(np.unique(subject).size < subject.size)


def _with_closure(size: int, subject: Ints, target: Ints, kind: Ints, current: Bools) -> Ends:
    """Add what is reached in several steps, which is true but not asked for."""
    graph = Graph.from_edges(size, subject, target)
    own = np.unique(subject)
    walk = graph.walk(own, None)
    more = np.stack([own[walk.source], walk.node])
    new = ~np.isin(more[0] * size + more[1], subject * size + target)
    one, other = more[:, new]
    none = np.zeros(one.size, dtype=np.int64)
    return (
        np.concatenate([subject, one]),
        np.concatenate([target, other]),
        np.concatenate([kind, none]),
        np.concatenate([current, none.astype(np.bool_)]),
    )


def _paths(ways: Sequence[Way], parts: Sequence[Ends]) -> list[tuple[Way, Ends]]:
    """Return the paths of two relations: the objects of objects."""
    found = []
    plain = [(way, ends) for way, ends in zip(ways, parts, strict=True) if not way.inverse]
    for first, (subject, middle, _, now) in plain:
        for second_way, (source, target, kind, then) in plain:
            order = np.argsort(source, kind="stable")
            low = np.searchsorted(source[order], middle, "left")
            count = np.searchsorted(source[order], middle, "right") - low
            line = np.repeat(np.arange(subject.size), count)
            step = np.arange(line.size) - np.repeat(np.cumsum(count) - count, count)
            edge = order[np.repeat(low, count) + step]
            apart = subject[line] != target[edge]
            line, edge = line[apart], edge[apart]
            if line.size:
                names = (*first.relations, *second_way.relations)
                ends = subject[line], target[edge], kind[edge], now[line] & then[edge]
                way = Way(names, several=_repeats(ends[0]), single=second_way.single)
                found.append((way, ends))
    return found


def _large_enough(facts: AskedFacts, options: FactOptions) -> AskedFacts:
    """Leave out the ways with too few different answers to choose from."""
    kept = []
    for code, way in enumerate(facts.ways):
        lines = (facts.way == code) & facts.asked
        answers = np.unique(facts.object[lines]).size
        if answers < options.min_objects:
            reason = f"{way.name!r} has {answers} different answers, fewer than --min-objects"
            facts.dropped[reason] += int(lines.sum())
        else:
            kept.append(code)
    facts.dropped.require(
        len(kept), "Name other relations with --relations, or lower --min-objects."
    )
    lines = np.isin(facts.way, kept)
    ends = lines_of((facts.subject, facts.object, facts.kind, facts.asked), lines)
    number = np.searchsorted(kept, facts.way[lines])
    return AskedFacts(tuple(facts.ways[code] for code in kept), number, *ends, facts.dropped)
