"""The probe facts: what a table says of its subjects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Plan
from builders.engine.probe import probe
from builders.engine.render.template_file import Template
from builders.engine.rows import Asking, Territory
from builders.engine.splits import assign_splits
from builders.relations import AskedEdges, NodeSource, labelled_nodes, relation_plan
from builders.tables.alike import are_years, of_equal, one_letter_apart, reads_of, within
from builders.tables.options import FactOptions
from builders.tables.ways import AskedFacts, asked_facts, linked
from builders.tables.wordings import leads_to_years, name_of, template_of
from kb_cache.graph import Graph
from kb_cache.hub import PREFIX
from kb_cache.store import stamp_of_source
from kb_cache.tables import is_table
from kb_cache.tables.facts import TableReading, facts_of, folded, read_facts
from kb_cache.tables.kind import KIND, kept_table, loaded_table
from kb_cache.tables.texts import DATE, MONTH, Quantity, quantity
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Ints, lines_of, mask_at, occurrences
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

MOST_ASKED, MOST_OF_ALL = 10_000, 50_000
"""The most facts that are asked for, of a relation and of all: of more, a sample. All are known to
be true."""

TOLERANCE = 0.1
"""The usual `FactOptions.tolerance` of numbers that are no years."""

MOSTLY_NUMBERS = 0.2
"""The least share of numbers among the answers of a relation whose units are kinds."""

FAMILY = "same_relation"
"""The distractor family of the answers to other questions about the same relation."""


@lru_cache(maxsize=1)
def _read(path: str, stamp: tuple[int, int], how: tuple[Any, ...]) -> FactTable:
    columns, *others = how
    reading = TableReading(dict(column.split("=", 1) for column in columns), *others)
    if is_table(path):
        return read_facts(Path(path), reading)
    identity, rows = loaded_table(path) if path.startswith(PREFIX) else kept_table(path)
    return facts_of(rows, path, identity, reading)


def open_table(options: FactOptions) -> FactTable:
    """Read the table that the options name."""
    if not options.table:
        raise UsageError(
            "facts needs a table: build-probe FILE.csv, or --table NAME (kb-cache list)"
        )
    how = options.columns, options.relations, options.separator, options.no_answer
    return _read(options.table, stamp_of_source(options.table, KIND), how)


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
    asked = _sampled(asked_facts(table, options), rng.child("facts"))
    nodes = _TextNodes(table, asked, options)
    edges = {}
    hops = []
    for code, way in enumerate(asked.ways):
        lines = np.flatnonzero((asked.way == code) & asked.asked)
        edges[way.name] = nodes.subject[lines], nodes.answer[lines]
        hops.append(np.full(lines.size, len(way.relations)))
    every = Graph.from_edges(nodes.text.size, nodes.subject, nodes.answer)
    wordings = {way.name: name_of(way, number) for number, way in enumerate(asked.ways, 1)}
    to_ask = AskedEdges(
        edges,
        wordings=wordings,
        hops=np.concatenate(hops),
        split_of=nodes.split_of,
        facts=nodes.facts,
        may_share=options.stem_overlap == "keep",
    )
    return relation_plan(nodes.source(), to_ask, every, options, rng, asked.dropped)


def _sampled(facts: AskedFacts, rng: RandomGenerator) -> AskedFacts:
    """Ask for a sample of the facts of each way; keep all that is true of their subjects."""
    dropped = DropLog(facts.dropped)
    most = min(MOST_ASKED, MOST_OF_ALL // len(facts.ways))
    asked = facts.asked.copy()
    lines = np.flatnonzero(asked)
    bits = rng.bits(facts.subject[lines], facts.object[lines])
    lines = lines[np.lexsort((bits, facts.way[lines]))]
    way = facts.way[lines]
    beyond = lines[np.arange(lines.size) - np.searchsorted(way, way) >= most]
    asked[beyond] = False
    dropped[f"beyond {most:,} facts of a relation"] += beyond.size
    about = facts.way * (int(facts.subject.max()) + 1) + facts.subject
    kept = np.isin(about, about[asked])
    columns = (facts.way, facts.subject, facts.object, facts.kind, asked)
    return AskedFacts(facts.ways, *lines_of(columns, kept), dropped)


class _TextNodes:
    """The texts as what is asked about, and the answers of each way.

    Attributes:
        subject, answer: (facts,) the nodes of each fact. Texts come first, each as it is asked
            about; an answer is a node of its own in each way, and of each kind.
        text: (nodes,) the position of the text of each.
    """

    def __init__(self, table: FactTable, asked: AskedFacts, options: FactOptions) -> None:
        self._table, self._asked, self._tolerance = table, asked, options.tolerance
        self._transitive = {folded(name) for name in options.transitive}
        names = table.other_names[:, np.isin(table.other_names[0], asked.object)]
        ends = np.concatenate([asked.subject, asked.object, *names])
        self._used, local = np.unique(ends, return_inverse=True)
        facts, size = asked.subject.size, self._used.size
        self.subject, target = local[:facts], local[facts : 2 * facts]
        cell = (asked.way * size + target) * (int(asked.kind.max(initial=0)) + 1) + asked.kind
        _, first, node = np.unique(cell, return_index=True, return_inverse=True)
        self.answer = size + node
        self.text = np.concatenate([np.arange(size), target[first]])
        self._way = np.concatenate([np.full(size, len(asked.ways)), asked.way[first]])
        self._kind = np.concatenate([np.zeros(size, dtype=np.int64), asked.kind[first]])
        self._texts: list[str] = table.texts.take(pa.array(self._used)).to_pylist()
        self._reads = reads_of(self._texts, local[2 * facts :].reshape(2, -1))

    def source(self) -> NodeSource:
        """Return the nodes as questions and choices."""
        shown = pa.array(self._texts, pa.string()).take(pa.array(self.text))
        names = pa.array([*(f" ({way.name})" for way in self._asked.ways), ""])
        return labelled_nodes(
            pc.binary_join_element_wise(shown, names.take(pa.array(self._way)), ""),
            shown,
            self._reads[self.text],
            self._kinds(),
            FAMILY,
            self._territory,
            self._alike(),
            self._near(),
            compared=("relation", "word"),
        )

    def facts(self, concept: Ints, way: Ints, gold: Ints) -> Facts:
        """Return the facts that pairs of nodes state, from subject to object."""
        backwards = np.array([one.inverse for one in self._asked.ways])[way]
        names = [*dict.fromkeys(", ".join(one.relations) for one in self._asked.ways)]
        number = np.array([names.index(", ".join(one.relations)) for one in self._asked.ways])
        ends = self.text[concept], self.text[gold]
        subject, target = (np.where(backwards, *pair) for pair in (ends[::-1], ends))
        return Facts.from_codes(subject, number[way], target, pa.array(self._texts), names)

    @cached_property
    def _quantities(self) -> list[Quantity | None]:
        return [quantity(text) for text in self._texts]

    def _kinds(self) -> Ints:
        """Return the way of each answer, and within it the kind that the table states.

        Where a fifth of the answers are numbers or dates, those of one unit are a kind.
        """
        units = [stated.unit if stated else None for stated in self._quantities]
        code = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
        of_text = np.array([code[unit] for unit in units], dtype=np.int64)
        is_number = np.array([unit is not None for unit in units])
        share = np.bincount(self._way, is_number[self.text]) / np.bincount(self._way)
        numeric = share[self._way] >= MOSTLY_NUMBERS
        columns = np.stack([self._way, self._kind, np.where(numeric, of_text[self.text], 0)])
        return np.unique(columns, axis=1, return_inverse=True)[1]

    def _alike(self) -> Graph:
        """Return which nodes may be taken for each other."""
        size = len(self._texts)
        answers = np.arange(size, self.text.size)
        ends = [np.stack(of_equal(self._reads[self.text]))]
        used = np.unique(self.text[answers])
        apart = one_letter_apart([self._texts[text] for text in used.tolist()])
        by_text = Graph.from_edges(size, used[apart[0]], used[apart[1]])
        node, text = by_text.expand(self.text[answers])
        of_text = Graph.from_edges(max(size, self.text.size), self.text[answers], answers)
        position, alike = of_text.expand(text)
        node = answers[node[position]]
        ends.append(np.stack([node, alike])[:, self._way[node] == self._way[alike]])
        for number, way in enumerate(self._asked.ways):
            own = np.flatnonzero(self._way == number)
            ends += self._near_numbers(own, leads_to_years(way))
        return Graph.from_edges(self.text.size, *np.concatenate(ends, axis=1))

    def _near_numbers(self, own: Ints, named: bool) -> Iterator[Ints]:
        """Yield the pairs of nodes that state nearly the same number in the same unit.

        ``named`` says whether the relation is called so that its numbers may be years.
        """
        texts = [self._texts[text] for text in self.text[own].tolist()]
        by_unit: dict[str, list[tuple[int, float]]] = {}
        for node, text in zip(own.tolist(), self.text[own].tolist(), strict=True):
            if stated := self._quantities[text]:
                by_unit.setdefault(stated.unit, []).append((node, stated.value))
        years = self._tolerance is None and named and are_years(texts)
        for unit, stated_of in by_unit.items():
            nodes, values = (np.array(column) for column in zip(*stated_of, strict=True))
            same_year = years or unit in (DATE, MONTH)
            tolerance = TOLERANCE if self._tolerance is None else self._tolerance
            near = nodes[np.stack(within(values, 0.0 if same_year else tolerance))]
            yield from (near, near[::-1])

    def _near(self) -> Graph:
        """Return which answers of a way another relation links: what is true of one may be of both.

        A town and its country are no choices of the same question.
        """
        lines, one, other = self._stated
        ways, reads = len(self._asked.ways) + 1, self._reads[self.text]
        pairs = [np.empty((2, 0), dtype=np.int64)]
        for name, some in self._table.of_relations(lines):
            at = np.searchsorted(lines, some)
            linked_reads = linked(
                self._reads[one[at]], self._reads[other[at]], folded(name) in self._transitive
            )
            line, node = occurrences(reads, linked_reads[0])
            way = self._way[node]
            asks = np.array([*(name in each.relations for each in self._asked.ways), True])
            line, node, way = lines_of((line, node, way), ~asks[way])
            place, near = occurrences(reads * ways + self._way, linked_reads[1][line] * ways + way)
            pairs.append(np.stack([node[place], near]))
        return Graph.from_edges(self.text.size, *np.concatenate(pairs, axis=1))

    @cached_property
    def _stated(self) -> tuple[Ints, Ints, Ints]:
        """The table's facts about the texts, and the positions of their subjects and objects."""
        ends = np.stack([self._table.subject, self._table.object])
        position = np.minimum(np.searchsorted(self._used, ends), self._used.size - 1)
        lines = np.flatnonzero((self._used[position] == ends).all(axis=0))
        one, other = position[:, lines]
        return lines, one, other

    def split_of(self, territory: Territory, asking: Asking) -> Ints:
        """Return the split of each pair: that of both ends, or that which the table states."""
        split = territory.of_both(asking)
        if (self._table.split >= 0).any():
            inverse = np.array([*(way.inverse for way in self._asked.ways), False])
            forward = ~inverse[self._way[asking.gold]]
            split[forward] = territory.split[asking.concept][forward]
        return split

    def _territory(self, shares: tuple[float, float, float], seed: int) -> Territory:
        """Return the splits that the table states, or a draw of all that read alike.

        What is only an object is where most of its subjects are, so that a fact is in one split
        whichever end it is asked for from.
        """
        split = assign_splits(self._reads, shares, RandomGenerator.of(seed, "subjects"))
        lines, one, other = self._stated
        stated = self._table.split[lines]
        split[one[stated >= 0]] = stated[stated >= 0]
        of_split = np.zeros((split.size, len(SPLITS)), dtype=np.int64)
        np.add.at(of_split, (other, split[one]), 1)
        only_object = ~mask_at(split.size, one) & mask_at(split.size, other)
        split[only_object] = of_split.argmax(axis=1)[only_object]
        return Territory(split[self.text], np.zeros_like(self.text))
