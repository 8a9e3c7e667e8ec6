"""Neighbouring synsets: a main parent for each, and blocks of the taxonomy that stay together.

All WordNet probes divide synsets by the same blocks, so that no concept is tested in one probe and
trained on in another, siblings are in one split, and few golds of test are golds of train.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from builders.engine.rows import Territory
from builders.engine.splits import connected_components
from builders.wordnet.synsets import MERONYMS, parents_for_levels
from kb_cache.derived import derived
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Floats, Ints, weighted_counts
from kbprobe.columns import codes, to_numpy
from kbprobe.rng import RandomGenerator

LARGEST_BLOCK = 0.01
"""Share of all synsets, examples and parts that a block may hold, unless it is the top of a
taxonomy."""

PARTS = 8
"""Number of disjoint parts that the choices of each split are divided into: a model trained on rows
of some parts has not seen the choices of the others."""


DEEPEST = 32
"""Upper bound on the number of edges above a synset."""


@derived
def main_parents(wordnet: WordNet) -> Ints:
    """Return the parent of every synset: the one with the most synsets below it; -1 if none."""
    parents = parents_for_levels(wordnet)
    width = weighted_counts(parents.indices, np.ones(parents.indices.size), len(parents))
    order = np.lexsort((parents.indices, -width[parents.indices], parents.sources))
    source = parents.sources[order]
    main = np.full(len(wordnet), -1, dtype=np.int64)
    first = np.unique(source, return_index=True)[1]
    main[source[first]] = parents.indices[order][first]
    return main


@derived
def taxonomy_order(wordnet: WordNet) -> Ints:
    """Return the place of every synset in an order in which synsets precede all those below them.

    Synsets that are close in the taxonomy have places that are close.
    """
    main = main_parents(wordnet)
    by_parent = np.argsort(main, kind="stable")
    start = np.searchsorted(main[by_parent], np.arange(-1, main.size + 1)).tolist()
    children, place = by_parent.tolist(), np.full(main.size, main.size)
    stack, visited = children[: start[1]][::-1], 0
    while stack:
        node = stack.pop()
        place[node] = visited
        visited += 1
        stack += children[start[node + 1] : start[node + 2]][::-1]
    return place


@derived
def nouns_of(wordnet: WordNet) -> Ints:
    """Return the noun of each adjective and adverb, such as height for high; -1: unknown.

    This is the attribute of which an adjective is a value, or a noun derived from it; adverbs have
    their adjective's noun, and satellites without one that of their head.
    """
    noun = np.full(len(wordnet), -1, dtype=np.int64)
    is_noun = wordnet.pos_codes == POS.index("n")
    of_quality = wordnet.pos_codes > POS.index("v")
    for kind in ("attribute", "derivation"):
        source, target = wordnet.edges(kind)
        known = of_quality[source] & is_noun[target] & (noun[source] < 0)
        source, first = np.unique(source[known], return_index=True)
        noun[source] = target[known][first]
    source, target = wordnet.edges("pertainym")
    satellites = np.flatnonzero((main_parents(wordnet) >= 0) & of_quality)
    for one, other in ((satellites, main_parents(wordnet)[satellites]), (source, target)):
        known = (noun[one] < 0) & of_quality[one]
        noun[one[known]] = np.where(is_noun[other[known]], other[known], noun[other[known]])
    return noun


def ancestors(main: Ints, nodes: Ints, reach: int) -> Ints:
    """Return each node's ancestor ``reach`` edges up the main parents, -1 where there is none."""
    for _ in range(reach):
        nodes = np.where(nodes < 0, -1, main[np.maximum(nodes, 0)])
    return nodes


@lru_cache(maxsize=4)
def territory(wordnet: WordNet, shares: tuple[float, float, float], seed: int) -> Territory:
    """Assign every synset to a split, and to a part of it, block by block.

    The tops of the taxonomy are in test, or in the last split that has a share, since nearly
    everything below them would be lost otherwise. Other blocks fill the earlier splits up to their
    shares, in seeded order.
    """
    block, weight, tops = blocks(wordnet)
    rng = RandomGenerator.of(seed, "neighbourhoods")
    order = np.argsort(rng.bits(np.arange(weight.size)), kind="stable")
    order = order[order >= tops]
    filled = np.cumsum(weight[order]) / weight.sum()
    last = max(at for at, share in enumerate(shares) if share > 0)
    split = np.full(weight.size, last, dtype=np.int64)
    split[order] = np.minimum(np.searchsorted(np.cumsum(shares)[:2], filled, side="right"), last)
    part = rng.child("parts").below(PARTS, np.arange(weight.size))
    return Territory(split[block], part[block])


class TaxonomyBlocks(NamedTuple):
    """The blocks that synsets are divided into.

    Attributes:
        block: (synsets,) the number of each one's block.
        weight: (blocks,) the weight of each.
        tops: the number of blocks that are the top of a taxonomy, which come first.
    """

    block: Ints
    weight: Floats
    tops: Ints


@derived
def blocks(wordnet: WordNet) -> TaxonomyBlocks:
    """Divide the synsets into blocks: the children of every synset are in one.

    A block is a subtree of the taxonomy that is not too large. The children of the synsets above
    these subtrees, the top of the taxonomy, form a block for each lexicographer file. Adjectives
    and adverbs that are opposites are in one block.
    """
    main = main_parents(wordnet)
    asked = [to_numpy(wordnet.examples["synset"]), *(wordnet.edges(name)[0] for name in MERONYMS)]
    weight = np.bincount(np.concatenate(asked), minlength=len(wordnet)) + np.float64(1)
    below = _sums_below(main, weight)
    small = below <= LARGEST_BLOCK * weight.sum()
    # For every synset, the topmost ancestor whose subtree is small enough.
    top = np.where(small, np.arange(main.size), -1)
    for _ in range(DEEPEST):
        up = ancestors(main, top, 1)
        top = np.where((up >= 0) & small[up], up, top)
    file, names = codes(wordnet.synsets["lexname"])
    own = np.where(main < 0, top, top[main])
    own = _with_opposites(wordnet, own)
    label = np.where(own < 0, file.astype(np.int64), len(names) + own)
    labels, block = np.unique(label, return_inverse=True)
    sums = np.bincount(block, weight).astype(np.float64)
    tops = np.asarray((labels < len(names)).sum())
    return TaxonomyBlocks(block.astype(np.int64), sums, tops)


def _with_opposites(wordnet: WordNet, top: Ints) -> Ints:
    """Give opposite adjectives and adverbs, and all in their blocks, the same top."""
    source, target = wordnet.edges("antonym")
    modifier = wordnet.pos_codes > POS.index("v")
    pairs = modifier[source] & modifier[target]
    ends = np.sort(np.stack([top[source[pairs]], top[target[pairs]]]), axis=0)
    joined = connected_components(list(zip(*ends.tolist(), strict=True)))
    least = np.arange(top.size)
    least[list(joined)] = list(joined.values())
    return np.where(top < 0, -1, least[top])


def _sums_below(main: Ints, weight: Floats) -> Floats:
    """Return the sum of the weights of each node and all below it, along the main parents."""
    total = weight.copy()
    depth = np.zeros(main.size, dtype=np.int64)
    up = main
    for _ in range(DEEPEST):
        depth += up >= 0
        up = ancestors(main, up, 1)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == level)
        total += np.bincount(main[nodes], total[nodes], total.size)
    return total
