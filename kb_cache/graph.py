"""Directed graphs over integer node ids, as compressed sparse rows, and walks over them.

A knowledge base's edges become two flat arrays: the neighbours of node ``i`` are
``indices[indptr[i]:indptr[i + 1]]``. All walks are breadth-first from many sources at once, and
keep the *shortest* distance to each node reached, so cycles (WordNet has restrain.v.01 and
inhibit.v.04 as hypernyms of each other) end the walk instead of looping it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Ints, contains, ragged_ranges, sorted_unique


class Walk(NamedTuple):
    """The nodes that a walk reached: three parallel arrays, sorted by (source, hops, node).

    ``source`` is the *position* in the array of sources, not the node id, so that a node given
    twice keeps its two walks apart.
    """

    source: Ints
    node: Ints
    hops: Ints


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed graph in compressed sparse rows; neighbours are sorted and unique."""

    indptr: Ints
    indices: Ints

    @classmethod
    def from_edges(cls, size: int, source: npt.ArrayLike, target: npt.ArrayLike) -> Graph:
        """Build from parallel arrays of edges; duplicates are merged.

        Raises:
            ValueError: an end of an edge lies outside ``0 .. size - 1``.
        """
        src = np.asarray(source, dtype=np.int64)
        dst = np.asarray(target, dtype=np.int64)
        for end in (src, dst):
            if end.size and (end.min() < 0 or end.max() >= size):
                raise ValueError(f"an edge names a node outside 0..{size - 1}")
        keys = sorted_unique(src * size + dst)
        src, dst = keys // max(size, 1), keys % max(size, 1)
        indptr = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(src, minlength=size), out=indptr[1:])
        return cls(indptr, dst)

    def __len__(self) -> int:
        return self.indptr.size - 1

    @cached_property
    def degrees(self) -> Ints:
        """The number of neighbours of every node."""
        return np.diff(self.indptr)

    @cached_property
    def sources(self) -> Ints:
        """The node that each edge leaves, parallel to ``indices``."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.degrees)

    @cached_property
    def keys(self) -> Ints:
        """``source * size + target`` of every edge, ascending."""
        return self.sources * len(self) + self.indices

    @cached_property
    def reversed(self) -> Graph:
        """Return the graph with all edges reversed."""
        return Graph.from_edges(len(self), self.indices, self.sources)

    def neighbours(self, node: int) -> Ints:
        """Return the neighbours of one node, ascending."""
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def expand(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Follow every edge out of ``nodes``.

        Returns ``(position, neighbour)``: parallel arrays, one entry for each edge, where
        ``position`` indexes ``nodes``.
        """
        lengths = self.degrees[nodes]
        position = np.repeat(np.arange(nodes.size, dtype=np.int64), lengths)
        return position, self.indices[ragged_ranges(self.indptr[nodes], lengths)]

    def walk(self, sources: npt.ArrayLike, max_hops: int | None = None) -> Walk:
        """Reach every node within ``max_hops`` (None: no bound) of each source.

        A node is reported once for each source, at its shortest distance; the source itself
        (distance 0) is not reported, not even where a cycle leads back to it.

        Raises:
            ValueError: ``max_hops`` is negative.
        """
        if max_hops is not None and max_hops < 0:
            raise ValueError(f"max_hops must be 0 or more, not {max_hops}")
        start = np.asarray(sources, dtype=np.int64)
        size = len(self)
        frontier = np.arange(start.size, dtype=np.int64) * size + start
        seen = frontier
        found: list[tuple[Ints, int]] = []
        hops = 0
        while frontier.size and (max_hops is None or hops < max_hops):
            hops += 1
            position, node = self.expand(frontier % size)
            keys = sorted_unique(frontier[position] // size * size + node)
            frontier = keys[~contains(seen, keys)]
            # A stable sort merges the two, which are in order, in linear time.
            seen = np.sort(np.concatenate([seen, frontier]), kind="stable")
            found.append((frontier, hops))
        if not found:
            empty = np.empty(0, dtype=np.int64)
            return Walk(empty, empty, empty)
        key = np.concatenate([keys for keys, _ in found])
        hop = np.concatenate([np.full(keys.size, h, dtype=np.int64) for keys, h in found])
        order = np.lexsort((key, hop, key // size))
        return Walk(key[order] // size, key[order] % size, hop[order])

    def depths(self) -> Ints:
        """Return the shortest distance of every node to a node without neighbours.

        On a hypernym graph this is the depth below the nearest root, as NLTK's ``min_depth``.
        Nodes that reach no root (they only lead to a cycle) get -1.
        """
        depth = np.full(len(self), -1, dtype=np.int64)
        frontier = np.flatnonzero(self.degrees == 0)
        level = 0
        while frontier.size:
            depth[frontier] = level
            _, node = self.reversed.expand(frontier)
            frontier = sorted_unique(node[depth[node] < 0])
            level += 1
        return depth
