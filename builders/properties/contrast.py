"""Evidence that a concept has a property although ConceptNet does not state it.

Everything here is computed from *all* edges, including noise: one careless volunteer is enough to
make a property possible. Tables are boolean arrays (concepts, properties).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.conceptnet.types import ConceptNet
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, contains, joined, occurrences, sorted_unique
from kbprobe.columns import codes, positions, single_chunk, to_numpy

ALIKE_CONCEPTS = 0.1
"""Minimum cosine of the sets of properties of similar concepts."""

ALIKE_PROPERTIES = 0.3
"""Minimum cosine of the sets of concepts of similar properties."""

COMMON_SENSE = 0.1
"""A sense counts if it has at least this share of the uses of the word's commonest one."""

DESCRIBED = 3
"""Minimum number of objects of a concept's relation before a missing object means anything."""

DENIAL = 2.0
"""Minimum weight of an edge that denies a property: one volunteer is not enough."""

USUAL = 0.33
"""A property is usual in a field if at least this share of its holders belongs to the field."""

EVENTS = (
    *("Causes", "CausesDesire", "HasFirstSubevent", "HasLastSubevent", "HasPrerequisite"),
    *("HasSubevent", "MotivatedByGoal"),
)
"""Relations of activities and events."""

DOING = re.compile(r"verb\.|noun\.(?:act|cognition|communication|event|feeling|process|state)$")
"""Lexicographer files of activities and events."""

CONCEPTNET_HOPS, WORDNET_HOPS = 2, 3
"""Maximum number of IsA hops over which properties are inherited."""

OPPOSITES = ("Antonym", "DistinctFrom")
"""Relations that connect terms without making either a likely property of the other."""


