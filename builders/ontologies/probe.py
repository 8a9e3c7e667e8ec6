"""The probe ontology: what an ontology says of its terms, in its own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.engine.render.template_file import Template
from builders.engine.rows import Territory
from builders.engine.splits import assign_splits
from builders.ontologies.options import ASKED, OntologyOptions
from builders.relations import (
    AskedEdges,
    NodeSource,
    closure,
    labelled_nodes,
    relation_plan,
    then,
    union,
)
from builders.tables.alike import of_equal, reads_of
from kb_cache.graph import Graph
from kb_cache.ontologies import is_ontology
from kb_cache.ontologies.kind import KIND, kept_ontology
from kb_cache.ontologies.read import read_ontology
from kb_cache.ontologies.types import Ontology
from kb_cache.store import stamp_of_source
from kbprobe.arrays import Bools, Ints, contains, lines_of, occurrences
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

FAMILY = "same_namespace"
"""The distractor family of the answers to questions about terms of the same namespace."""

VAGUE = "the broader term is too general (--min-depth 0)"

SEVERAL = "several terms have this label"

PAIRS_OF_KIND = 5
"""Maximum number of questions about what two terms are both a kind of, for each kind."""

SHARE_OF_DEPTH = 4
"""The broader term is at least at this fraction of an ontology's depth. Of the Gene Ontology's
questions about terms less than three steps from the top, readers found 8 of 17 sound, of others 19
of 23."""


@lru_cache(maxsize=1)
def _read(path: str, stamp: tuple[int, int], language: str) -> Ontology:
    if not is_ontology(path) and not Path(path).suffix:
        return kept_ontology(path)
    return read_ontology(Path(path), language)


def open_ontology(options: OntologyOptions) -> Ontology:
    """Read the ontology that the options name."""
    if not options.file:
        raise UsageError("ontology needs a file: build-probe FILE.obo, or --file FILE")
    return _read(options.file, stamp_of_source(options.file, KIND), options.labels)


def wordings_asked_for(template: Template, options: OntologyOptions) -> Template:
    """Leave out the wordings of what is not asked for."""
    return template.of_family(options.ask, ASKED, "--ask")


@probe(
    "ontology",
    options=OntologyOptions,
    open=open_ontology,
    question_fields=("word", "gloss", "relation"),
    choice_fields=("lemma",),
    controls=(NO_LANGUAGE, PERTURBED),
    fit=wordings_asked_for,
)
def ontology(knowledge: Ontology, options: OntologyOptions, rng: RandomGenerator) -> Plan:
    """What does an ontology of your own say of its terms?"""
    dropped = DropLog()
    for reason, count in knowledge.left_out.items():
        dropped[reason] = count
    terms = _OntologyTerms(knowledge, options, rng, dropped)
    relation, ask = ASKED_FOR[options.ask]
    asked = ask(terms)
    reads = reads_of(asked.shown.to_pylist())
    alone = terms.alone[asked.owner[asked.edges[0]]]
    edges = lines_of(asked.edges, dropped.keep(SEVERAL, alone))
    if options.ask == "synonymy":
        apart = reads[edges[0]] != reads[edges[1]]
        edges = lines_of(edges, dropped.keep("the synonym reads like the label", apart))
    dropped.require(edges[0].size, f"The file states nothing to ask for with --ask {options.ask}.")
    to_ask = AskedEdges(
        {relation: edges[:2]},
        hops=edges[2],
        may_share=options.stem_overlap == "keep",
    )
    true = union(asked.true, _related(knowledge, asked.shown))
    source = _node_source(knowledge, asked, reads, terms.same)
    return relation_plan(source, to_ask, true, options, rng, dropped)


Steps = tuple[Ints, Ints, Ints]
"""What is asked about, the answer, and the steps between them: parallel arrays."""


class _Asked(NamedTuple):
    """What is asked of an ontology. Nodes are its terms, and after them answers or pairs of terms.

    Attributes:
        edges: what is asked about.
        true: what is true of what.
        shown: (nodes,) the text of each.
        owner: (nodes,) the term of each.
        second: the second terms of the pairs, which are the last nodes.
    """

    edges: Steps
    true: Graph
    shown: pa.Array
    owner: Ints
    second: pa.Array


class _OntologyTerms:
    """The terms of an ontology, as they can be asked about.

    Attributes:
        above: graph from each term to all that it is a kind of.
        both: graph from each term to all that it is a kind of, and to all its kinds.
        same: graph between terms that have a label or an exact synonym in common.
        alone: (terms,) mask of those that no other term is called like.
    """

    def __init__(
        self,
        knowledge: Ontology,
        options: OntologyOptions,
        rng: RandomGenerator,
        dropped: DropLog,
    ) -> None:
        self.knowledge, self.options, self.rng = knowledge, options, rng
        self._dropped = dropped
        self.above = closure(knowledge.is_a)
        self.both = union(self.above, self.above.reversed)
        self.same = _called_alike(knowledge)
        self.alone = np.ones(len(knowledge), dtype=np.bool_)
        self.alone[self.same.sources] = False

    def steps(self, graph: Graph) -> Steps:
        """Return the pairs of a term and what is reached from it."""
        walk = graph.walk(np.arange(len(graph), dtype=np.int64), self.options.max_hops)
        return walk.source, walk.node, walk.hops

    def kinds(self) -> Steps:
        """Return the pairs of a term and what it is a kind of, without what is too general."""
        steps = self.steps(self.knowledge.is_a)
        return self.keep(steps, self._specific[steps[1]], VAGUE)

    @cached_property
    def _specific(self) -> Bools:
        """Mark the terms that are not too near to the top to be asked about as the broader one."""
        depth = self.knowledge.is_a.depths()
        # Below a cycle there is no top.
        depth = np.where(depth < 0, depth.max(initial=0), depth)
        least = self.options.min_depth
        if least is None:
            least = int(depth.max(initial=0)) // SHARE_OF_DEPTH
        return np.asarray(depth >= least)

    def keep(self, steps: Steps, fits: Bools, reason: str) -> Steps:
        """Keep those that fit, and count the others."""
        return lines_of(steps, self._dropped.keep(reason, fits))

    def asked(self, edges: Steps, true: Graph) -> _Asked:
        """Return edges between terms."""
        own = np.arange(len(self.knowledge), dtype=np.int64)
        return _Asked(edges, true, self.knowledge.column("name"), own, pa.array([], pa.string()))


def _hypernyms(terms: _OntologyTerms) -> _Asked:
    return terms.asked(terms.kinds(), terms.both)


def _hyponyms(terms: _OntologyTerms) -> _Asked:
    term, other, hops = terms.kinds()
    return terms.asked((other, term, hops), terms.both)


def _parts(terms: _OntologyTerms) -> _Asked:
    is_a, part_of = terms.knowledge.is_a, terms.knowledge.part_of
    part, other, hops = terms.steps(part_of)
    whole = closure(union(is_a, part_of, terms.knowledge.has_part.reversed))
    # What is part of a broader term may be part of this one.
    of_broader = then(terms.above, part_of.reversed)
    below = then(of_broader, terms.above.reversed)
    true = union(whole, whole.reversed, terms.both, of_broader, below)
    return terms.asked((other, part, hops), true)


def _conjunctions(terms: _OntologyTerms) -> _Asked:
    steps = terms.kinds()
    steps = terms.keep(steps, terms.alone[steps[0]], SEVERAL)
    pairs = _pairs(steps, terms.above, terms.rng.child("pairs"))
    names = terms.knowledge.column("name")
    first = len(names)
    owner = np.append(np.arange(first, dtype=np.int64), pairs.kind)
    return _Asked(
        (np.arange(first, owner.size, dtype=np.int64), pairs.kind, pairs.hops),
        Graph.from_edges(owner.size, first + pairs.common[0], pairs.common[1]),
        pa.concat_arrays([names, names.take(pa.array(pairs.one))]),
        owner,
        names.take(pa.array(pairs.other)),
    )


def _definitions(terms: _OntologyTerms) -> _Asked:
    texts = terms.knowledge.column("definition")
    own = np.arange(len(texts), dtype=np.int64)
    asked = _texts(terms, texts, own)
    stated = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    return asked._replace(edges=terms.keep(asked.edges, stated, "the definition is empty"))


def _synonyms(terms: _OntologyTerms) -> _Asked:
    lists = terms.knowledge.column("synonyms")
    owner = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    return _texts(terms, lists.flatten(), owner)


def _texts(terms: _OntologyTerms, texts: pa.Array, owner: Ints) -> _Asked:
    """Return what asks for the texts of terms; those of kinds, and of theirs, are true as well."""
    names = terms.knowledge.column("name")
    size = len(names) + owner.size
    answers = np.arange(len(names), size, dtype=np.int64)
    of_term = Graph.from_edges(size, owner, answers)
    other = union(terms.both, terms.same)
    position, answer = of_term.expand(other.indices)
    true = union(of_term, Graph.from_edges(size, other.sources[position], answer))
    edges = owner, answers, np.ones_like(answers)
    own = np.append(np.arange(len(names), dtype=np.int64), owner)
    return _Asked(edges, true, pa.concat_arrays([names, texts]), own, pa.array([], pa.string()))


ASKED_FOR: Mapping[str, tuple[str, Callable[[_OntologyTerms], _Asked]]] = {
    "hypernymy": ("hypernym", _hypernyms),
    "hyponymy": ("hyponym", _hyponyms),
    "conjunction": ("hypernym", _conjunctions),
    "meronymy": ("part", _parts),
    "definitions": ("definition", _definitions),
    "synonymy": ("synonym", _synonyms),
}
"""What is asked for -> the relation of the items, and the edges that ask for it."""


class _TermPairs(NamedTuple):
    """Pairs of terms, and the nearest kind of both: parallel arrays.

    ``common`` are all kinds of both: (lines of pairs, terms).
    """

    one: Ints
    other: Ints
    kind: Ints
    hops: Ints
    common: tuple[Ints, Ints]


def _pairs(steps: Steps, ancestors: Graph, rng: RandomGenerator) -> _TermPairs:
    """Return pairs of terms of which neither is a kind of the other, a few for each kind."""
    term, kind, hops = steps
    order = np.lexsort((rng.bits(term, kind), kind))
    place = np.arange(order.size) - np.searchsorted(kind[order], kind[order])
    first = np.flatnonzero((place[:-1] % 2 == 0) & (np.diff(kind[order]) == 0))
    first = first[place[first] < 2 * PAIRS_OF_KIND]
    one, other = order[first], order[first + 1]
    pairs = term[one], term[other], kind[one], np.maximum(hops[one], hops[other])
    size, keys = len(ancestors), ancestors.keys
    line, node = ancestors.expand(pairs[0])
    of_both = contains(keys, pairs[1][line] * size + node)
    line, node = line[of_both], node[of_both]
    nearer = contains(keys, node * size + pairs[2][line])
    apart = ~contains(keys, pairs[0] * size + pairs[1]) & ~contains(
        keys, pairs[1] * size + pairs[0]
    )
    kept = apart & (np.bincount(line, nearer, minlength=apart.size) == 0)
    number = np.cumsum(kept) - 1
    return _TermPairs(*lines_of(pairs, kept), (number[line][kept[line]], node[kept[line]]))


def _called_alike(knowledge: Ontology) -> Graph:
    """Return the graph between terms that have a label or an exact synonym in common."""
    synonyms = knowledge.column("synonyms")
    reads = reads_of([*knowledge.column("name").to_pylist(), *synonyms.flatten().to_pylist()])
    own = np.arange(len(knowledge), dtype=np.int64)
    owner = np.concatenate([own, pc.list_parent_indices(synonyms).to_numpy().astype(np.int64)])
    one, other = of_equal(reads)
    apart = owner[one] != owner[other]
    return Graph.from_edges(own.size, owner[one][apart], owner[other][apart])


def _related(knowledge: Ontology, shown: pa.Array) -> Graph:
    """Return the graph from each term to the nodes that read like it or like a related label."""
    related = knowledge.column("related")
    terms, size = len(knowledge), len(shown)
    reads = reads_of([*shown.to_pylist(), *related.flatten().to_pylist()])
    owner = np.append(np.arange(terms), pc.list_parent_indices(related).to_numpy())
    label = np.append(reads[:terms], reads[size:])
    line, node = occurrences(reads[:size], label)
    return Graph.from_edges(size, owner[line], node)


def _node_source(knowledge: Ontology, asked: _Asked, reads: Ints, same: Graph) -> NodeSource:
    owner, size = asked.owner, asked.owner.size
    ids = knowledge.column("id").take(pa.array(owner)).to_pylist()
    labels = [f"{name}/{at}" if at >= len(knowledge) else name for at, name in enumerate(ids)]
    namespace = knowledge.column("namespace").dictionary_encode().indices.to_numpy()
    none = pa.array([""] * (size - len(asked.second)), pa.string())
    alike = np.concatenate([[same.sources, same.indices], of_equal(reads)], axis=1)

    def territory(shares: tuple[float, float, float], seed: int) -> Territory:
        split = assign_splits(owner, shares, RandomGenerator.of(seed, "terms"))
        return Territory(split, np.zeros_like(split))

    return labelled_nodes(
        pa.array(labels, pa.string()),
        asked.shown,
        reads,
        namespace.astype(np.int64)[owner],
        FAMILY,
        territory,
        Graph.from_edges(size, *alike),
        glosses=pa.concat_arrays([none, asked.second]),
    )
