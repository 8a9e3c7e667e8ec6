"""The rows of both configs: questions about whole paths, and about the facts that these rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from builders.compositions.bearers import shared_groups
from builders.compositions.chains import Chain, Edge, Knowledge, number_of
from builders.compositions.choices import LEVELS, AnswerRules, OpenQuestion
from builders.compositions.paths import ARTICLE, ENTITY
from builders.engine.draw.groups import ChoiceGroup, draw_left_over, search_groups
from builders.engine.flags import Flags
from builders.engine.plan import GOLD, Facts, Nodes, Plan, Questions, text_key
from builders.engine.rows import plan_rows
from builders.engine.strategies import ByChoiceGroup, WordingRange
from builders.english.names import takes_the
from kbprobe.arrays import Floats, Ints
from kbprobe.format.items import Coded
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator


@dataclass(frozen=True)
class Row:
    """A question with its choices.

    Attributes:
        edges: the facts from the entity asked about to the gold.
        nodes: the gold, then the distractors.
        levels: of each choice, the step to which the rule's pool was widened.
        split: index into SPLITS.
        group: the number of its choice group.
    """

    edges: tuple[Edge, ...]
    nodes: tuple[str, ...]
    levels: tuple[int, ...]
    split: int
    group: int


def in_groups(
    knowledge: Knowledge,
    chains: Sequence[Chain],
    split: Sequence[int],
    size: int,
    rng: RandomGenerator,
    dropped: Counter[str],
) -> list[tuple[Chain, Row]]:
    """Put the chains of each path and split in choice groups; count those left over.

    All that is asked about one bearer has the same choices.
    """
    found = []
    for path in knowledge.paths.paths.values():
        hops = knowledge.paths.of(path)
        for code in range(len(SPLITS)):
            some = [
                chain
                for chain, own in zip(chains, split, strict=True)
                if (chain.path, own) == (path.id, code)
            ]
            if not some:
                continue
            asked = [OpenQuestion.about(knowledge, hops, chain.edges) for chain in some]
            rules = AnswerRules(knowledge, hops[-1].choices, asked)
            last = [chain.edges[-1] for chain in some]
            groups = shared_groups(rules, last, size, rng.child(path.id, code))
            rows = _grouped([chain.edges for chain in some], asked, groups, code)
            found += [(some[member], row) for member, row in rows]
            if over := len(some) - size * len(groups):
                dropped[f"{path.id}: no {size - 1} other questions share its choices"] += over
    return found


def _grouped(
    edges: Sequence[tuple[Edge, ...]],
    asked: Sequence[OpenQuestion],
    groups: Iterable[ChoiceGroup],
    split: int,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of choice groups, each with the number of its question."""
    for group in groups:
        golds = [asked[member].gold for member in group.members]
        number = text_key(*sorted(str(asked[member].key) for member in group.members))
        for member in group.members:
            own = asked[member].gold
            nodes = (own, *(gold for gold in golds if gold != own))
            yield member, Row(edges[member], nodes, (group.level,) * len(nodes), split, number)


def facts_alone(
    knowledge: Knowledge, rows: Iterable[tuple[Chain, Row]], size: int, rng: RandomGenerator
) -> list[Row]:
    """Give every fact that the rows rest on choices of its own.

    Choice groups first; a fact must not be missing, so one left over gets distractors by itself.
    """
    cells: dict[tuple[str, int], dict[tuple[str, ...], Edge]] = {}
    for _, row in rows:
        for edge in row.edges:
            cells.setdefault((edge.hop, row.split), {})[edge[:3]] = edge
    found: list[Row] = []
    for (name, code), edges in sorted(cells.items()):
        hop = knowledge.paths.hops[name]
        some = [edges[key] for key in sorted(edges)]
        asked = [OpenQuestion.about(knowledge, [hop], [edge]) for edge in some]
        rules = AnswerRules(knowledge, hop.choices, asked)
        draw = rng.child(name, code)
        groups = search_groups(rules, size, draw.child("rings"))
        in_groups = dict(_grouped([(edge,) for edge in some], asked, groups, code))
        found += in_groups.values()
        golds = np.array([rules.gold[member] for member in in_groups], dtype=np.int64)
        used = (size - 1) * np.bincount(golds, minlength=len(rules.golds))
        for member in range(len(some)):
            if member in in_groups:
                continue
            chosen = draw_left_over(rules, member, size - 1, used, draw.child("single"))
            if len(chosen) == size - 1:
                others, levels = zip(*chosen, strict=True)
                used[list(others)] += 1
                nodes = (some[member].target, *(rules.golds[other] for other in others))
                found.append(Row((some[member],), nodes, (0, *levels), code, asked[member].key))
    return found


