"""The probe ontology: what an ontology says of its terms, in its own words."""

from __future__ import annotations

from functools import lru_cache
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
from kb_cache.ontologies.kind import kept_ontology
from kb_cache.ontologies.read import read_ontology
from kb_cache.ontologies.types import Ontology
from kbprobe.arrays import Bools, Ints, contains, lines_of, ragged_ranges
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.reading import stamp_of
from kbprobe.rng import RandomGenerator

FAMILY = "same_namespace"
"""The distractor family of the answers to questions about terms of the same namespace."""

VAGUE = "the broader term is too general (--min-depth 0)"

SEVERAL = "several terms have this label"

MOST_PAIRS = 5
"""Maximum number of questions about what two terms are both a kind of, for each kind."""

SHARE_OF_DEPTH = 4
"""The broader term is at least at this fraction of an ontology's depth. Of the Gene Ontology's
questions about terms less than three steps from the top, readers found 8 of 17 sound, of others 19
of 23."""

RELATIONS = {
    "hypernymy": "hypernym",
    "hyponymy": "hyponym",
    "conjunction": "hypernym",
    "definitions": "definition",
    "synonymy": "synonym",
    "meronymy": "part",
}
"""What is asked for -> the relation of the items."""


@lru_cache(maxsize=1)
def _read(path: str, stamp: tuple[int, int], language: str) -> Ontology:
    if not is_ontology(path) and not Path(path).suffix:
        return kept_ontology(path)
    return read_ontology(Path(path), language)


def open_ontology(options: OntologyOptions) -> Ontology:
    """Read the ontology that the options name."""
    if not options.file:
        raise UsageError("ontology needs a file: build-probe FILE.obo, or --file FILE")
    return _read(options.file, stamp_of(Path(options.file)), options.labels)


def wordings_asked_for(template: Template, options: OntologyOptions) -> Template:
    """Leave out the wordings of what is not asked for."""
    return template.of_family(options.ask, ASKED)


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
    terms = len(knowledge)
    ancestors = closure(knowledge.is_a)
    both = union(ancestors, ancestors.reversed)
    names = knowledge.column("name")
    shown, owner, second = names, np.arange(terms, dtype=np.int64), pa.array([], pa.string())
    same = _called_alike(knowledge)
    edges: Steps
    if options.ask in ("hypernymy", "hyponymy"):
        term, other, hops = _within(knowledge.is_a, options.max_hops)
        edges = (term, other, hops)
        edges = _kept(edges, _specific(knowledge, options)[other], VAGUE, dropped)
        edges = edges if options.ask == "hypernymy" else (edges[1], edges[0], edges[2])
        true = both
    elif options.ask == "conjunction":
        steps = _within(knowledge.is_a, options.max_hops)
        steps = _kept(steps, _specific(knowledge, options)[steps[1]], VAGUE, dropped)
        alone = _alone(same)
        steps = _kept(steps, alone[steps[0]], SEVERAL, dropped)
        pairs = _pairs(steps, ancestors, rng.child("pairs"))
        node = np.arange(terms, terms + pairs.one.size, dtype=np.int64)
        edges = node, pairs.kind, pairs.hops
        second = names.take(pa.array(pairs.other))
        shown = pa.concat_arrays([names, names.take(pa.array(pairs.one))])
        owner = np.append(owner, pairs.kind)
        true = Graph.from_edges(owner.size, terms + pairs.common[0], pairs.common[1])
    elif options.ask == "meronymy":
        part, other, hops = _within(knowledge.part_of, options.max_hops)
        edges = other, part, hops
        whole = closure(union(knowledge.is_a, knowledge.part_of))
        # What is part of a broader term may be part of this one.
        of_broader = then(ancestors, knowledge.part_of.reversed)
        true = union(whole, whole.reversed, both, of_broader, then(of_broader, ancestors.reversed))
    else:
        shown, owner = _answers(knowledge, options.ask)
        answers = np.arange(terms, owner.size, dtype=np.int64)
        edges = owner[terms:], answers, np.ones_like(answers)
        true = _of_answers(union(both, same), owner, terms)
    reads = reads_of(shown.to_pylist())
    true = union(true, _related(knowledge, shown))
    edges = _kept(edges, _alone(same)[owner[edges[0]]], SEVERAL, dropped)
    if options.ask == "definitions":
        edges = _kept(edges, _long_enough(shown, edges[1]), "the definition is empty", dropped)
    elif options.ask == "synonymy":
        apart = reads[edges[0]] != reads[edges[1]]
        edges = _kept(edges, apart, "the synonym reads like the label", dropped)
    dropped.require(edges[0].size, f"The file states nothing to ask for with --ask {options.ask}.")
    source = _node_source(knowledge, shown, second, owner, reads, same)
    asked = AskedEdges(
        {RELATIONS[options.ask]: edges[:2]},
        hops=edges[2],
        may_share=options.stem_overlap == "keep",
    )
    return relation_plan(source, asked, true, options, rng, dropped)


