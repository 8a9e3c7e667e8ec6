"""The probe facts: what a table says of its subjects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw.families import Family
from builders.engine.draw.likeness import ComparedTexts
from builders.engine.drops import DropLog
from builders.engine.plan import Nodes, Plan, Questions
from builders.engine.probe import probe
from builders.engine.render.template_file import Template
from builders.engine.rows import Asking, Territory
from builders.engine.splits import assign_splits
from builders.relations import AskedEdges, NodeSource, relation_plan
from builders.tables.options import FactOptions
from builders.tables.wordings import template_of
from kb_cache.graph import Graph
from kb_cache.tables.read import read_facts
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Bools, Ints, lines_of
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

FAMILY = "same_relation"
"""The distractor family of the objects of the relation that is asked for."""

_PLAIN = re.compile(r"[\W_]+")


@lru_cache(maxsize=1)
def _read(
    path: str, columns: tuple[str, ...], relations: tuple[str, ...], separator: str
) -> FactTable:
    pairs = dict(column.split("=", 1) for column in columns)
    return read_facts(Path(path), pairs, relations, separator)


def open_table(options: FactOptions) -> FactTable:
    """Read the table that the options name."""
    if not options.table:
        raise UsageError("facts needs a table: name one with --table FILE")
    return _read(options.table, options.columns, options.relations, options.separator)


def wordings(options: FactOptions) -> Template:
    """Return the wordings of the table's relations."""
    table = open_table(options)
    several = (
        np.unique(table.subject[table.relation == code]).size < (table.relation == code).sum()
        for code in range(len(table.relations))
    )
    return template_of([*zip(table.relations, map(bool, several), strict=True)])


@probe(
    "facts",
    options=FactOptions,
    open=open_table,
    question_fields=("word", "relation"),
    choice_fields=("lemma",),
    controls=(NO_LANGUAGE, PERTURBED),
    wordings=wordings,
)
def facts(table: FactTable, options: FactOptions, rng: RandomGenerator) -> Plan:
    """What does a table of your own say of its subjects?"""
    dropped = DropLog()
    for reason, count in table.left_out.items():
        dropped[reason] = count
    names = table.relations
    kept = _large_enough(table, options, dropped)
    subject, relation, target = lines_of((table.subject, table.relation, table.object), kept)
    dropped.require(subject.size, "Name other relations with --relations.")
    texts = table.texts
    # Subjects come first; an object is a node of its own in each relation.
    pair, node = np.unique(relation * len(texts) + target, return_inverse=True)
    size = len(texts)
    gold = size + node
    text = np.concatenate([np.arange(size), pair % size])
    kind = np.concatenate([np.full(size, len(names)), pair // size])
    read = _read_alike(texts)
    source = _node_source(texts, text, kind, read, options, names)
    edges = {
        name: (subject[relation == code], gold[relation == code])
        for code, name in enumerate(names)
        if (relation == code).any()
    }
    every = Graph.from_edges(text.size, subject, gold)
    bounds = {name: (2 * code, 2 * code + 2) for code, name in enumerate(names)}
    return relation_plan(source, AskedEdges(edges, wordings=bounds), every, options, rng, dropped)


def _large_enough(table: FactTable, options: FactOptions, dropped: DropLog) -> Bools:
    """Mark the facts of relations with enough different objects to choose from."""
    pairs = np.unique(np.stack([table.relation, table.object], axis=1), axis=0)
    objects = np.bincount(pairs[:, 0], minlength=len(table.relations))
    few = objects < options.min_objects
    for code in np.flatnonzero(few).tolist():
        name = table.relations[code]
        reason = f"{name!r} has {objects[code]} objects, fewer than --min-objects"
        dropped[reason] += int((table.relation == code).sum())
    return np.asarray(~few[table.relation])


def _read_alike(texts: pa.Array) -> Ints:
    """Return a number for each text, equal for those that differ in case and punctuation only."""
    plain = [_PLAIN.sub("", text.casefold()) or text for text in texts.to_pylist()]
    return np.unique(np.array(plain, dtype=object).astype(str), return_inverse=True)[1]


def _node_source(
    texts: pa.Array,
    text: Ints,
    kind: Ints,
    read: Ints,
    options: FactOptions,
    names: tuple[str, ...],
) -> NodeSource:
    shown = texts.take(pa.array(text))
    empty = pa.array([""] * len(shown))
    none = pa.array([[]] * len(shown), pa.list_(pa.string()))
    labels = [
        f"{label} ({names[code]})" if code < len(names) else label
        for label, code in zip(shown.to_pylist(), kind.tolist(), strict=True)
    ]
    choices = Nodes.from_columns(pa.array(labels), {"lemma": shown, "others": none})
    reads = read[text]
    order = np.argsort(reads, kind="stable")
    _, start, count = np.unique(reads[order], return_index=True, return_counts=True)
    alike = [
        (order[a], order[b])
        for first, number in zip(start[count > 1], count[count > 1], strict=True)
        for a in range(first, first + number)
        for b in range(first, first + number)
        if a != b
    ]
    ends = np.array(alike, dtype=np.int64).reshape(-1, 2).T
    same = Graph.from_edges(text.size, *ends)

    def families(asking: Asking) -> Iterator[Family]:
        yield Family(FAMILY, 0, np.zeros_like(asking.gold))

    def territory(shares: tuple[float, float, float], seed: int) -> Territory:
        split = assign_splits(read[text], shares, RandomGenerator.of(seed, "subjects"))
        return Territory(split, np.zeros_like(split))

    def compared(questions: Questions, asking: Asking) -> ComparedTexts:
        line, question = np.unique(asking.question, return_inverse=True)
        gold, choice = np.unique(asking.gold, return_inverse=True)
        rows = pa.array(line)
        asked = pc.binary_join_element_wise(
            questions.fields["relation"].take(rows), questions.fields["word"].take(rows), " "
        ).to_pylist()
        return ComparedTexts(asked, shown.take(pa.array(gold)).to_pylist(), question, choice)

    return NodeSource(
        choices=choices,
        words=shown,
        reads=reads,
        synonyms=none,
        glosses=empty,
        pos=empty,
        kinds=kind,
        alike=same,
        near=Graph.from_edges(text.size, *np.empty((2, 0), dtype=np.int64)),
        families=families,
        territory=territory,
        compared=compared,
    )