class PathLayout:
    """Lays rows out as plans; both configs share the table of nodes.

    All nodes of the collected facts are in it, whether asked about or not.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        links = knowledge.collected.links
        ends = {link.target for found in links.values() for some in found.values() for link in some}
        starts = {entity for found in links.values() for entity in found}
        self.nodes = sorted((ends | starts) - {""}, key=number_of)
        self.number = {node: at for at, node in enumerate(self.nodes)}
        self.names = pa.array(self.nodes, pa.string())
        self.keys = np.array([text_key(node) for node in self.nodes], dtype=np.int64)

    def plan(
        self,
        rows: Sequence[Row],
        asked: Sequence[tuple[str, str]],
        whole: bool,
        sub_questions: Mapping[str, Plan] | None = None,
        flags: Flags | None = None,
        dropped: Mapping[str, int] | None = None,
    ) -> Plan:
        """Lay rows out.

        Args:
            rows: the questions, each with its facts and choices.
            asked: for each the family that it counts under, and the name of its wordings.
            whole: whether they ask for whole paths rather than single facts.
            sub_questions: the plans of further configs.
            flags: those of the rows.
            dropped: what was left out.
        """
        families, family, node_family = self._families(rows, [name for name, _ in asked])
        questions, question = self._questions(rows, [name for _, name in asked], whole)
        hops = np.array([len(row.edges) for row in rows], dtype=np.int64)
        nodes = self._numbers([node for row in rows for node in row.nodes])
        return plan_rows(
            questions=questions,
            choices=Nodes.from_columns(
                self.names,
                {"label": [self.knowledge.label(node) for node in self.nodes]},
                frequency=self._sitelinks(),
                key=self.keys,
            ),
            nodes=nodes.reshape(len(rows), -1),
            split=np.array([row.split for row in rows], dtype=np.int64),
            families=families,
            family=family,
            choice_family=node_family,
            relation=self._relations(rows),
            concept=self._numbers([row.edges[0].source for row in rows]),
            facts=self._facts(rows, whole),
            question=question,
            hops=hops,
            cluster=Coded(self.names, self._numbers([row.edges[-1].source for row in rows])),
            order=ByChoiceGroup(np.array([row.group for row in rows], dtype=np.int64)),
            sub_questions=sub_questions,
            flags=flags,
            dropped=dropped,
        )

    def _numbers(self, nodes: Sequence[str]) -> Ints:
        return np.array([self.number[node] for node in nodes], dtype=np.int64)

    def _families(self, rows: Sequence[Row], names: Sequence[str]) -> tuple[list[str], Ints, Ints]:
        """Name the families: a path's own, and those to which its pool was widened."""
        known = {GOLD: 0}
        for name in dict.fromkeys(names):
            known.setdefault(name, len(known))

        def number(name: str, row: Row, level: int) -> int:
            step = LEVELS[self.knowledge.paths.hops[row.edges[-1].hop].choices][level]
            return known.setdefault(f"{name}: {step}" if step else name, len(known))

        family = [known[name] for name in names]
        node_family = [
            [number(name, row, level) for level in row.levels]
            for name, row in zip(names, rows, strict=True)
        ]
        return list(known)[1:], np.array(family), np.array(node_family)

    def _questions(
        self, rows: Sequence[Row], names: Sequence[str], whole: bool
    ) -> tuple[Questions, Ints]:
        """Return the distinct questions, and the one each row asks; golds of a path share some."""
        # A path's question may have several golds; a fact's identity is the fact.
        asked = [
            (name, row.edges[0].source) if whole else row.edges[0][:3]
            for row, name in zip(rows, names, strict=True)
        ]
        first = {words: at for at, words in reversed(list(enumerate(asked)))}
        distinct = sorted(first, key=lambda words: first[words])
        number = {words: at for at, words in enumerate(distinct)}
        shown = [first[words] for words in distinct]
        bounds = self.knowledge.paths.bounds
        labels = [self.knowledge.label(rows[at].edges[0].source) for at in shown]
        questions = Questions.from_columns(
            np.array([text_key(*words) for words in distinct], dtype=np.int64),
            {ENTITY: labels, ARTICLE: [self._article(label) for label in labels]},
            WordingRange(np.array([bounds[names[at]] for at in shown], dtype=np.int64)),
        )
        return questions, np.array([number[words] for words in asked], dtype=np.int64)

    def _article(self, label: str) -> str:
        """The definite article that an English name takes in a sentence, and a space."""
        return "the " if self.knowledge.paths.language == "en" and takes_the(label) else ""

    def _facts(self, rows: Sequence[Row], whole: bool) -> Facts:
        """The triples as the knowledge base states them, whichever way a hop follows them."""
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
            np.array([text_key(*edge[:3]) for edge in edges], dtype=np.int64) if whole else None,
        )

    def _relations(self, rows: Sequence[Row]) -> pa.Array:
        """The path of each row's facts as SPARQL writes it: ``^P112/P159``."""
        hops = self.knowledge.paths.hops
        return pa.array(
            ["/".join(hops[edge.hop].edges[edge.way] for edge in row.edges) for row in rows],
            pa.string(),
        )

    def _sitelinks(self) -> Callable[[Ints], Floats] | None:
        """How well known a node is, for the audit's "most frequent choice"."""
        number = self.knowledge.collected.sitelinks
        if not number:
            return None

        def known(nodes: Ints) -> Floats:
            found = [float(number.get(self.nodes[node], 0)) for node in nodes.tolist()]
            return np.array(found, dtype=np.float64)

        return known
