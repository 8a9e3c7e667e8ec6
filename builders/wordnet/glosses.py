"""Evidence from definitions, for edges that WordNet has and for true relations that it lacks.

WordNet's edges are correct by its own standards, but not always for a reader. Its definitions are a
second source: "dachshund: small long-bodied *dog*" supports the edge to dog. They also show
relations without an edge: a figure is "a combination of *points*", so it is not clearly wrong where
point is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.ngrams import content_words
from builders.relations import union
from builders.wordnet.synsets import lemma_texts, shown_glosses
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, contains, ragged_ranges
from kbprobe.columns import mask

COMMON_SHARE = 0.01
"""Words in at least this share of the definitions do not count as shared words."""

COMMON_WORD = 400
"""Words in this many definitions or more are not taken to name a synset."""

EMPTY_VERBS = (
    "make cause be have become give put take get go do act come bring move change let keep use"
)
"""Verbs that are not informative at the beginning of a definition."""


@dataclass(frozen=True)
class Glosses:
    """The content words of some synsets' definitions and lemmas.

    Graphs lead from synsets to words, both numbered from 0 in one range.

    Attributes:
        nodes: the synsets, ascending.
        in_gloss: synset -> content words of its definition.
        single: synset -> those of its lemmas that are single words.
        head: (synsets of the WordNet,) the word with which a verb's definition begins; -1: it
            says nothing, or the synset is no verb.
    """

    nodes: Ints
    in_gloss: Graph
    single: Graph
    head: Ints

    @classmethod
    def of(cls, wordnet: WordNet, nodes: Ints) -> Glosses:
        """Read the definitions of some synsets (ascending)."""
        texts = lemma_texts(wordnet)
        counts = np.diff(wordnet.sense_start)[nodes]
        lemmas = texts.take(pa.array(ragged_ranges(wordnet.sense_start[nodes], counts)))
        empty, gloss, lemma = content_words(
            pa.array([EMPTY_VERBS]), shown_glosses(wordnet).take(pa.array(nodes)), lemmas
        )
        size = max(len(wordnet), gloss.vocabulary)
        owner = np.repeat(nodes, counts)
        alone = ~mask(pc.match_substring_regex(lemmas, "[ _-]"))
        position, word = lemma.of(np.arange(len(lemmas), dtype=np.int64))
        one = alone[position]
        at, in_gloss = gloss.of(np.arange(nodes.size, dtype=np.int64))
        head = np.full(len(wordnet), -1, dtype=np.int64)
        verb = (wordnet.pos_codes[nodes] == POS.index("v")) & (gloss.lengths > 0)
        head[nodes[verb]] = gloss.ids[gloss.indptr[:-1][verb]]
        head[np.isin(head, empty.ids)] = -1
        return cls(
            nodes,
            Graph.from_edges(size, nodes[at], in_gloss),
            Graph.from_edges(size, owner[position][one], word[one]),
            head,
        )

    @cached_property
    def _uses(self) -> Ints:
        """(words,) in how many of the definitions each word is."""
        return np.bincount(self.in_gloss.indices, minlength=len(self.in_gloss))

    def name(self, child: Ints, parent: Ints) -> Bools:
        """Return for pairs of synsets whether the child's definition names the parent."""
        pair, word = self.in_gloss.expand(child)
        named = contains(self.single.keys, parent[pair] * len(self.in_gloss) + word)
        return any_of(pair, named, child.size)

    def bear_out(self, child: Ints, parent: Ints) -> Bools:
        """Return for pairs of synsets whether the child's definition supports the edge.

        It does so if it names the parent, or shares a rare word with the parent's definition.
        """
        pair, word = self.in_gloss.expand(child)
        shared = contains(self.in_gloss.keys, parent[pair] * len(self.in_gloss) + word)
        shared &= self._uses[word] < COMMON_SHARE * self.nodes.size
        return self.name(child, parent) | any_of(pair, shared, child.size)

    def named_in(self, nodes: Ints) -> Graph:
        """Return a graph from each synset to those of ``nodes`` named in its definition."""
        telling = self._uses[self.in_gloss.indices] < COMMON_WORD
        position, node = self._called(nodes).expand(self.in_gloss.indices[telling])
        return self._between(self.in_gloss.sources[telling][position], node)

    def beside(self, nodes: Ints) -> Graph:
        """Return a graph from each of ``nodes`` to those that could be mistaken for it.

        One's definition names the other or, for verbs, both definitions begin with the same verb.
        """
        named = self.named_in(nodes)
        inside = np.isin(named.sources, nodes)
        by_name = self._between(named.sources[inside], named.indices[inside])
        verbs = nodes[self.head[nodes] >= 0]
        begin = Graph.from_edges(len(self.in_gloss), self.head[verbs], verbs)
        position, other = begin.expand(self.head[verbs])
        return union(by_name, by_name.reversed, self._between(verbs[position], other))

    def _called(self, nodes: Ints) -> Graph:
        """Return a graph from each word to those of ``nodes`` that have it as a lemma."""
        some = np.isin(self.single.sources, nodes)
        return Graph.from_edges(
            len(self.single), self.single.indices[some], self.single.sources[some]
        )

    def _between(self, source: Ints, target: Ints) -> Graph:
        return Graph.from_edges(self.head.size, source, target)


def any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    """Return (size,) whether any of the lines of each owner is marked."""
    found = np.zeros(size, dtype=np.bool_)
    found[owner[marked]] = True
    return found
