"""Evidence from definitions, for edges that WordNet has and for true relations that it lacks.

WordNet's edges are correct by its own standards, but not always for a reader. Its definitions are a
second source: "dachshund: small long-bodied *dog*" supports the edge to dog. They also show
relations without an edge: a figure is "a combination of *points*", so it is not clearly wrong where
point is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.ngrams import content_words
from builders.wordnet.synsets import lemma_texts, shown_glosses
from kb_cache.derived import derived
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, contains
from kbprobe.columns import mask, to_numpy

COMMON_SHARE = 0.01
"""Words in at least this share of the definitions do not count as shared words."""


class SynsetWords(NamedTuple):
    """The content words of synsets. Graphs lead from synsets to words, both numbered from 0.

    Attributes:
        in_gloss: synset -> content words of its definition.
        in_lemmas: synset -> those of its lemmas.
        single: synset -> those of its lemmas that are single words.
        common: (words,) which occur too often in definitions to be informative.
    """

    in_gloss: Graph
    in_lemmas: Graph
    single: Graph
    common: Bools


@derived
def synset_words(wordnet: WordNet) -> SynsetWords:
    """Return the content words of all definitions and lemmas."""
    lemmas, nodes = lemma_texts(wordnet), np.arange(len(wordnet), dtype=np.int64)
    alone = np.flatnonzero(~mask(pc.match_substring_regex(lemmas, "[ _-]")))
    joined = pc.binary_join(
        pa.ListArray.from_arrays(wordnet.sense_start.astype(np.int32), lemmas), " "
    )
    texts = shown_glosses(wordnet), joined, lemmas.take(pa.array(alone))
    owners = nodes, nodes, to_numpy(wordnet.senses["synset"])[alone]
    found = content_words(*texts)
    size = max(len(wordnet), found[0].vocabulary)
    graphs = []
    for words, owner in zip(found, owners, strict=True):
        position, word = words.of(np.arange(owner.size, dtype=np.int64))
        graphs.append(Graph.from_edges(size, owner[position], word))
    in_gloss, in_lemmas, single = graphs
    uses = np.bincount(found[0].ids, minlength=size)
    return SynsetWords(in_gloss, in_lemmas, single, uses > COMMON_SHARE * len(wordnet))


@dataclass(frozen=True)
class Glosses:
    """What the definitions of some synsets name and share.

    Attributes:
        nodes: the synsets, each once.
        words: the content words of all synsets.
    """

    nodes: Ints
    words: SynsetWords

    @classmethod
    def of(cls, wordnet: WordNet, nodes: Ints) -> Glosses:
        """Read the definitions of some synsets."""
        return cls(nodes, synset_words(wordnet))

    @cached_property
    def _uses(self) -> Ints:
        """(words,) in how many of the definitions each word is."""
        words = self.words.in_gloss
        return np.bincount(words.expand(self.nodes)[1], minlength=len(words))

    def name(self, child: Ints, parent: Ints) -> Bools:
        """Return for pairs of synsets whether the child's definition names the parent."""
        pair, word = self.words.in_gloss.expand(child)
        single = self.words.single
        named = contains(single.keys, parent[pair] * len(single) + word)
        return any_of(pair, named, child.size)

    def bear_out(self, child: Ints, parent: Ints) -> Bools:
        """Return for pairs of synsets whether the child's definition supports the edge.

        It does so if it names the parent, or shares a rare word with the parent's definition.
        """
        in_gloss = self.words.in_gloss
        pair, word = in_gloss.expand(child)
        shared = contains(in_gloss.keys, parent[pair] * len(in_gloss) + word)
        shared &= self._uses[word] < COMMON_SHARE * self.nodes.size
        return self.name(child, parent) | any_of(pair, shared, child.size)


def any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    """Return (size,) whether any of the lines of each owner is marked."""
    found = np.zeros(size, dtype=np.bool_)
    found[owner[marked]] = True
    return found
