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
import pyarrow as pa

from builders.engine.drops import DropLog
from builders.tables.alike import are_dated, reads_of
from builders.tables.options import ALL, FactOptions
from kb_cache.graph import Graph
from kb_cache.tables.facts import folded
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Bools, Ints, lines_of, occurrences
from kbprobe.errors import UsageError, did_you_mean

SEEN = 200
"""Number of answers by which a relation is found to lead to dates."""

LINKED = 0.15
"""The least share of the things between two relations in which both occur, of those that the first
leads to or of those that the second is about. Below it, a path is one of namesakes: of cities that
are titles of films."""

Ends = tuple[Ints, Ints, Ints, Bools]
"""The subject, object and kind of each fact, and whether it is asked for: parallel arrays."""


class WayToAsk(NamedTuple):
    """One way to ask for facts.

    Attributes:
        relations: the names of the relations that lead from what is asked about to the answer.
        inverse: whether the only relation is followed from object to subject.
        several: whether some question has several answers.
        shared: whether some answer is that of several questions.
        through_several: whether the first of two relations leads to several things from somewhere.
        single: whether each answer is known to be a single thing, whatever the relation is called.
        dated: whether its answers are years or dates.
        sentence: how the table itself asks, with ``{}`` for what is asked about.
    """

    relations: tuple[str, ...]
    inverse: bool = False
    several: bool = False
    shared: bool = False
    through_several: bool = False
    single: bool = False
    dated: bool = False
    sentence: str = ""

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

    ways: tuple[WayToAsk, ...]
    way: Ints
    subject: Ints
    object: Ints
    kind: Ints
    asked: Bools
    dropped: DropLog


class _RelationOptions(NamedTuple):
    """What the options say of a table's relations, and what they ask for."""

    closed: tuple[str, ...]
    functional: tuple[str, ...]
    transitive: tuple[str, ...]
    inverse: bool
    hops: int
    single: bool
    min_objects: int

    def is_closed(self, relation: str) -> bool:
        every = not {*ALL}.isdisjoint(self.closed)
        return relation in self.closed or (every and relation not in self.functional)


def asked_facts(table: FactTable, options: FactOptions) -> AskedFacts:
    """Return what is asked of a table.

    Raises:
        UsageError: an option names a relation that the table lacks, or nothing is left to ask.
    """
    known = _RelationOptions(
        _spelled(table, "closed", options.closed),
        _spelled(table, "functional", options.functional),
        _spelled(table, "transitive", options.transitive),
        options.inverse,
        options.hops,
        bool(options.separator),
        options.min_objects,
    )
    return _asked_facts(table, known)


