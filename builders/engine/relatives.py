"""Who stands where around a node: the families that distractors are drawn from.

Each function returns the pool of every given node as a :class:`~kb_cache.graph.Graph` whose
edges lead from the node to its pool; nodes not asked for have empty pools.
"""

from __future__ import annotations

import numpy as np

from kb_cache.graph import Graph, Ints, sorted_unique


def at_distance(graph: Graph, nodes: Ints, hops: int) -> Graph:
    """Pools of the nodes exactly ``hops`` edges away by the shortest path."""
    walk = graph.walk(nodes, hops)
    exact = walk.hops == hops
    return Graph.from_edges(len(graph), nodes[walk.source[exact]], walk.node[exact])


def siblings(parents: Graph, nodes: Ints) -> Graph:
    """Pools of the other children of each node's parents."""
    return _without_self(parents, nodes, *_up_and_down(parents, nodes, 1))


def cousins(parents: Graph, nodes: Ints) -> Graph:
    """Pools of the other grandchildren of each node's grandparents, siblings among them.

    Siblings stay in on purpose: gold and distractors are then drawn from one and the same
    set, and no choice is the odd one out for having no sibling among the others.
    """
    return _without_self(parents, nodes, *_up_and_down(parents, nodes, 2))


def sisters(parents: Graph, nodes: Ints, depth: int) -> Graph:
    """Pools at exactly ``depth`` edges below the parents of each node, outside its own branch.

    Depth 1 holds the siblings, depth 2 the children of siblings, and so on: SISTER_l of
    Richardson & Sabharwal (TACL 2020, section 3.1), one level at a time.
    """
    near = siblings(parents, nodes)
    if depth == 1:
        return near
    sister = sorted_unique(near.indices)
    below = at_distance(parents.reversed, sister, depth - 1)
    position, node = below.expand(near.indices)
    source = np.repeat(np.arange(len(near), dtype=np.int64), near.degrees)[position]
    own = parents.reversed.walk(nodes, depth - 1)
    taken = Graph.from_edges(len(parents), nodes[own.source], own.node)
    pool = Graph.from_edges(len(parents), source, node)
    return _difference(pool, taken)


def branches(parents: Graph, nodes: Ints, hops: int, reach: int) -> tuple[Ints, Ints, Ints]:
    """What stands ``hops`` below each node's siblings (reach 1) or siblings and cousins (2).

    A hyponym of ``node`` at ``hops`` is level with these. Returns parallel arrays (node,
    branch, hyponym), where ``branch`` is the sibling or cousin that the hyponym hangs on.
    """
    beside = siblings(parents, nodes) if reach == 1 else cousins(parents, nodes)
    top = np.repeat(np.arange(len(beside), dtype=np.int64), beside.degrees)
    below = at_distance(parents.reversed, sorted_unique(beside.indices), hops)
    position, node = below.expand(beside.indices)
    return top[position], beside.indices[position], node


def _up_and_down(parents: Graph, nodes: Ints, levels: int) -> tuple[Ints, Ints]:
    origin, at = np.arange(nodes.size, dtype=np.int64), nodes
    for step in [parents] * levels + [parents.reversed] * levels:
        # Merging as we go keeps paths that meet again from being followed twice.
        position, node = step.expand(at)
        keys = sorted_unique(origin[position] * len(parents) + node)
        origin, at = keys // len(parents), keys % len(parents)
    return nodes[origin], at


def _without_self(parents: Graph, nodes: Ints, source: Ints, target: Ints) -> Graph:
    other = source != target
    return Graph.from_edges(len(parents), source[other], target[other])


def _difference(pool: Graph, taken: Graph) -> Graph:
    size = len(pool)
    have = np.repeat(np.arange(size, dtype=np.int64), pool.degrees) * size + pool.indices
    lose = np.repeat(np.arange(size, dtype=np.int64), taken.degrees) * size + taken.indices
    keep = have[~np.isin(have, lose)]
    return Graph.from_edges(size, keep // size, keep % size)
