"""Graph probes: which of these nodes is in relation X to that one?

A probe of this kind defines the edges to ask about, what else is true, and a template; this module
does the rest. A :class:`NodeSource` defines how the nodes of a knowledge base are shown and which
distractor families exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import Family, Truth
from builders.engine.draw.likeness import ComparedTexts
from builders.engine.drops import DropLog
from builders.engine.options import DrawOptions
from builders.engine.plan import Facts, Flags, Nodes, Plan, Questions
from builders.engine.rows import Asking, NodePools, QuestionSet, Territory, draw_plan
from builders.engine.strategies import AnyWording, WordingsByName
from builders.english.kin import holds_kin
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Ints, lines_of, sorted_unique
from kbprobe.rng import RandomGenerator

QUESTION_FIELDS = ("word", "synonyms", "gloss", "pos", "relation")
"""Fields of a question that the template of a graph probe may show."""

SHORTEST_SHARED = 3
"""Minimum length of a common beginning that gives a word away, if it is half of the
shorter one (joyous, joyless). A word inside the other (happy, unhappy) gives it away as well."""


NONE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class NodeSource:
    """The nodes of a knowledge base, as questions and as choices.

    Attributes:
        choices: how nodes are shown as choices.
        words: (nodes,) the word for a node in questions.
        reads: (nodes,) numbers, equal for nodes that read the same as choices.
        synonyms: (nodes,) lists of other words that a question may show in addition.
        glosses: (nodes,) texts that show which sense is meant.
        pos: (nodes,) part of speech, in words.
        kinds: (nodes,) the kind of each; distractors are of the gold's kind.
        alike: graph of nodes that may be confused, such as two senses of a word.
        near: graph of neighbours in the taxonomy: what is true of one may be true of the other.
        families: function that makes the distractor families of some questions.
        territory: function from split shares and a seed to the groups of nodes that stay in one
            split.
        offensive: (nodes,) mask of nodes that ``--screen`` excludes; None: none.
        compared: function that returns the texts by which questions and golds are compared for
            matched groups; None: groups cannot be matched.
    """

    choices: Nodes
    words: pa.Array
    reads: Ints
    synonyms: pa.Array
    glosses: pa.Array
    pos: pa.Array
    kinds: Ints
    alike: Graph
    near: Graph
    families: Callable[[Asking], Iterable[Family]]
    territory: Callable[[tuple[float, float, float], int], Territory]
    offensive: Bools | None = None
    compared: Callable[[Questions, Asking], ComparedTexts] | None = None


def labelled_nodes(
    labels: pa.Array,
    shown: pa.Array,
    reads: Ints,
    kinds: Ints,
    family: str,
    territory: Callable[[tuple[float, float, float], int], Territory],
    alike: Graph,
    near: Graph | None = None,
    glosses: pa.Array | None = None,
    compared: Sequence[str] = ("word", "gloss"),
) -> NodeSource:
    """Return nodes of which nothing is known but a text: those of tables and ontologies.

    Args:
        labels: (nodes,) their names in items.
        shown: (nodes,) the texts, of questions as of choices.
        reads: as in `NodeSource`.
        kinds: as in `NodeSource`.
        family: the only distractor family: the golds of other questions.
        territory: as in `NodeSource`.
        alike: as in `NodeSource`.
        near: as in `NodeSource`; None: there are none.
        glosses: as in `NodeSource`; None: there are none.
        compared: the fields of questions by which matched groups compare them with choices.
    """
    none = pa.array([[]] * len(shown), pa.list_(pa.string()))
    empty = pa.array([""] * len(shown), pa.string())

    def families(asking: Asking) -> Iterable[Family]:
        return (Family(family, 0, kinds[asking.gold]),)

    def compared_texts(questions: Questions, asking: Asking) -> ComparedTexts:
        line, question = np.unique(asking.question, return_inverse=True)
        gold, choice = np.unique(asking.gold, return_inverse=True)
        fields = (questions.fields[name].take(pa.array(line)) for name in compared)
        asked = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*fields, " "))
        golds = shown.take(pa.array(gold))
        return ComparedTexts(asked.to_pylist(), golds.to_pylist(), question, choice)

    return NodeSource(
        choices=Nodes.from_columns(labels, {"lemma": shown, "others": none}),
        words=shown,
        reads=reads,
        synonyms=none,
        glosses=empty if glosses is None else glosses,
        pos=empty,
        kinds=kinds,
        alike=alike,
        near=Graph.from_edges(len(shown), NONE, NONE) if near is None else near,
        families=families,
        territory=territory,
        compared=compared_texts,
    )


Edges = tuple[Ints, Ints]
"""The concept and the gold of each question: parallel arrays of nodes."""


@dataclass(frozen=True)
class AskedEdges:
    """Edges to ask about, and which of them are unsuitable.

    Attributes:
        edges: relation -> pairs to ask about; the template distinguishes relations by ``relation``.
        flags: function that returns the flags of pairs of a concept and a gold.
        maybe: function that returns, for the same pairs, nodes that may be true of concepts
            although no edge says so; these are not distractors either.
        stop: concepts that are not asked about, since too much is true of them.
        most_golds: maximum number of golds asked for per concept and relation (0: no limit); golds
            with flags are counted separately.
        min_zipf: minimum word frequency of golds and concepts.
        wordings: relation -> the name of the wordings that ask for it (`WordingsByName`); None:
            all wordings ask for all relations.
        hops: the steps of each edge, of all relations one after the other; None: one each.
        may_share: whether a word of the question may be part of the gold.
        split_of: function from the splits of nodes and the pairs to the split of each pair.
        facts: function of parallel arrays of concepts, numbers of relations and golds that returns
            the facts that the pairs state; None: the pairs themselves.
    """

    edges: Mapping[str, Edges]
    flags: Callable[[Ints, Ints], Flags] | None = None
    maybe: Callable[[Ints, Ints], Graph] | None = None
    stop: Ints = field(default_factory=lambda: NONE)
    most_golds: int = 0
    min_zipf: float = 0.0
    wordings: Mapping[str, str] | None = None
    hops: Ints | None = None
    may_share: bool = False
    split_of: Callable[[Territory, Asking], Ints] = Territory.of_concept
    facts: Callable[[Ints, Ints, Ints], Facts] | None = None

    def wording_of(self, relation: Ints) -> AnyWording:
        """Return how the wordings of questions are chosen, by the numbers of their relations."""
        if self.wordings is None:
            return AnyWording()
        return WordingsByName(relation, tuple(self.wordings[name] for name in self.edges))

    def of_concepts(self, kept: Bools) -> AskedEdges:
        """Return the edges of the concepts that a mask of nodes marks."""
        edges = {name: lines_of(ends, kept[ends[0]]) for name, ends in self.edges.items()}
        hops = self.hops
        if hops is not None:
            hops = hops[kept[np.concatenate([ends[0] for ends in self.edges.values()])]]
        return replace(self, edges=edges, hops=hops)


def relation_plan(
    source: NodeSource,
    asked: AskedEdges,
    true: Graph,
    options: DrawOptions,
    rng: RandomGenerator,
    dropped: DropLog,
) -> Plan:
    """Plan questions that ask for the node to which a concept has a relation.

    Args:
        source: the nodes.
        asked: the edges to ask about.
        true: concept -> all nodes that are true of it, asked about or not. These nodes, those near
            or alike to them, and the concept itself are never distractors.
        options: the build's.
        rng: the random generator.
        dropped: counts of dropped questions; those dropped here are added.

    Raises:
        UsageError: no questions are left.
    """
    edges = asked.edges
    names = list(edges)
    concept, gold = (np.concatenate([ends[at] for ends in edges.values()]) for at in (0, 1))
    relation = np.repeat(np.arange(len(names)), [ends[0].size for ends in edges.values()])
    hops = np.ones_like(concept) if asked.hops is None else asked.hops
    shared = np.zeros_like(concept, dtype=np.bool_)
    if not asked.may_share:
        shared = given_away(source, concept, gold)
    tests = {"a shared word gives the gold away": shared}
    if asked.stop.size:
        tests["the concept is on the stop list"] = np.isin(concept, asked.stop)
    if asked.min_zipf and source.choices.frequency is not None:
        used, local = np.unique(np.concatenate([concept, gold]), return_inverse=True)
        rare = (source.choices.frequency(used) < asked.min_zipf)[local]
        tests["a word is too rare"] = rare[: concept.size] | rare[concept.size :]
    lines = concept, gold, relation, hops
    concept, gold, relation, hops = lines_of(lines, dropped.sift(tests))
    marked = asked.flags(concept, gold) if asked.flags else Flags.none(gold.size)
    if asked.most_golds:
        # Flagged golds do not take the places of others.
        cell = 2 * (concept * len(names) + relation) + marked.flagged
        first = first_of_each(cell, asked.most_golds, rng.child("golds"), gold)
        keep = dropped.keep("beyond the golds of a concept", first)
        concept, gold, relation, hops = lines_of((concept, gold, relation, hops), keep)
        marked = marked.take(keep)
    key, question = np.unique(concept * len(names) + relation, return_inverse=True)
    node, code = key // len(names), key % len(names)
    questions = Questions.from_columns(
        key,
        {
            "word": source.words.take(pa.array(node)),
            "synonyms": source.synonyms.take(pa.array(node)),
            "gloss": source.glosses.take(pa.array(node)),
            "pos": source.pos.take(pa.array(node)),
            "relation": pa.array(names).take(pa.array(code)),
        },
        asked.wording_of(code),
        pos="pos",
    )
    line = np.arange(concept.size, dtype=np.int64)
    concepts = sorted_unique(concept)
    truth = Truth.of(concepts, *true.expand(concepts), source.alike, source.near)
    if asked.maybe:
        truth = truth.and_true(asked.maybe(concept, gold))
    asking = Asking(question, line, concept, gold, hops, marked)
    territory = source.territory(options.split_shares, rng.seed)
    split = asked.split_of(territory, asking)
    if asked.facts is None:
        facts = Facts.from_codes(concept, relation, gold, source.choices.names, names)
    else:
        facts = asked.facts(concept, relation, gold)
    relations = pa.array(names, pa.string()).take(pa.array(relation))
    return draw_plan(
        QuestionSet(asking, questions, facts, relations, split),
        NodePools(source.choices, source.kinds, source.reads, territory.part, source.offensive),
        truth,
        source.families,
        options,
        rng,
        dropped,
        compared=partial(source.compared, questions) if source.compared else None,
    )


def given_away(source: NodeSource, concept: Ints, gold: Ints) -> Bools:
    """Return for each pair whether its texts share a word or contain similar words."""
    nodes, at = np.unique(np.concatenate([concept, gold]), return_inverse=True)
    left, right = at[: concept.size], at[concept.size :]
    words = source.words.take(pa.array(nodes))
    lemmas = source.choices.fields(nodes, ["lemma", "others"])
    shown = [" ".join([one, *more]) for one, more in zip(*lemmas.values(), strict=True)]
    synonyms = pc.binary_join(source.synonyms.take(pa.array(nodes)), " ")
    asked = pc.binary_join_element_wise(words, synonyms, source.glosses.take(pa.array(nodes)), " ")
    shared = holds_kin(asked, left, pa.array(shown, pa.string()), right)
    plain = pc.utf8_lower(words).to_pylist()
    inside = (
        looks_alike(plain[a], plain[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True)
    )
    return shared | np.fromiter(inside, np.bool_, count=left.size)


def common_beginning(one: str, other: str) -> int:
    """Return how many letters two words have in common at their beginning."""
    return sum(takewhile(bool, map(str.__eq__, one, other)))


def looks_alike(one: str, other: str) -> bool:
    """Return whether one word contains the other, or both begin with half of the shorter one."""
    short, long = sorted((one, other), key=len)
    same = common_beginning(short, long)
    within = len(short) > 1 and short in long
    return within or (same >= SHORTEST_SHARED and 2 * same >= len(short))


def closure(graph: Graph, hops: int | None = None) -> Graph:
    """Return the graph of all nodes reached in one or more hops, each once."""
    return reached(graph, np.arange(len(graph), dtype=np.int64), hops)


def reached(graph: Graph, nodes: Ints, hops: int | None = None) -> Graph:
    """Return the graph from some nodes to all that are reached from them in one or more hops."""
    walk = graph.walk(nodes, hops)
    return Graph.from_edges(len(graph), nodes[walk.source], walk.node)


def only(graph: Graph, nodes: Ints) -> Graph:
    """Return the edges that leave some nodes."""
    position, node = graph.expand(nodes)
    return Graph.from_edges(len(graph), nodes[position], node)


def union(*graphs: Graph) -> Graph:
    """Return the union of several graphs."""
    source, target = (
        np.concatenate([getattr(graph, end) for graph in graphs]) for end in ("sources", "indices")
    )
    return Graph.from_edges(len(graphs[0]), source, target)


def then(first: Graph, second: Graph) -> Graph:
    """Return the graph of paths with an edge of the first and then one of the second."""
    position, node = second.expand(first.indices)
    return Graph.from_edges(len(first), first.sources[position], node)
