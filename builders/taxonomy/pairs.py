"""What words are: which synsets may be answers, and the answers above each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from builders.taxonomy.words import Taxonomy
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints, contains, joined, lines_of

FOLLOWED = 4
"""Readers follow so many edges up from a sense of something that cannot be touched."""


class Pairs(NamedTuple):
    """What words are: parallel arrays, each (word, answer) once, sorted.

    ``sense`` is the synset of the word and ``top`` the answer's above it, ``hops`` edges up (-1
    and -1 where ConceptNet says so); ``share`` is the part of the word's uses in which it is that.
    """

    word: Ints
    answer: Ints
    hops: Ints
    sense: Ints
    top: Ints
    share: Floats


def trees_of(wordnet: WordNet, roots: Sequence[Sequence[str]]) -> Ints:
    """Return for every synset the tree that it is in: that of the nearest root above it; or -1.

    Args:
        wordnet: the taxonomy.
        roots: names of synsets, those of one tree together.

    Raises:
        UsageError: an unknown synset.
    """
    synsets = np.array([wordnet.synset_id(name) for names in roots for name in names], np.int64)
    tree = np.repeat(np.arange(len(roots), dtype=np.int64), [len(names) for names in roots])
    walk = wordnet.hyponyms.walk(synsets)
    node = np.concatenate([synsets, walk.node])
    owner = np.concatenate([tree, tree[walk.source]])
    hops = np.concatenate([np.zeros_like(synsets), walk.hops])
    # Written from far to near: the nearest root is written last.
    order = np.lexsort((-owner, -hops))
    found = np.full(len(wordnet), -1, dtype=np.int64)
    found[node[order]] = owner[order]
    return found


def answers_of(taxonomy: Taxonomy, allowed: Bools, tree: Ints) -> Ints:
    """Return the word that names each synset as an answer, -1 for none.

    A word names the synset of its first sense, or of another that is about as common, and all
    that it names stands in one tree.

    Args:
        taxonomy: the words and their senses.
        allowed: which words may be answers.
        tree: every synset's tree; what is in none (-1) is not named.
    """
    senses = taxonomy.senses
    rows = np.flatnonzero(senses.main & allowed[senses.word] & (tree[senses.synset] >= 0))
    first = rows[np.unique(senses.word[rows], return_index=True)[1]]
    home = np.full(len(taxonomy), -1, dtype=np.int64)
    home[senses.word[first]] = tree[senses.synset[first]]
    rows = rows[tree[senses.synset[rows]] == home[senses.word[rows]]]
    # The best word for a synset is written last.
    rows = rows[np.lexsort((-senses.word[rows], -senses.number[rows], senses.tagged[rows]))]
    named = np.full(len(tree), -1, dtype=np.int64)
    named[senses.synset[rows]] = senses.word[rows]
    return named


def pairs_of(
    taxonomy: Taxonomy,
    entities: Bools,
    named: Ints,
    *,
    max_hops: int,
    min_weight: float,
) -> Pairs:
    """Return what each entity is, among the answers.

    Args:
        taxonomy: the words.
        entities: which words to ask about.
        named: every synset's answer, of :func:`answers_of`.
        max_hops: edges of the longest path up.
        min_weight: of the edges of ConceptNet that count.
    """
    senses, size = taxonomy.senses, len(taxonomy)
    rows = np.flatnonzero(entities[senses.word])
    walk = taxonomy.trusted.walk(senses.synset[rows], max_hops)
    kept = named[walk.node] >= 0
    row, top, hops = rows[walk.source[kept]], walk.node[kept], walk.hops[kept]
    used = np.where(senses.tangible[row] | (hops <= FOLLOWED), senses.share[row], 0.0)
    found = Pairs(senses.word[row], named[top], hops, senses.synset[row], top, used)
    synonym = np.repeat(np.arange(len(taxonomy.in_synset)), taxonomy.in_synset.degrees)
    same = synonym * size + taxonomy.in_synset.indices
    kept = (found.word != found.answer) & ~contains(same, found.sense * size + found.answer)
    found = lines_of(found, kept)
    start, end = taxonomy.stated(min_weight)
    is_answer = np.zeros(size, dtype=np.bool_)
    is_answer[named[named >= 0]] = True
    edge = entities[start] & is_answer[end]
    start, end, none = start[edge], end[edge], np.full(int(edge.sum()), -1, dtype=np.int64)
    stated = Pairs(start, end, np.ones_like(start), none, none, np.ones(start.size))
    both = joined([found, stated])
    # WordNet before ConceptNet, then the commonest sense, then the nearest.
    order = np.lexsort(
        (both.top, both.hops, both.sense, -both.share, both.sense < 0, both.answer, both.word)
    )
    both = lines_of(both, order)
    key = both.word * size + both.answer
    keys, first = np.unique(key, return_index=True)
    # A sense that reaches an answer in two ways counts once.
    _, once = np.unique(key * (len(named) + 1) + both.sense + 1, return_index=True)
    share = np.bincount(np.searchsorted(keys, key[once]), both.share[once])
    return lines_of(both, first)._replace(share=np.minimum(share, 1.0))
