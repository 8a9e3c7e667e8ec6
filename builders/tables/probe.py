"""The probe facts: what a table says of its subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
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
from builders.tables.alike import of_equal, one_letter_apart, reads_of, unit_of, values_of, within
from builders.tables.options import FactOptions
from builders.tables.ways import AskedFacts, asked_facts
from builders.tables.wordings import name_of, template_of
from kb_cache.graph import Graph
from kb_cache.tables import is_table
from kb_cache.tables.kind import kept_table
from kb_cache.tables.read import facts_of, read_facts
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Floats, Ints, mask_at
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.reading import stamp_of
from kbprobe.rng import RandomGenerator

MOST_ASKED = 100_000
"""The most facts that are asked for: of more, a sample; all are known to be true."""

FAMILY = "same_relation"
"""The distractor family of the answers to other questions about the same relation."""


@lru_cache(maxsize=1)
def _read(
    path: str,
    stamp: tuple[int, int],
    columns: tuple[str, ...],
    relations: tuple[str, ...],
    separator: str,
) -> FactTable:
    pairs = dict(column.split("=", 1) for column in columns)
    if is_table(path):
        return read_facts(Path(path), pairs, relations, separator)
    identity, rows = kept_table(path)
    return facts_of(rows, path, identity, pairs, relations, separator)


def open_table(options: FactOptions) -> FactTable:
    """Read the table that the options name."""
    if not options.table:
        raise UsageError(
            "facts needs a table: build-probe FILE.csv, or --table NAME (kb-cache list)"
        )
    stamp = stamp_of(Path(options.table))
    return _read(options.table, stamp, options.columns, options.relations, options.separator)


def wordings_of_table(options: FactOptions, file: Path | None = None) -> Template:
    """Return the wordings of what is asked of the table, some of them from a user's file."""
    return template_of(asked_facts(open_table(options), options).ways, file)


@probe(
    "facts",
    options=FactOptions,
    open=open_table,
    question_fields=("word", "relation"),
    choice_fields=("lemma",),
    controls=(NO_LANGUAGE, PERTURBED),
    wordings=wordings_of_table,
    reword=wordings_of_table,
)
def facts(table: FactTable, options: FactOptions, rng: RandomGenerator) -> Plan:
    """What does a table of your own say of its subjects?"""
    asked = asked_facts(table, options)
    dropped = DropLog(asked.dropped)
    if np.count_nonzero(asked.asked) > MOST_ASKED:
        lines = np.flatnonzero(asked.asked)
        order = np.argsort(rng.child("facts").bits(asked.subject[lines], asked.object[lines]))
        kept = mask_at(asked.asked.size, lines[order[:MOST_ASKED]])
        dropped[f"beyond {MOST_ASKED:,} facts"] = lines.size - MOST_ASKED
        asked = asked._replace(asked=kept)
    nodes = _Nodes(table, asked, options)
    names = [way.name for way in asked.ways]
    edges = {
        name: (asked.subject[lines], nodes.answer[lines])
        for code, name in enumerate(names)
        if (lines := (asked.way == code) & asked.asked).any()
    }
    every = Graph.from_edges(nodes.text.size, asked.subject, nodes.answer)
    wordings = {way.name: name_of(way, number) for number, way in enumerate(asked.ways, 1)}
    to_ask = AskedEdges(edges, wordings=wordings, may_share=options.stem_overlap == "keep")
    return relation_plan(nodes.source(), to_ask, every, options, rng, dropped)


