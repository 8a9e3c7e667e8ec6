"""Distractor families against references written for clarity, on small random graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.draw.families import Pool
from builders.wordnet.families import at_distance, level_below, level_with, sisters
from kb_cache.graph import Graph
from kbprobe.arrays import Ints

Edges = frozenset[tuple[int, int]]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[int, Edges]:
    """A number of nodes, and edges (child, parent); cycles and several parents occur."""
    size = draw(st.integers(1, 9))
    node = st.integers(0, size - 1)
    edges = draw(st.frozensets(st.tuples(node, node).filter(lambda e: e[0] != e[1]), max_size=16))
    return size, edges


def graph(size: int, edges: Edges) -> Graph:
    return Graph.from_edges(size, [child for child, _ in edges], [parent for _, parent in edges])


def parents_of(edges: Edges, node: int) -> set[int]:
    return {parent for child, parent in edges if child == node}


def distances_below(edges: Edges, node: int) -> dict[int, int]:
    """Shortest distance of everything below a node, the node itself excepted."""
    found, frontier, hops = {node: 0}, {node}, 0
    while frontier:
        hops += 1
        frontier = {child for child, parent in edges if parent in frontier} - found.keys()
        found |= dict.fromkeys(frontier, hops)
    del found[node]
    return found


def below(edges: Edges, node: int, hops: int) -> set[int]:
    return {other for other, distance in distances_below(edges, node).items() if distance == hops}


def widest_ancestor(size: int, edges: Edges, node: int, reach: int) -> int | None:
    """Of the ends of all paths of ``reach`` edges up, the one with most such paths below it."""

    def ends(start: int, links: Edges) -> list[int]:
        level = [start]
        for _ in range(reach):
            level = [end for at in level for begin, end in sorted(links) if begin == at]
        return level

    down = frozenset((parent, child) for child, parent in edges)
    tops = set(ends(node, edges))
    return min(tops, key=lambda top: (-len(ends(top, down)), top), default=None)


def members(pool: Pool, key: int) -> set[int]:
    return set(pool.node[pool.indptr[key] : pool.indptr[key + 1]].tolist())


def all_nodes(size: int) -> Ints:
    return np.arange(size, dtype=np.int64)


@given(hierarchies(), st.integers(1, 4))
def test_at_distance_is_the_shortest_distance(hierarchy: tuple[int, Edges], hops: int) -> None:
    size, edges = hierarchy
    found = at_distance(graph(size, edges).reversed, all_nodes(size), hops)
    for node in range(size):
        assert set(found.neighbours(node).tolist()) == below(edges, node, hops)


@given(hierarchies(), st.integers(1, 3))
def test_sisters_stand_below_a_parent_and_outside_of_the_own_branch(
    hierarchy: tuple[int, Edges], depth: int
) -> None:
    size, edges = hierarchy
    found = sisters(graph(size, edges), all_nodes(size), depth)
    for node in range(size):
        wanted = {
            other for parent in parents_of(edges, node) for other in below(edges, parent, depth)
        }
        own = {
            other for other, distance in distances_below(edges, node).items() if distance <= depth
        }
        assert set(found.neighbours(node).tolist()) == wanted - own - {node}


@given(hierarchies(), st.integers(1, 2))
def test_level_with_stands_as_far_below_the_widest_ancestor(
    hierarchy: tuple[int, Edges], reach: int
) -> None:
    size, edges = hierarchy
    pool, keys = level_with(
        graph(size, edges), all_nodes(size), reach, np.zeros_like(all_nodes(size))
    )
    for node in range(size):
        top = widest_ancestor(size, edges, node, reach)
        expected = set() if top is None else below(edges, top, reach)
        assert members(pool, keys[node]) == expected


@given(hierarchies(), st.integers(1, 2), st.data())
def test_level_below_hangs_on_siblings_or_cousins_and_names_them(
    hierarchy: tuple[int, Edges], reach: int, data: st.DataObject
) -> None:
    size, edges = hierarchy
    row = st.tuples(st.integers(0, size - 1), st.integers(1, 3))
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    concepts, hops = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    pool, keys = level_below(graph(size, edges), concepts, hops, reach)
    assert pool.group is not None
    for (concept, hop), key in zip(rows, keys.tolist(), strict=True):
        entries = slice(pool.indptr[key], pool.indptr[key + 1])
        found = set(zip(pool.node[entries].tolist(), pool.group[entries].tolist(), strict=True))
        top = widest_ancestor(size, edges, concept, reach)
        branches = set() if top is None else below(edges, top, reach)
        assert found == {
            (node, branch) for branch in branches for node in below(edges, branch, hop)
        }


def test_a_gold_is_level_with_its_siblings_and_itself() -> None:
    """Nodes 1 and 2 are children of 0, 3 and 4 of 1, 5 of 2."""
    parents = Graph.from_edges(6, [1, 2, 3, 4, 5], [0, 0, 1, 1, 2])
    alike = np.zeros(6, dtype=np.int64)
    siblings, key = level_with(parents, np.array([3, 5, 0]), 1, alike)
    assert [members(siblings, k) for k in key.tolist()] == [{3, 4}, {5}, set()]
    cousins, key = level_with(parents, np.array([3, 1]), 2, alike)
    assert [members(cousins, k) for k in key.tolist()] == [{3, 4, 5}, set()]
    apart, key = level_with(parents, np.array([3, 5]), 2, np.array([0, 0, 0, 0, 1, 0]))
    assert [members(apart, k) for k in key.tolist()] == [{3, 5}, {3, 5}]
