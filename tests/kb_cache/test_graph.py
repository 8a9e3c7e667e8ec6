"""Graphs against a naive breadth-first search, cycles included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.graph import Graph
from kbprobe.arrays import KeySet, contains, ragged_ranges

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    size = draw(st.integers(1, 12))
    node = st.integers(0, size - 1)
    return size, draw(st.lists(st.tuples(node, node), max_size=40))


def build(size: int, edges: Edges) -> Graph:
    source = np.array([s for s, _ in edges], dtype=np.int64)
    target = np.array([t for _, t in edges], dtype=np.int64)
    return Graph.from_edges(size, source, target)


def naive_walk(edges: Edges, start: int, max_hops: int | None) -> dict[int, int]:
    """Shortest distance of every node reached, the start left out."""
    distance, frontier, hops = {start: 0}, {start}, 0
    while frontier and (max_hops is None or hops < max_hops):
        hops += 1
        frontier = {t for s, t in edges if s in frontier} - distance.keys()
        distance |= dict.fromkeys(frontier, hops)
    del distance[start]
    return distance


@given(graphs())
def test_rows_hold_each_neighbour_once_and_sorted(case: tuple[int, Edges]) -> None:
    size, edges = case
    graph = build(size, edges)
    assert len(graph) == size
    assert graph.indptr[0] == 0
    assert graph.indptr[-1] == graph.indices.size
    for node in range(size):
        assert graph.neighbours(node).tolist() == sorted({t for s, t in edges if s == node})
    assert graph.degrees.tolist() == [graph.neighbours(i).size for i in range(size)]


@given(graphs())
def test_reversing_twice_gives_the_graph_again(case: tuple[int, Edges]) -> None:
    size, edges = case
    graph = build(size, edges)
    again = graph.reversed.reversed
    assert again.indptr.tolist() == graph.indptr.tolist()
    assert again.indices.tolist() == graph.indices.tolist()
    for node in range(size):
        assert graph.reversed.neighbours(node).tolist() == sorted(
            {s for s, t in edges if t == node}
        )


@given(graphs(), st.data(), st.none() | st.integers(0, 5))
def test_walk_is_the_naive_search(
    case: tuple[int, Edges], data: st.DataObject, max_hops: int | None
) -> None:
    size, edges = case
    sources = data.draw(st.lists(st.integers(0, size - 1), max_size=5))
    walk = build(size, edges).walk(sources, max_hops)
    expected = [
        (position, hops, node)
        for position, start in enumerate(sources)
        for node, hops in naive_walk(edges, start, max_hops).items()
    ]
    ours = zip(walk.source.tolist(), walk.hops.tolist(), walk.node.tolist(), strict=True)
    assert list(ours) == sorted(expected)


@given(graphs(), st.data())
def test_expand_follows_every_edge(case: tuple[int, Edges], data: st.DataObject) -> None:
    size, edges = case
    nodes = data.draw(st.lists(st.integers(0, size - 1), max_size=6))
    position, neighbour = build(size, edges).expand(np.array(nodes, dtype=np.int64))
    expected = [
        (i, t) for i, node in enumerate(nodes) for t in sorted({t for s, t in edges if s == node})
    ]
    assert list(zip(position.tolist(), neighbour.tolist(), strict=True)) == expected


@given(graphs())
def test_depth_is_the_distance_to_the_nearest_root(case: tuple[int, Edges]) -> None:
    size, edges = case
    graph = build(size, edges)
    roots = {i for i in range(size) if not graph.neighbours(i).size}
    for node, depth in enumerate(graph.depths().tolist()):
        reached = {node: 0} | naive_walk(edges, node, None)
        assert depth == min((reached[root] for root in roots & reached.keys()), default=-1)


def test_a_cycle_ends_the_walk() -> None:
    walk = build(3, [(0, 1), (1, 0), (1, 2)]).walk([0])
    assert walk.node.tolist() == [1, 2]
    assert walk.hops.tolist() == [1, 2]


def test_edges_outside_are_refused() -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        build(3, [(0, 3)])
    with pytest.raises(ValueError, match="outside"):
        build(3, [(-1, 0)])
    with pytest.raises(ValueError, match="max_hops"):
        build(3, []).walk([0], -1)


def test_an_empty_graph_is_a_graph() -> None:
    graph = build(0, [])
    assert len(graph) == 0
    assert graph.walk([]).node.size == 0
    assert graph.depths().size == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=20))
def test_ragged_ranges(pairs: list[tuple[int, int]]) -> None:
    starts = np.array([s for s, _ in pairs], dtype=np.int64)
    lengths = np.array([n for _, n in pairs], dtype=np.int64)
    expected = [i for s, n in pairs for i in range(s, s + n)]
    assert ragged_ranges(starts, lengths).tolist() == expected


@given(st.sets(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_contains(held: set[int], asked: list[int]) -> None:
    keys, wanted = (np.array(some, dtype=np.int64) for some in (sorted(held), asked))
    expected = [key in held for key in asked]
    assert contains(keys, wanted).tolist() == expected
    found = KeySet(keys)
    assert found.contains(wanted).tolist() == expected
    place = found.positions(wanted).tolist()
    assert place == [sorted(held).index(key) if key in held else -1 for key in asked]