Steps = tuple[Ints, Ints, Ints]
"""What is asked about, the answer, and the steps between them: parallel arrays."""


def _within(graph: Graph, most: int) -> Steps:
    """Return the pairs of a term and what is reached from it in so many steps."""
    walk = graph.walk(np.arange(len(graph), dtype=np.int64), most)
    return walk.source, walk.node, walk.hops


def _kept(edges: Steps, fits: Bools, reason: str, dropped: DropLog) -> Steps:
    return lines_of(edges, dropped.keep(reason, fits))


def _specific(knowledge: Ontology, options: OntologyOptions) -> Bools:
    """Mark the terms that are not too near to the top to be asked about as the broader one."""
    depth = knowledge.is_a.depths()
    least = options.min_depth
    if least is None:
        least = int(depth.max(initial=0)) // SHARE_OF_DEPTH
    return np.asarray(depth >= least)


def _alone(same: Graph) -> Bools:
    """Mark the terms that no other term is called like."""
    alone = np.ones(len(same), dtype=np.bool_)
    alone[same.sources] = False
    return alone


class _Pairs(NamedTuple):
    """Pairs of terms, and the nearest kind of both: parallel arrays.

    ``common`` are all kinds of both: (lines of pairs, terms).
    """

    one: Ints
    other: Ints
    kind: Ints
    hops: Ints
    common: tuple[Ints, Ints]


def _pairs(steps: Steps, ancestors: Graph, rng: RandomGenerator) -> _Pairs:
    """Return pairs of terms of which neither is a kind of the other, a few for each kind."""
    term, kind, hops = steps
    order = np.lexsort((rng.bits(term, kind), kind))
    place = np.arange(order.size) - np.searchsorted(kind[order], kind[order])
    first = np.flatnonzero((place[:-1] % 2 == 0) & (np.diff(kind[order]) == 0))
    first = first[place[first] < 2 * MOST_PAIRS]
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
    return _Pairs(*lines_of(pairs, kept), (number[line][kept[line]], node[kept[line]]))


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
    node = np.argsort(reads[:size], kind="stable")
    low, high = (np.searchsorted(reads[node], label, side) for side in ("left", "right"))
    return Graph.from_edges(
        size, np.repeat(owner, high - low), node[ragged_ranges(low, high - low)]
    )


def _answers(knowledge: Ontology, ask: str) -> tuple[pa.Array, Ints]:
    """Return the labels and then the answers, definitions or synonyms, and the term of each."""
    own = np.arange(len(knowledge), dtype=np.int64)
    names, synonyms = knowledge.column("name"), knowledge.column("synonyms")
    if ask == "definitions":
        return pa.concat_arrays([names, knowledge.column("definition")]), np.tile(own, 2)
    owner = pc.list_parent_indices(synonyms).to_numpy().astype(np.int64)
    return pa.concat_arrays([names, synonyms.flatten()]), np.append(own, owner)


def _of_answers(terms: Graph, owner: Ints, count: int) -> Graph:
    """Return the graph from each term to the answers of it, of its kinds and of theirs."""
    answers = np.arange(count, owner.size, dtype=np.int64)
    to_answers = Graph.from_edges(owner.size, owner[answers], answers)
    source, other = terms.sources, terms.indices
    position, answer = to_answers.expand(other)
    return union(to_answers, Graph.from_edges(owner.size, source[position], answer))


def _long_enough(shown: pa.Array, answers: Ints) -> Bools:
    return np.asarray(pc.utf8_length(shown.take(pa.array(answers))).to_numpy() > 0)


def _node_source(
    knowledge: Ontology, shown: pa.Array, second: pa.Array, owner: Ints, reads: Ints, same: Graph
) -> NodeSource:
    """Return the nodes; ``second`` are the second terms of pairs, which are the last nodes."""
    size = owner.size
    ids = knowledge.column("id").take(pa.array(owner)).to_pylist()
    labels = [f"{name}/{at}" if at >= len(knowledge) else name for at, name in enumerate(ids)]
    namespace = knowledge.column("namespace").dictionary_encode().indices.to_numpy()
    alike = np.concatenate([[same.sources, same.indices], of_equal(reads)], axis=1)

    def territory(shares: tuple[float, float, float], seed: int) -> Territory:
        split = assign_splits(owner, shares, RandomGenerator.of(seed, "terms"))
        return Territory(split, np.zeros_like(split))

    return labelled_nodes(
        pa.array(labels, pa.string()),
        shown,
        reads,
        namespace.astype(np.int64)[owner],
        FAMILY,
        territory,
        Graph.from_edges(size, *alike),
        glosses=pa.concat_arrays([pa.array([""] * (size - len(second)), pa.string()), second]),
    )