class _Nodes:
    """The texts as what is asked about, and the answers of each way.

    Attributes:
        answer: (facts,) the node of each fact's answer. Texts come first, each as it is asked
            about; an answer is a node of its own in each way.
        text: (nodes,) the text of each.
    """

    def __init__(self, table: FactTable, asked: AskedFacts, options: FactOptions) -> None:
        self._table, self._asked, self._options = table, asked, options
        size = len(table.texts)
        pair, node = np.unique(asked.way * size + asked.object, return_inverse=True)
        self.answer = size + node
        self.text = np.concatenate([np.arange(size), pair % size])
        self._way = np.concatenate([np.full(size, len(asked.ways)), pair // size])
        self._texts: list[str] = table.texts.to_pylist()
        self._reads = reads_of(self._texts)

    def source(self) -> NodeSource:
        """Return the nodes as questions and choices."""
        shown = self._table.texts.take(pa.array(self.text))
        names = [f" ({way.name})" for way in self._asked.ways] + [""]
        labels = pc.binary_join_element_wise(
            shown, pa.array(names).take(pa.array(self._way)), pa.scalar("", pa.string())
        )
        none = pa.array([[]] * len(shown), pa.list_(pa.string()))
        empty = pa.array([""] * len(shown))
        return NodeSource(
            choices=Nodes.from_columns(labels, {"lemma": shown, "others": none}),
            words=shown,
            reads=self._reads[self.text],
            synonyms=none,
            glosses=empty,
            pos=empty,
            kinds=self._kinds(),
            alike=self._alike(),
            near=Graph.from_edges(self.text.size, *np.empty((2, 0), dtype=np.int64)),
            families=_families,
            territory=self._territory,
            compared=self._compared(shown),
        )

    def _kinds(self) -> Ints:
        """Return the way of each answer, and within it the kind that the table states."""
        kind = np.zeros(self.text.size, dtype=np.int64)
        kind[self.answer] = self._asked.kind
        unit = {text: code for code, text in enumerate(sorted({*map(self._unit, self._texts)}))}
        of_text = np.array([unit[self._unit(text)] for text in self._texts], dtype=np.int64)
        numeric = np.array([*(stated is not None for stated in self._values), False])[self._way]
        columns = np.stack([self._way, kind, np.where(numeric, of_text[self.text], 0)])
        return np.unique(columns, axis=1, return_inverse=True)[1]

    @staticmethod
    def _unit(text: str) -> str:
        return unit_of(text) or ""

    @cached_property
    def _values(self) -> list[tuple[Floats, bool] | None]:
        """What the answers of each way state, if they state numbers or dates."""
        return [
            values_of([self._texts[text] for text in self.text[self._way == way].tolist()])
            for way in range(len(self._asked.ways))
        ]

    def _alike(self) -> Graph:
        """Return which nodes may be taken for each other."""
        size = len(self._texts)
        ends = [np.stack(of_equal(self._reads[self.text]))]
        by_text = Graph.from_edges(size, *one_letter_apart(self._texts))
        node, text = by_text.expand(self.text)
        answers = np.arange(size, self.text.size)
        of_text = Graph.from_edges(max(size, self.text.size), self.text[answers], answers)
        position, alike = of_text.expand(text)
        same_way = self._way[node[position]] == self._way[alike]
        ends.append(np.stack([node[position], alike])[:, same_way])
        for way, stated in enumerate(self._values):
            if stated is not None:
                own = np.flatnonzero(self._way == way)
                near = np.stack(within(stated[0], self._options.tolerance, stated[1]))
                ends += [own[near], own[near[::-1]]]
        return Graph.from_edges(self.text.size, *np.concatenate(ends, axis=1))

    def _territory(self, shares: tuple[float, float, float], seed: int) -> Territory:
        """Return the splits that the table states, or a draw of all that read alike."""
        reads = self._reads[self.text]
        split = assign_splits(reads, shares, RandomGenerator.of(seed, "subjects"))
        stated = self._table.split
        if (stated >= 0).any():
            split = np.full(self.text.size, -1, dtype=np.int64)
            split[self._table.subject] = stated
        return Territory(split, np.zeros_like(split))

    def _compared(self, shown: pa.Array) -> Callable[[Questions, Asking], ComparedTexts]:
        def compared(questions: Questions, asking: Asking) -> ComparedTexts:
            line, question = np.unique(asking.question, return_inverse=True)
            gold, choice = np.unique(asking.gold, return_inverse=True)
            rows = pa.array(line)
            asked = pc.binary_join_element_wise(
                questions.fields["relation"].take(rows), questions.fields["word"].take(rows), " "
            ).to_pylist()
            return ComparedTexts(asked, shown.take(pa.array(gold)).to_pylist(), question, choice)

        return compared


def _families(asking: Asking) -> Iterator[Family]:
    yield Family(FAMILY, 0, np.zeros_like(asking.gold))
