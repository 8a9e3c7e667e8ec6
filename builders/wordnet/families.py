"""The distractor families of the WordNet probes: who stands where around a node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from builders.engine.audit.ngrams import weighted_counts
from builders.engine.draw.families import Family, Pool
from builders.engine.options import RANDOM
from builders.engine.rows import Asking
from builders.wordnet.options import WordNetOptions
from builders.wordnet.synsets import generality, parents_for_levels
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints, contains, sorted_unique

GRADE = 2.3
"""Width of a grade of generality, in units of :func:`generality`: a factor of ten in what lies
below a node. What is much more general than the gold is often true as well ("a change" beside "a
disappearance")."""


def wordnet_families(wordnet: WordNet, options: WordNetOptions, asking: Asking) -> Iterator[Family]:
    """Make the pools of the families asked for, and tell which pool each question uses."""
    parents = parents_for_levels(wordnet)
    concepts = sorted_unique(asking.concept)
    for name in options.family_list:
        if name == RANDOM:
            yield Family(RANDOM, 0, Pool.empty(), asking.gold)
        elif name in ("sibling", "cousin"):
            reach = 1 if name == "sibling" else 2
            grade = (generality(wordnet) / GRADE).astype(np.int64)
            yield Family(name, reach, *level_with(parents, asking.gold, reach, grade))
        elif name in ("sibling_branch", "cousin_branch"):
            reach = 1 if name == "sibling_branch" else 2
            pools = level_below(parents, asking.concept, asking.hops, reach)
            yield Family(name, reach, *pools)
        elif name == "sister":
            for depth in range(1, options.sister_depth + 1):
                pool = Pool.of(sisters(parents, concepts, depth))
                yield Family(name, depth, pool, asking.concept)
        else:
            graph = wordnet.isa if name == "hypernym" else wordnet.isa.reversed
            for distance in range(1, options.max_distance + 1):
                pool = Pool.of(at_distance(graph, concepts, distance))
                yield Family(name, distance, pool, asking.concept)


def at_distance(graph: Graph, nodes: Ints, hops: int) -> Graph:
    """Return each node's neighbours at exactly ``hops`` edges by the shortest path."""
    walk = graph.walk(nodes, hops)
    exact = walk.hops == hops
    return Graph.from_edges(len(graph), nodes[walk.source[exact]], walk.node[exact])


def sisters(parents: Graph, nodes: Ints, depth: int) -> Graph:
    """Return what stands ``depth`` edges below the parents of each node, outside its own branch.

    Depth 1 holds the siblings, depth 2 the children of siblings, and so on: SISTER_l of
    Richardson & Sabharwal (TACL 2020, section 3.1), one level at a time.
    """
    size, children = len(parents), parents.reversed
    position, parent = parents.expand(nodes)
    source = nodes[position]
    below = at_distance(children, sorted_unique(parent), depth)
    position, node = below.expand(parent)
    found = source[position] * size + node
    own = children.walk(nodes, depth)
    taken = sorted_unique(np.concatenate([nodes * (size + 1), nodes[own.source] * size + own.node]))
    return Graph.from_edges(size, *np.divmod(found[~contains(taken, found)], size))


def level_with(parents: Graph, nodes: Ints, reach: int, grade: Ints) -> tuple[Pool, Ints]:
    """Pools of what is level with each node, keyed by ancestor and grade, and each node's key.

    The pool of a node is what stands ``reach`` edges below an ancestor ``reach`` edges above
    it and is as general (``grade``, of every node): itself, siblings and, for reach 2, cousins.
    Siblings stay in on purpose. Gold and distractors are then drawn from one and the same set, and
    no choice is the odd one out for having no sibling among the others. Of several ancestors the
    one with most below it is taken.
    """
    ancestor = _widest_ancestor(parents, nodes, reach)
    tops = sorted_unique(ancestor[ancestor >= 0])
    below = at_distance(parents.reversed, tops, reach)
    grades = int(grade.max(initial=0)) + 1
    keys = len(parents) * grades
    pool = Pool.from_pairs(keys + 1, below.sources * grades + grade[below.indices], below.indices)
    return pool, np.where(ancestor < 0, keys, ancestor * grades + grade[nodes])


def level_below(parents: Graph, concepts: Ints, hops: Ints, reach: int) -> tuple[Pool, Ints]:
    """Pools of what is level with the hyponyms of a concept, on other branches; each row's key.

    The pool of (concept, hops) is what stands ``hops`` edges below the concept's siblings
    (reach 1) or cousins (reach 2). Each node's group is the sibling or cousin it hangs on:
    at most one is to be drawn from each, since the gold too hangs alone on its branch.
    The concept's own branch is in the pools; its members are true answers and go as such.
    """
    size, children = len(parents), parents.reversed
    ancestor = _widest_ancestor(parents, concepts, reach)
    levels = int(hops.max(initial=0)) + 1
    keys, nodes, groups = [], [], []
    for hop in range(1, levels):
        tops = sorted_unique(ancestor[(ancestor >= 0) & (hops == hop)])
        level = at_distance(children, tops, reach)
        below = at_distance(children, sorted_unique(level.indices), hop)
        position, node = below.expand(level.indices)
        keys.append(level.sources[position] * levels + hop)
        nodes.append(node)
        groups.append(level.indices[position])
    pool = Pool.from_pairs(
        (size + 1) * levels, np.concatenate(keys), np.concatenate(nodes), np.concatenate(groups)
    )
    return pool, np.where(ancestor < 0, size, ancestor) * levels + hops


def _widest_ancestor(parents: Graph, nodes: Ints, reach: int) -> Ints:
    """Return the ancestor ``reach`` edges up with most below it, -1 where there is none."""
    width = np.ones(len(parents))
    line, at = np.arange(nodes.size, dtype=np.int64), nodes
    for _ in range(reach):
        width = weighted_counts(parents.indices, width[parents.sources], len(parents))
        position, at = parents.expand(at)
        line = line[position]
    # Paths come in order of line; sorting by width then id leaves the widest, lowest id first.
    order = np.lexsort((at, -width[at], line))
    line, at = line[order], at[order]
    first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]])) if line.size else line
    widest = np.full(nodes.size, -1, dtype=np.int64)
    widest[line[first]] = at[first]
    return widest
