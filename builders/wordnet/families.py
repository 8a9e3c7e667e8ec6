"""The distractor families of the WordNet probes."""

from __future__ import annotations

from collections.abc import Iterator

from builders.engine.draw.families import Family, Pool
from builders.engine.options import RANDOM
from builders.engine.rows import Asking
from builders.wordnet import relatives
from builders.wordnet.options import WordNetOptions
from builders.wordnet.synsets import parents_for_levels
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import sorted_unique


def wordnet_families(wordnet: WordNet, options: WordNetOptions, asking: Asking) -> Iterator[Family]:
    """Make the pools of the families asked for, and tell which pool each question uses."""
    parents = parents_for_levels(wordnet)
    concepts = sorted_unique(asking.concept)
    for name in options.family_list:
        if name == RANDOM:
            yield Family(RANDOM, 0, Pool.empty(), asking.gold)
        elif name in ("sibling", "cousin"):
            reach = 1 if name == "sibling" else 2
            yield Family(name, reach, *relatives.level_with(parents, asking.gold, reach))
        elif name in ("sibling_branch", "cousin_branch"):
            reach = 1 if name == "sibling_branch" else 2
            pools = relatives.level_below(parents, asking.concept, asking.hops, reach)
            yield Family(name, reach, *pools)
        elif name == "sister":
            for depth in range(1, options.sister_depth + 1):
                pool = Pool.of(relatives.sisters(parents, concepts, depth))
                yield Family(name, depth, pool, asking.concept)
        else:
            graph = wordnet.isa if name == "hypernym" else wordnet.isa.reversed
            for distance in range(1, options.max_distance + 1):
                pool = Pool.of(relatives.at_distance(graph, concepts, distance))
                yield Family(name, distance, pool, asking.concept)
