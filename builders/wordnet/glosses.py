"""What definitions say of one another: a WordNet edge that they bear out, and a truth it lacks.

WordNet's edges are right by its own lights, not always by a reader's. Its definitions are a second
witness: "dachshund: small long-bodied *dog*" bears out the edge to dog. They also tell of truths
that have no edge: a figure is "a combination of *points*", so that it is no wrong answer beside
point.
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
"""A word in more of the definitions says nothing where two of them share it."""

COMMON_WORD = 400
"""A word in more definitions than this tells of no particular truth."""

EMPTY_VERBS = (
    "make cause be have become give put take get go do act come bring move change let keep use"
)
"""Verbs that say nothing where a definition begins with them."""


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
        """Tell for pairs of synsets whether a child's definition names the parent in one word."""
        pair, word = self.in_gloss.expand(child)
        named = contains(self.single.keys, parent[pair] * len(self.in_gloss) + word)
        return any_of(pair, named, child.size)

    def bear_out(self, child: Ints, parent: Ints) -> Bools:
        """Tell for pairs of synsets whether the child's definition speaks of the parent.

        It names the parent, or shares a word with its definition that few others have.
        """
        pair, word = self.in_gloss.expand(child)
        shared = contains(self.in_gloss.keys, parent[pair] * len(self.in_gloss) + word)
        shared &= self._uses[word] < COMMON_SHARE * self.nodes.size
        return self.name(child, parent) | any_of(pair, shared, child.size)

    def named_in(self, nodes: Ints) -> Graph:
        """Lead from each synset to those of ``nodes`` that its definition names, in one word."""
        telling = self._uses[self.in_gloss.indices] < COMMON_WORD
        position, node = self._called(nodes).expand(self.in_gloss.indices[telling])
        return self._between(self.in_gloss.sources[telling][position], node)

    def beside(self, nodes: Ints) -> Graph:
        """Lead from each of ``nodes`` to those that may be taken for it.

        That is: one's definition names the other or, of verbs, both begin with the same verb.
        """
        named = self.named_in(nodes)
        inside = np.isin(named.sources, nodes)
        by_name = self._between(named.sources[inside], named.indices[inside])
        verbs = nodes[self.head[nodes] >= 0]
        begin = Graph.from_edges(len(self.in_gloss), self.head[verbs], verbs)
        position, other = begin.expand(self.head[verbs])
        return union(by_name, by_name.reversed, self._between(verbs[position], other))

    def _called(self, nodes: Ints) -> Graph:
        """Lead from each word to those of ``nodes`` of which it is a lemma."""
        some = np.isin(self.single.sources, nodes)
        return Graph.from_edges(
            len(self.single), self.single.indices[some], self.single.sources[some]
        )

    def _between(self, source: Ints, target: Ints) -> Graph:
        return Graph.from_edges(self.head.size, source, target)


def any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    """(size,) whether any line of an owner is marked."""
    found = np.zeros(size, dtype=np.bool_)
    found[owner[marked]] = True
    return found