class WordEdges(NamedTuple):
    """Edges between words: ``key`` identifies the property, ``opposite`` its negation."""

    start: Ints
    key: Ints
    opposite: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class Support:
    """Tables of the evidence for properties.

    Attributes:
        conceptnet, wordnet: the sources.
        edges: the edges of the relations asked about, unfiltered.
        concepts: (concepts,) ids in ConceptNet, ascending.
        keys: (properties,) keys of properties, ascending.
        relation: (properties,) name of the relation, negations with "Not".
        telling: (nodes of ConceptNet,) marks nodes that are not too general to be informative.
        isa_weight: minimum weight of an IsA edge over which properties are inherited.
    """

    conceptnet: ConceptNet
    wordnet: WordNet
    edges: WordEdges
    concepts: Ints
    keys: Ints
    relation: npt.NDArray[np.str_]
    telling: Bools
    isa_weight: float

    @cached_property
    def said(self) -> Bools:
        """Whether an edge states the property."""
        return self._table(self._place[self.edges.start], positions(self.keys, self.edges.key))

    @cached_property
    def against(self) -> Floats:
        """The weight of the heaviest edge that denies something; 0 where there is none."""
        return self._weights(positions(self.keys, self.edges.opposite))

    @cached_property
    def denied(self) -> Bools:
        """Whether edges deny it with at least `DENIAL` and the weight of those that state it."""
        said = self._weights(positions(self.keys, self.edges.key))
        return np.asarray((self.against >= DENIAL) & (self.against >= said))

    @cached_property
    def holders(self) -> Ints:
        """(properties,) number of concepts, among all, that have a property by some edge."""
        return np.bincount(self._has.indices, minlength=self.keys.size)

    def cell(self, concept: Ints, key: Ints) -> Ints:
        """Return the indices of cells of a table, row by row."""
        return self._place[concept] * self.keys.size + positions(self.keys, key)

    def inherited(self) -> Bools:
        """Whether an edge states it of something that the concept is a kind of.

        ConceptNet's IsA is noisy, hence `isa_weight`. Very general ancestors, of which almost
        everything has been said (animal, thing), are left out.
        """
        cn = self.conceptnet
        parts = []
        if "IsA" in cn.relation_names:
            start, end, weight = cn.edges("IsA")
            trusted = weight >= self.isa_weight
            isa = Graph.from_edges(len(cn), cn.terms[start[trusted]], cn.terms[end[trusted]])
            walk = isa.walk(self.concepts, CONCEPTNET_HOPS)
            parts.append((walk.source, walk.node))
        position, synset = self._means.expand(self.concepts)
        walk = self.wordnet.isa.walk(synset, WORDNET_HOPS)
        source, concept = self._means.reversed.expand(walk.node)
        parts.append((position[walk.source[source]], concept))
        own, above = joined(parts)
        telling = self.telling[above]
        return self._properties_of(own[telling], above[telling])

    def classified(self) -> Bools:
        """Whether a sense of the concept is above or below the object in WordNet (IsA only)."""
        row = np.flatnonzero(self.relation == "IsA")
        means = senses_of(self.conceptnet, self.wordnet, every=True)
        size = max(len(self.conceptnet), len(self.wordnet), self.keys.size)
        named = Graph.from_edges(size, *means)
        objects = Graph.from_edges(size, self.keys[row] % len(self.conceptnet), row)
        position, synset = named.expand(self.concepts)
        parts = [(position, synset)]
        for graph in (self.wordnet.isa, self.wordnet.isa.reversed):
            walk = graph.walk(synset)
            parts.append((position[walk.source], walk.node))
        own, kind = joined(parts)
        again, concept = named.reversed.expand(kind)
        third, which = objects.expand(concept)
        return self._table(own[again[third]], which)

    def agreed(self) -> Bools:
        """Whether the concept's first noun sense is below the object in WordNet (IsA only)."""
        row = np.flatnonzero(self.relation == "IsA")
        objects = Graph.from_edges(
            max(len(self.conceptnet), self.keys.size), self.keys[row] % len(self.conceptnet), row
        )
        concept, synset = first_nouns(self.conceptnet, self.wordnet)
        place = self._place[concept]
        place, synset = place[place >= 0], synset[place >= 0]
        walk = self.wordnet.isa.walk(synset)
        again, named = self._means.reversed.expand(walk.node)
        third, which = objects.expand(named)
        return self._table(place[walk.source[again[third]]], which)

    def usual_in_field(self) -> Bools:
        """Whether it is usual in a field of the concept: animals, food, acts.

        Fields are WordNet's lexicographer files. Concepts without a field may have any property,
        and properties of one kind of event may hold for others.
        """
        stored, names = codes(self.wordnet.synsets["lexname"])
        concept, synset = self._senses
        fields = np.zeros((len(self.conceptnet), len(names)), dtype=np.bool_)
        fields[concept, stored[synset]] = True
        fields[:, [name == "" for name in names]] = False  # lexicons may state no topic
        which = self._has.indices
        owner = np.repeat(np.arange(len(self._has), dtype=np.int64), self._has.degrees)
        held = np.stack(
            [
                np.bincount(which[fields[owner, field]], minlength=self.keys.size)
                for field in range(len(names))
            ],
            axis=1,
        )
        known = np.bincount(which[fields[owner].any(axis=1)], minlength=self.keys.size)
        usual = np.greater_equal(held, np.maximum(USUAL * known, 1)[:, None])
        doing = np.array([DOING.match(name) is not None for name in names])
        usual |= np.isin(self.relation, EVENTS)[:, None] & doing
        mine = fields[self.concepts]
        shared = mine.astype(np.float32) @ usual.T.astype(np.float32) > 0
        return np.asarray(shared | ~mine.any(axis=1, keepdims=True))

    def of_one_kind(self) -> Bools:
        """Whether an edge states it of a concept of the same kind.

        Two concepts are of the same kind if their synsets and direct hypernyms overlap.
        """
        concept, synset = self._senses
        position, above = self.wordnet.isa.expand(synset)
        size = max(len(self.conceptnet), len(self.wordnet))
        kinds = Graph.from_edges(
            size,
            np.concatenate([concept, concept[position]]),
            np.concatenate([synset, above]),
        )
        position, kind = kinds.expand(self.concepts)
        again, other = kinds.reversed.expand(kind)
        pairs = sorted_unique(position[again] * size + other)
        return self._properties_of(pairs // size, pairs % size)

    def of_alike(self) -> Bools:
        """Whether an edge states it of a concept that shares many properties with this one.

        That is at least two, and enough for the two sets to have a cosine of `ALIKE_CONCEPTS`.
        """
        alike = _alike(self._features, self.concepts, ALIKE_CONCEPTS)
        return self._properties_of(*alike)

    def by_alike(self) -> Bools:
        """Whether it is similar to a property that the concept has by some edge.

        Two properties are similar if at least two concepts share them, and enough for the two sets
        of concepts to have a cosine of `ALIKE_PROPERTIES`: cabinet and cupboard.
        """
        size = self._features.reversed
        rows, feature = self._features.expand(self.concepts)
        owners = Graph.from_edges(max(len(size), self.concepts.size), feature, rows)
        number = np.flatnonzero(contains(self.keys, self._feature_keys))
        wanted = np.searchsorted(self._feature_keys[number], self.keys)
        mine, like = _alike(owners, number[wanted], ALIKE_PROPERTIES)
        position, concept = owners.expand(like)
        return self._table(concept, mine[position])

    def by_kindred_object(self) -> Bools:
        """Whether an edge states the same relation of the concept with a related object.

        That is a synonym, a direct hypernym or a direct hyponym in WordNet: what is found in a
        fridge is found in a refrigerator.
        """
        size = len(self.conceptnet)
        code, target = np.divmod(self.keys, size)
        position, synset = self._means.expand(target)
        isa = self.wordnet.isa
        steps = [(np.arange(synset.size), synset), isa.expand(synset), isa.reversed.expand(synset)]
        step, near = joined(steps)
        again, term = self._means.reversed.expand(near)
        which = position[step[again]]
        place, edge = occurrences(self.edges.key, code[which] * size + term)
        return self._table(self._place[self.edges.start[edge]], which[place])

    def described(self) -> Bools:
        """Whether the concept has enough objects (`DESCRIBED`) of the property's relation."""
        size = len(self.conceptnet)
        known = self._place[self.edges.start] >= 0
        concept, key = self._place[self.edges.start[known]], self.edges.key[known]
        codes = int(key.max(initial=0)) // size + 1
        pairs = sorted_unique(concept * codes * size + key)
        cell = pairs // size
        objects = np.bincount(cell, minlength=self.concepts.size * codes).reshape(-1, codes)
        return np.asarray(objects[:, self.keys // size] >= DESCRIBED)

    def mentioned(self) -> Bools:
        """Whether some edge, of whatever relation, joins the concept to a term with the object.

        A term with the object is the object itself or, if that is a single word, a term containing
        it.
        """
        cn = self.conceptnet
        start, end = self._neighbours()
        texts = single_chunk(cn.concepts["text"])
        terms, term = np.unique(end, return_inverse=True)
        words = pc.split_pattern(texts.take(pa.array(terms)), " ")
        owner = to_numpy(pc.list_parent_indices(words)).astype(np.int64)
        targets = sorted_unique(self.keys % len(cn))
        target = positions(texts.take(pa.array(targets)), pc.list_flatten(words))
        # Phrases are not matched with words, but may be terms themselves.
        owner = np.concatenate([owner, np.arange(terms.size, dtype=np.int64)])
        target = np.concatenate([target, positions(targets, terms)])
        known = target >= 0
        size = max(terms.size, targets.size, self.keys.size)
        holds = Graph.from_edges(size, owner[known], target[known])
        about = Graph.from_edges(
            size,
            np.searchsorted(targets, self.keys % len(cn)),
            np.arange(self.keys.size, dtype=np.int64),
        )
        position, target = holds.expand(term)
        again, which = about.expand(target)
        return self._table(self._place[start[position[again]]], which)

    def _neighbours(self) -> tuple[Ints, Ints]:
        """Every concept with every term that some edge connects it to."""
        cn = self.conceptnet
        joined = np.ones(cn.assertions.num_rows, dtype=np.bool_)
        for name in cn.relation_names:
            joined[cn.rows(name, negated=True)] = False
            if name in OPPOSITES:
                joined[cn.rows(name)] = False
        ends = cn.terms[cn.start[joined]], cn.terms[cn.end[joined]]
        start, end = np.concatenate(ends), np.concatenate(ends[::-1])
        mine = self._place[start] >= 0
        return start[mine], end[mine]

    @cached_property
    def _place(self) -> Ints:
        place = np.full(len(self.conceptnet), -1, dtype=np.int64)
        place[self.concepts] = np.arange(self.concepts.size)
        return place

    @cached_property
    def _has(self) -> Graph:
        """Graph from all concepts to their properties."""
        at = positions(self.keys, self.edges.key)
        known = at >= 0
        size = max(len(self.conceptnet), self.keys.size)
        return Graph.from_edges(size, self.edges.start[known], at[known])

    @cached_property
    def _feature_keys(self) -> Ints:
        return sorted_unique(self.edges.key)

    @cached_property
    def _features(self) -> Graph:
        """Graph from all informative concepts to everything said about them."""
        telling = self.telling[self.edges.start]
        feature = np.searchsorted(self._feature_keys, self.edges.key[telling])
        size = max(len(self.conceptnet), self._feature_keys.size)
        return Graph.from_edges(size, self.edges.start[telling], feature)

    @cached_property
    def _senses(self) -> tuple[Ints, Ints]:
        return senses_of(self.conceptnet, self.wordnet)

    @cached_property
    def _means(self) -> Graph:
        """Graph from concepts to the synsets that they may name."""
        return Graph.from_edges(max(len(self.conceptnet), len(self.wordnet)), *self._senses)

    def _table(self, concept: Ints, which: Ints) -> Bools:
        """Mark cells; -1 in either array marks none."""
        table = np.zeros((self.concepts.size, self.keys.size), dtype=np.bool_)
        known = (concept >= 0) & (which >= 0)
        table[concept[known], which[known]] = True
        return table

    def _weights(self, which: Ints) -> Floats:
        """Return the greatest weight of an edge of each cell, given by each edge's property."""
        table = np.zeros((self.concepts.size, self.keys.size))
        concept = self._place[self.edges.start]
        known = (concept >= 0) & (which >= 0)
        np.maximum.at(table, (concept[known], which[known]), self.edges.weight[known])
        return table

    def _properties_of(self, concept: Ints, other: Ints) -> Bools:
        """Mark for each concept (by its index) the properties of another (by its id)."""
        others = other != self.concepts[concept]
        position, which = self._has.expand(other[others])
        return self._table(concept[others][position], which)


def _alike(graph: Graph, nodes: Ints, cosine: float) -> tuple[Ints, Ints]:
    """Return which of ``nodes``, by index, share enough neighbours with which nodes.

    That is at least two, and enough for the cosine: the number of shared neighbours over the
    geometric mean of the numbers of neighbours.
    """
    from scipy.sparse import csr_array

    ones = np.ones(graph.indices.size, dtype=np.int64)
    matrix = csr_array((ones, graph.indices, graph.indptr), shape=(len(graph), len(graph)))
    shared = (matrix[nodes] @ matrix.T).tocoo()
    first, second = (axis.astype(np.int64) for axis in shared.coords)
    bound = cosine * cosine * graph.degrees[nodes][first] * graph.degrees[second]
    close = (shared.data >= 2) & (shared.data * shared.data >= bound)
    return first[close], second[close]


def senses_of(
    conceptnet: ConceptNet, wordnet: WordNet, every: bool = False, first: int = 1
) -> tuple[Ints, Ints]:
    """Return the nouns and verbs of WordNet that concepts may name: (concept, synset).

    Apart from the ``first`` senses, those that are rare in WordNet's tagged texts are left out,
    unless ``every`` is set.
    """
    synset, count = wordnet.sense_synset, to_numpy(wordnet.senses["count"])
    pos = wordnet.pos_codes[synset].astype(np.int64)
    concept = concepts_of_senses(conceptnet, wordnet)
    rows = np.flatnonzero((concept >= 0) & (pos <= POS.index("v")))
    if every:
        return concept[rows], synset[rows]
    word = concept[rows] * 2 + pos[rows]
    most = np.zeros(2 * len(conceptnet), dtype=count.dtype)
    np.maximum.at(most, word, count[rows])
    foremost = to_numpy(wordnet.senses["number"])[rows] <= first
    rows = rows[foremost | (count[rows] >= COMMON_SENSE * most[word])]
    return concept[rows], synset[rows]


@lru_cache(maxsize=2)
def concepts_of_senses(conceptnet: ConceptNet, wordnet: WordNet) -> Ints:
    """Return (senses,) the concept that each sense's lemma is; -1: none."""
    return positions(conceptnet.concepts["text"], pc.utf8_lower(wordnet.lemma_texts()))


def first_nouns(conceptnet: ConceptNet, wordnet: WordNet) -> tuple[Ints, Ints]:
    """Return the first noun sense of every concept that has one: (concept, synset)."""
    concept = concepts_of_senses(conceptnet, wordnet)
    first = (concept >= 0) & wordnet.first_nouns
    return concept[first], wordnet.sense_synset[first]


def mostly_verbs(conceptnet: ConceptNet, wordnet: WordNet) -> Bools:
    """Return (concepts,) whether a word is more often a verb than a noun in tagged texts."""
    concept = concepts_of_senses(conceptnet, wordnet)
    uses, pos = to_numpy(wordnet.senses["count"]) + 0.5, wordnet.pos_codes[wordnet.sense_synset]
    noun, verb = (
        np.bincount(concept[rows], uses[rows], len(conceptnet))
        for rows in ((concept >= 0) & (pos == POS.index(name)) for name in "nv")
    )
    return np.asarray(verb > noun)
