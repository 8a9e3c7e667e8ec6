"""Distractor families against references written for clarity, on small graphs and on WordNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.rows import Asking
from builders.wordnet.families import at_distance, sisters, wordnet_families
from builders.wordnet.neighbourhoods import ancestors, main_parents
from builders.wordnet.options import DefinitionsOptions, HyponymyOptions
from builders.wordnet.synsets import lexicographer_files
from kb_cache.graph import Graph
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
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


@dataclass(frozen=True)
class Taxonomy:
    """Of a WordNet, what main parents are read from."""

    isa: Graph

    def __len__(self) -> int:
        return len(self.isa)

    @property
    def pos_codes(self) -> Ints:
        return np.zeros(len(self), dtype=np.int64)

    def edges(self, name: str) -> tuple[Ints, Ints]:
        assert name == "similar_to"
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


@given(hierarchies())
def test_the_main_parent_has_most_children_and_of_these_the_least_number(
    hierarchy: tuple[int, Edges],
) -> None:
    size, edges = hierarchy
    main = main_parents(cast(WordNet, Taxonomy(graph(size, edges))))
    for node in range(size):
        width = {top: len([1 for _, up in edges if up == top]) for top in parents_of(edges, node)}
        assert main[node] == min(width, key=lambda top: (-width[top], top), default=-1)


@given(st.lists(st.integers(-1, 8), min_size=9, max_size=9), st.integers(0, 4))
def test_ancestors_follow_the_main_parents(main: list[int], reach: int) -> None:
    found = ancestors(np.array(main, dtype=np.int64), all_nodes(9), reach)
    for node in range(9):
        top = node
        for _ in range(reach):
            top = main[top] if top >= 0 else -1
        assert found[node] == top


LEVELS = {"sibling": 1, "cousin": 2, "second_cousin": 3}


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


@pytest.fixture(scope="module")
def asked(wordnet: WordNet) -> Asking:
    """Return two hundred golds, and a concept two or three edges from each of them."""
    gold = np.random.default_rng(0).choice(np.flatnonzero(wordnet.pos_codes == 1), 200)
    concept = np.where(gold % 2, *(ancestors(main_parents(wordnet), gold, n) for n in (2, 3)))
    known = concept >= 0
    gold, concept = gold[known].astype(np.int64), concept[known]
    line = np.arange(gold.size, dtype=np.int64)
    return Asking(line, line, concept, gold, np.where(gold % 2, 2, 3))


def test_golds_of_a_level_share_an_ancestor_and_a_lexicographer_file(
    wordnet: WordNet, asked: Asking
) -> None:
    options = DefinitionsOptions.parse({"families": tuple(LEVELS)}, "")
    found = {family.name: family for family in wordnet_families(wordnet, options, asked)}
    assert {name: family.distance for name, family in found.items()} == LEVELS
    file = lexicographer_files(wordnet)[asked.gold]
    for name, reach in LEVELS.items():
        top, key = ancestors(main_parents(wordnet), asked.gold, reach), found[name].key
        assert ((key < 0) == (top < 0)).all()
        known = (top >= 0)[:, None] & (top >= 0)
        same = (top[:, None] == top) & (file[:, None] == file)
        assert ((key[:, None] == key)[known] == same[known]).all()
        assert found[name].unit is None


def test_branch_families_key_questions_by_the_concepts_ancestor_and_hops(
    wordnet: WordNet, asked: Asking
) -> None:
    options = HyponymyOptions.parse({"families": ("sibling_branch", "cousin_branch")}, "")
    for family in wordnet_families(wordnet, options, asked):
        top = ancestors(main_parents(wordnet), asked.concept, family.distance)
        assert LEVELS[family.name.removesuffix("_branch")] == family.distance
        together = family.key[:, None] == family.key
        known = (top >= 0)[:, None] & (top >= 0)
        same = (top[:, None] == top) & (asked.hops[:, None] == asked.hops)
        assert (together[known] == same[known]).all()
        assert ((family.key < 0) == (top < 0)).all()
        assert family.unit is asked.concept


def test_senses_of_a_word_are_kin(wordnet: WordNet, asked: Asking) -> None:
    options = DefinitionsOptions.parse({"families": ("same_word", "random")}, "")
    same, random = wordnet_families(wordnet, options, asked, word=asked.gold % 7)
    assert (same.name, random.name) == ("same_word", "random")
    assert same.kin is not None
    assert (same.kin == asked.gold % 7).all()
    assert random.kin is None
    assert not same.key.any()
    assert not random.key.any()