def _spelled(table: FactTable, option: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of relations as the table spells them."""
    known = {folded(name): name for name in table.relations}
    if option == "closed":
        known = {name: name for name in ALL} | known
    for name in names:
        if folded(name) not in known:
            raise UsageError(
                f"--{option} {name}: the table has no such relation."
                f"{did_you_mean(name, table.relations)} It has: {', '.join(table.relations)}"
            )
    return tuple(known[folded(name)] for name in names)


@lru_cache(maxsize=2)
def _asked_facts(table: FactTable, known: _RelationOptions) -> AskedFacts:
    dropped = DropLog()
    for reason, count in table.left_out.items():
        dropped[reason] = count
    reads = reads_of(table.texts.to_pylist(), table.other_names)
    parts: list[Ends] = []
    ways: list[WayToAsk] = []
    for name, lines in table.of_relations(np.arange(len(table))):
        if name not in table.asked:
            continue
        asked = _known_to_be_whole(table, lines, reads, known, dropped)
        if not asked.any():
            continue
        columns = (table.subject, table.object, table.kind, table.subject_kind)
        subject, target, kind, subject_kind = lines_of(columns, lines)
        pairs = linked(reads[subject], reads[target], name in known.transitive)
        way = WayToAsk(
            (name,),
            single=known.single or name in known.functional,
            dated=are_dated(table.texts.take(pa.array(target[:SEEN])).to_pylist()),
            sentence=table.sentences.get(name, ""),
        )
        ways.append(way)
        parts.append(_with_more((subject, target, kind, asked), reads, *pairs))
        if known.inverse:
            ways.append(WayToAsk((name,), inverse=True))
            parts.append(_with_more((target, subject, subject_kind, asked), reads, *pairs))
    dropped.require(
        len(ways),
        "Say with --closed NAME,... that the table states all objects of a relation, or with "
        "--functional NAME,... that there is only one.",
    )
    if known.hops > 1:
        for way, some in _paths([*ways], [*parts], reads, known, dropped):
            ways.append(way)
            parts.append(some)
    ways = [
        way._replace(several=_repeats(one[asked]), shared=_repeats(other[asked]))
        for way, (one, other, _, asked) in zip(ways, parts, strict=True)
    ]
    if len({way.name for way in ways}) < len(ways):
        name = next(way.name for way in ways if [one.name for one in ways].count(way.name) > 1)
        raise UsageError(f"two relations are called {name!r}; rename one of them in the table")
    number = np.repeat(np.arange(len(parts)), [some[0].size for some in parts]).astype(np.int64)
    one, other, kinds = (np.concatenate([some[end] for some in parts]) for end in range(3))
    asked = np.concatenate([some[3] for some in parts])
    facts = AskedFacts(tuple(ways), number, one, other, kinds, asked, dropped)
    return _large_enough(facts, known.min_objects)


def _known_to_be_whole(
    table: FactTable, lines: Ints, reads: Ints, known: _RelationOptions, dropped: DropLog
) -> Bools:
    """Mark the facts of a relation about subjects whose other objects are known to be false."""
    name = table.relations[table.relation[lines[0]]]
    now, subject = table.current[lines], table.subject[lines]
    dropped["an earlier year"] += int((~now).sum())
    # A state is its own country, and another one's: what is asked about has several objects.
    pairs = np.unique(np.stack([subject, reads[table.object[lines]]])[:, now], axis=1)
    asked = now & dropped.drop("subject and object are the same", subject == table.object[lines])
    subjects, count = np.unique(pairs[0], return_counts=True)
    several = subjects[count > 1]
    if not several.size or known.is_closed(name):
        return asked
    if name in known.functional:
        reason = f"{name!r} is --functional, but {several.size:,} subjects have several objects"
        return asked & dropped.drop(reason, asked & np.isin(subject, several))
    reason = (
        f"{name!r} has several objects for {several.size:,} of {subjects.size:,} subjects "
        f"(--closed or --functional)"
    )
    dropped[reason] += int(asked.sum())
    return np.zeros_like(asked)


def _repeats(subject: Ints) -> bool:
    return bool(np.unique(subject).size < subject.size)


def linked(subject: Ints, target: Ints, transitive: bool) -> tuple[Ints, Ints]:
    """Return the pairs of things that a relation does not tell apart, in both orders.

    These are what is stated, also the other way round (it may be symmetric), and of a transitive
    relation what is reached in several steps.
    """
    if transitive and np.isin(target, subject).any():
        node, local = np.unique(np.concatenate([subject, target]), return_inverse=True)
        one, other = np.split(local, 2)
        walk = Graph.from_edges(node.size, one, other).walk(np.arange(node.size), None)
        subject, target = node[walk.source], node[walk.node]
    return np.concatenate([subject, target]), np.concatenate([target, subject])


def _with_more(stated: Ends, reads: Ints, one: Ints, other: Ints) -> Ends:
    """Add what is true but not asked for: pairs of things, of all texts that read like them."""
    subject, target, kind, asked = stated
    subjects, answers = np.unique(subject[asked]), np.unique(target)
    fits = np.isin(one, reads[subjects]) & np.isin(other, reads[answers])
    one, other = one[fits], other[fits]
    line, source = occurrences(reads[subjects], one)
    one, other = subjects[source], other[line]
    line, node = occurrences(reads[answers], other)
    one, other = one[line], answers[node]
    size = reads.size
    new = ~np.isin(one * size + other, subject * size + target)
    one, other = one[new], other[new]
    none = np.zeros(one.size, dtype=np.int64)
    return (
        np.concatenate([subject, one]),
        np.concatenate([target, other]),
        np.concatenate([kind, none]),
        np.concatenate([asked, none.astype(np.bool_)]),
    )


def _paths(
    ways: Sequence[WayToAsk],
    parts: Sequence[Ends],
    reads: Ints,
    known: _RelationOptions,
    dropped: DropLog,
) -> list[tuple[WayToAsk, Ends]]:
    """Return the paths of two relations: the objects of objects.

    A path is asked about if the second relation is stated of all that the first leads to.
    """
    found = []
    plain = [
        (way, ends, np.unique(reads[ends[0]]), np.unique(reads[ends[1]]))
        for way, ends in zip(ways, parts, strict=True)
        if not way.inverse
    ]
    for first, (subject, middle, _, now), _, middles in plain:
        for second, (source, target, kind, then), about, _ in plain:
            if first is second and first.relations[0] in known.transitive:
                continue
            links = int(np.isin(middles, about).sum())
            if links < LINKED * min(middles.size, about.size):
                name = f"{first.name}, {second.name}"
                dropped[f"{name!r} may link namesakes, {links:,} of {middles.size:,}"] += links
                continue
            line, edge = occurrences(reads[source], reads[middle])
            ends = now & ~np.isin(reads[middle], about)
            open_ended = ends & (not known.is_closed(second.relations[0]))
            whole = ~np.isin(subject, subject[open_ended])
            apart = subject[line] != target[edge]
            line, edge = line[apart], edge[apart]
            # Things that only read alike may be two: what follows is known, but not asked for.
            asked = now[line] & then[edge] & whole[line] & (middle[line] == source[edge])
            if asked.any():
                way = WayToAsk(
                    (*first.relations, *second.relations),
                    through_several=_repeats(subject[now]),
                    single=second.single,
                )
                found.append((way, _each_once((subject[line], target[edge], kind[edge], asked))))
    return found


def _each_once(ends: Ends) -> Ends:
    """Return each pair once; it is asked about if it is so in some place."""
    one, other, _, asked = ends
    order = np.lexsort((~asked, other, one))
    first = np.append(True, (np.diff(one[order]) != 0) | (np.diff(other[order]) != 0))
    return lines_of(ends, order[first])


def _large_enough(facts: AskedFacts, least: int) -> AskedFacts:
    """Leave out the ways with too few different answers to choose from."""
    kept = []
    for code, way in enumerate(facts.ways):
        lines = (facts.way == code) & facts.asked
        answers = np.unique(facts.object[lines]).size
        if answers < least:
            reason = (
                f"{way.name!r} has {answers} different answers, fewer than --min-objects {least}"
            )
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
