"""The rows of both configs: questions about whole paths, and about their single facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from builders.compositions.chains import Chain, Edge, Knowledge, number_of
from builders.compositions.choices import (
    LEVELS,
    AnswerRules,
    Bearer,
    OpenQuestion,
    all_years,
    draw_balanced,
    draw_each,
    draw_sets,
)
from builders.compositions.options import CompositionOptions
from builders.compositions.paths import ARTICLE, ENTITY, SEVERAL, YEAR, Hop
from builders.engine.plan import GOLD, Facts, Flags, Nodes, Oracles, Plan, Questions, text_key
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.splits import assign_splits
from builders.engine.strategies import ByChoiceGroup, Shuffled, WordingsByName
from builders.english.definite import takes_the
from kbprobe.arrays import Floats, Ints
from kbprobe.format.items import Coded
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

Fact = tuple[str, str, str]
"""A hop, the entity that has the answer, and the answer."""


@dataclass(frozen=True)
class PathRow:
    """A question with its choices.

    Attributes:
        edges: the facts from the entity asked about to the gold.
        nodes: the gold, then the distractors.
        levels: for each choice, the level of the pool that it comes from.
        split: index into SPLITS.
        group: the number of its choice group.
    """

    edges: tuple[Edge, ...]
    nodes: tuple[str, ...]
    levels: tuple[int, ...]
    split: int
    group: int


def with_choices(
    knowledge: Knowledge,
    chains: Sequence[Chain],
    split: Sequence[int],
    options: CompositionOptions,
    rng: RandomGenerator,
    dropped: Counter[str],
) -> list[tuple[Chain, PathRow]]:
    """Draw choices for the chains of each path and split; count those left over.

    All questions about one bearer have the same choices.
    """
    rows: list[tuple[Chain, PathRow]] = []
    asked = {chain.edges[-1][:3] for chain in chains}
    for path in knowledge.paths.paths.values():
        unasked = _unasked(knowledge, knowledge.paths.of(path), asked, options, rng)
        for code in range(len(SPLITS)):
            some = [
                chain
                for chain, own in zip(chains, split, strict=True)
                if (chain.path, own) == (path.id, code)
            ]
            if some:
                cell = PathCell(knowledge, knowledge.paths.of(path), some, unasked[code])
                drawn = cell.in_sets(options.choices, code, rng.child(path.id, code))
                rows += [(some[member], row) for member, row in drawn]
                over = len(some) - len(drawn)
                dropped[f"{path.id}: too few wrong answers that nobody is asked for"] += over
    return rows


def facts_alone(
    knowledge: Knowledge,
    rows: Iterable[tuple[Chain, PathRow]],
    size: int,
    rng: RandomGenerator,
) -> list[PathRow]:
    """Draw choices for every single fact that the rows of several facts are based on.

    No fact may be missing, so facts left over get their distractors separately.
    """
    cells: dict[tuple[str, int], dict[Fact, Edge]] = {}
    for _, row in rows:
        for edge in row.edges if len(row.edges) > 1 else ():
            cells.setdefault((edge.hop, row.split), {})[edge[:3]] = edge
    drawn: list[PathRow] = []
    for (name, code), edges in sorted(cells.items()):
        some = [Chain("", (edges[key],)) for key in sorted(edges)]
        cell = PathCell(knowledge, [knowledge.paths.hops[name]], some)
        draw = rng.child(name, code)
        in_sets = dict(cell.in_sets(size, code, draw, all_asked=True))
        drawn += in_sets.values()
        over = [member for member in range(len(some)) if member not in in_sets]
        drawn += cell.one_by_one(over, size, code, draw.child("single"))
    return drawn


def _unasked(
    knowledge: Knowledge,
    hops: Sequence[Hop],
    asked: Container[Fact],
    options: CompositionOptions,
    rng: RandomGenerator,
) -> list[list[Fact]]:
    """Return, for each split, facts that could end a path but are not asked about."""
    facts = [
        (hops[-1].id, entity, link.target)
        for entity, link in knowledge.last_facts(hops)
        if knowledge.can_be_gold(hops[-1], link)
    ]
    facts = [fact for fact in facts if fact not in asked]
    keys = np.array([text_key(*fact) for fact in facts], dtype=np.int64)
    home = assign_splits(keys, options.split_shares, rng.child("unasked")).tolist()
    return [
        [fact for fact, own in zip(facts, home, strict=True) if own == code]
        for code in range(len(SPLITS))
    ]


class PathCell:
    """The questions of one path, or about one hop alone, in one split, and their distractors."""

    def __init__(
        self,
        knowledge: Knowledge,
        hops: Sequence[Hop],
        chains: Sequence[Chain],
        unasked: Sequence[Fact] = (),
    ) -> None:
        self.chains = chains
        self.asked = [OpenQuestion.about(knowledge, hops, chain.edges) for chain in chains]
        self.rules = AnswerRules(knowledge, hops[-1], self.asked, [fact[2] for fact in unasked])
        members: dict[Fact, list[int]] = {fact: [] for fact in unasked}
        for at, chain in enumerate(chains):
            members.setdefault(chain.edges[-1][:3], []).append(at)
        self.bearers = [
            Bearer(self.rules.number[fact[2]], text_key(*fact), tuple(own))
            for fact, own in members.items()
        ]

    def in_sets(
        self, size: int, split: int, rng: RandomGenerator, all_asked: bool = False
    ) -> list[tuple[int, PathRow]]:
        """Return the rows of choice sets, each with the number of its question."""
        rows = []
        if all_asked:
            sets = draw_sets(self.rules, self.bearers, size, rng, all_asked=True)
        else:
            sets = draw_balanced(self.rules, self.bearers, size, rng)
        for drawn in sets:
            members = [member for bearer in drawn.asked for member in bearer.members]
            group = text_key(*sorted(str(self.asked[member].key) for member in members))
            shown = [(bearer.gold, drawn.level) for bearer in drawn.bearers]
            rows += [(member, self._row(member, shown, split, group)) for member in members]
        return rows

    def one_by_one(
        self, members: Sequence[int], size: int, split: int, rng: RandomGenerator
    ) -> list[PathRow]:
        """Return rows that share their choices with no others."""
        drawn = draw_each(self.rules, [self._alone(member) for member in members], size, rng)
        return [self._row(member, shown, split, self.asked[member].key) for member, shown in drawn]

    def _alone(self, member: int) -> Bearer:
        asked = self.asked[member]
        return Bearer(self.rules.number[asked.gold], asked.key, (member,))

    def _row(
        self, member: int, shown: Sequence[tuple[int, int]], split: int, group: int
    ) -> PathRow:
        own = self.asked[member].gold
        others = [(self.rules.golds[gold], level) for gold, level in shown]
        choices = [(own, 0), *(other for other in others if other[0] != own)]
        nodes, levels = zip(*choices, strict=True)
        return PathRow(self.chains[member].edges, nodes, levels, split, group)


class PathLayout:
    """Makes plans of rows; both configs share the table of nodes.

    The table contains all nodes of the collected facts, asked about or not, and all years.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        links = knowledge.collected.links
        ends = {link.target for found in links.values() for some in found.values() for link in some}
        starts = {entity for found in links.values() for entity in found}
        years = {end for end in ends if end.isdigit()}
        self.nodes = sorted((ends | starts | all_years(years)) - {""}, key=number_of)
        self.number = {node: at for at, node in enumerate(self.nodes)}
        self.names = pa.array(self.nodes, pa.string())
        self.keys = np.array([text_key(node) for node in self.nodes], dtype=np.int64)

    def plan(
        self,
        rows: Sequence[PathRow],
        asked: Sequence[tuple[str, str]],
        whole: bool,
        sub_questions: Mapping[str, Plan] | None = None,
        flags: Flags | None = None,
        oracles: Oracles | None = None,
        dropped: Mapping[str, int] | None = None,
    ) -> Plan:
        """Make a plan of rows.

        Args:
            rows: the questions, each with its facts and choices.
            asked: the family of each row, and the name of its wordings.
            whole: whether they ask about paths rather than about the single facts of these.
            sub_questions: the plans of further configs.
            flags: the flags of the rows.
            oracles: what oracles reach on them.
            dropped: counts of dropped chains by reason.
        """
        families, family, node_family = self._families(rows, [name for name, _ in asked])
        names = [self._wordings(name, row) for (_, name), row in zip(asked, rows, strict=True)]
        questions, question = self._questions(rows, names, whole)
        hops = np.array([len(row.edges) for row in rows], dtype=np.int64)
        nodes = self._numbers([node for row in rows for node in row.nodes])
        return plan_rows(
            RowArrays(
                nodes=nodes.reshape(len(rows), -1),
                split=np.array([row.split for row in rows], dtype=np.int64),
                family=family,
                choice_family=node_family,
                concept=self._numbers([row.edges[0].source for row in rows]),
                question=question,
                hops=hops,
            ),
            questions=questions,
            choices=Nodes.from_columns(
                self.names,
                {"label": [self.knowledge.label(node) for node in self.nodes]},
                frequency=self._sitelinks(),
                key=self.keys,
            ),
            families=families,
            relation=self._relations(rows),
            facts=self._facts(rows, bool(sub_questions)),
            cluster=Coded(self.names, self._numbers([row.edges[-1].source for row in rows])),
            order=Shuffled() if whole else ByChoiceGroup(np.array([row.group for row in rows])),
            sub_questions=sub_questions or {},
            flags=flags,
            oracles=oracles or {},
            dropped=dropped or {},
        )

    def _wordings(self, name: str, row: PathRow) -> str:
        """Return the name of the wordings for one answer, or for several, if there are such."""
        several = f"{name}{SEVERAL}"
        hops = [self.knowledge.paths.hops[edge.hop] for edge in row.edges]
        if several in self.knowledge.paths.asked and self.knowledge.has_several(
            hops, row.edges[0].source
        ):
            return several
        return name

    def _numbers(self, nodes: Sequence[str]) -> Ints:
        return np.array([self.number[node] for node in nodes], dtype=np.int64)

    def _families(
        self, rows: Sequence[PathRow], names: Sequence[str]
    ) -> tuple[list[str], Ints, Ints]:
        """Name the families: a path's own, and those of its wider pools."""
        known = {GOLD: 0}
        for name in dict.fromkeys(names):
            known.setdefault(name, len(known))

        def number(name: str, row: PathRow, level: int) -> int:
            step = LEVELS[self.knowledge.paths.hops[row.edges[-1].hop].choices][level]
            return known.setdefault(f"{name}: {step}" if step else name, len(known))

        family = [known[name] for name in names]
        node_family = [
            [number(name, row, level) for level in row.levels]
            for name, row in zip(names, rows, strict=True)
        ]
        return list(known)[1:], np.array(family), np.array(node_family)

    def _questions(
        self, rows: Sequence[PathRow], names: Sequence[str], whole: bool
    ) -> tuple[Questions, Ints]:
        """Return the distinct questions, and the index of each row's question."""
        # A path's question may have several golds; a fact's question is identified by the fact.
        asked = [
            (name, row.edges[0].source) if whole else row.edges[0][:3]
            for row, name in zip(rows, names, strict=True)
        ]
        first = {words: at for at, words in reversed(list(enumerate(asked)))}
        distinct = sorted(first, key=lambda words: first[words])
        number = {words: at for at, words in enumerate(distinct)}
        shown = [first[words] for words in distinct]
        named = {name: place for place, name in enumerate(dict.fromkeys(names))}
        entities = [rows[at].edges[0].source for at in shown]
        labels = list(map(self.knowledge.label, entities))
        years = map(self.knowledge.collected.years.get, entities)
        questions = Questions.from_columns(
            np.array([text_key(*words) for words in distinct], dtype=np.int64),
            {
                ENTITY: labels,
                ARTICLE: [self._article(label) for label in labels],
                YEAR: [f" ({year})" if year else "" for year in years],
            },
            WordingsByName(np.array([named[names[at]] for at in shown]), tuple(named)),
        )
        return questions, np.array([number[words] for words in asked], dtype=np.int64)

    def _article(self, label: str) -> str:
        """Return the definite article that an English name takes in a sentence, and a space."""
        return "the " if self.knowledge.paths.language == "en" and takes_the(label) else ""

    def _facts(self, rows: Sequence[PathRow], named: bool) -> Facts:
        """Return the triples as the knowledge base states them, in either direction of a hop.

        If ``named``, those of rows of several facts name the rows that ask for each.
        """
        edges = [edge for row in rows for edge in row.edges]
        ways = [self.knowledge.paths.hops[edge.hop].ways[edge.way] for edge in edges]
        relations = {name: at for at, name in enumerate(sorted({way.name for way in ways}))}
        ends = [
            (edge.target, edge.source) if way.inverse else (edge.source, edge.target)
            for edge, way in zip(edges, ways, strict=True)
        ]
        return Facts.from_codes(
            self._numbers([subject for subject, _ in ends]),
            np.array([relations[way.name] for way in ways], dtype=np.int64),
            self._numbers([target for _, target in ends]),
            self.names,
            tuple(relations),
            np.array([len(row.edges) for row in rows], dtype=np.int64),
            self._asking(rows) if named else None,
        )

    def _asking(self, rows: Sequence[PathRow]) -> Ints:
        """Return for each fact of rows the key of its question; -1 where it is the row's own."""
        keys = [
            text_key(*edge[:3]) if len(row.edges) > 1 else -1 for row in rows for edge in row.edges
        ]
        return np.array(keys, dtype=np.int64)

    def _relations(self, rows: Sequence[PathRow]) -> pa.Array:
        """Return each row's path of facts in SPARQL notation: ``^P112/P159``."""
        hops = self.knowledge.paths.hops
        return pa.array(
            ["/".join(hops[edge.hop].edges[edge.way] for edge in row.edges) for row in rows],
            pa.string(),
        )

    def _sitelinks(self) -> Callable[[Ints], Floats] | None:
        """Return how well known each node is, for the audit's "most frequent choice"."""
        number = self.knowledge.collected.sitelinks
        if not number:
            return None

        def known(nodes: Ints) -> Floats:
            found = [float(number.get(self.nodes[node], 0)) for node in nodes.tolist()]
            return np.array(found, dtype=np.float64)

        return known
