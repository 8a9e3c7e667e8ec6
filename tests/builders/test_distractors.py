"""Drawing distractors: what may be drawn, how often, and what happens where pools run short."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.draw.balanced import (
    Candidates,
    Draw,
    draw_uniform,
    ranks_within,
    sorted_by,
)
from builders.engine.draw.families import DrawRequest, Family, Perturbation, Pool, Truth, perturb
from builders.engine.options import RANDOM
from kbprobe.arrays import Ints
from kbprobe.rng import RandomGenerator

RNG = RandomGenerator.of(0, "tests")
COUNT = 4

#: For each row: candidate node -> its group.
Choices = list[dict[int, int]]


def choices(least: int = 0) -> st.SearchStrategy[Choices]:
    row = st.dictionaries(st.integers(0, 30), st.integers(0, 6), min_size=least, max_size=12)
    return st.lists(row, min_size=1, max_size=8)


def as_candidates(rows: Choices, grouped: bool) -> Candidates:
    cells = [(row, node, group) for row, held in enumerate(rows) for node, group in held.items()]
    row, node, group = np.array(cells, dtype=np.int64).reshape(-1, 3).T
    return Candidates(row, node, group if grouped else None)


def check_drawn(drawn: Draw, rows: Choices, grouped: bool) -> None:
    """All drawn are candidates of their row, distinct, at most one of a group; gaps stand last."""
    for row, line in zip(drawn.rows.tolist(), drawn.nodes.tolist(), strict=True):
        nodes = [node for node in line if node >= 0]
        assert line[len(nodes) :] == [-1] * (len(line) - len(nodes))
        assert set(nodes) <= rows[row].keys()
        assert len(set(nodes)) == len(nodes)
        if grouped:
            assert len({rows[row][node] for node in nodes}) == len(nodes)


@given(choices(), st.booleans(), st.integers(0, 3))
def test_uniform_draws_are_distinct_and_short_only_where_candidates_are(
    rows: Choices, grouped: bool, seed: int
) -> None:
    lines = np.arange(len(rows), dtype=np.int64)
    drawn = draw_uniform(
        as_candidates(rows, grouped), lines, COUNT, RandomGenerator.of(seed, "draw")
    )
    assert drawn.rows.tolist() == lines.tolist()
    check_drawn(drawn, rows, grouped)
    for line, held in zip(drawn.nodes, rows, strict=True):
        supply = len(set(held.values())) if grouped else len(held)
        assert (line >= 0).sum() == min(supply, COUNT)


def test_uniform_draws_take_every_candidate_alike() -> None:
    rows, pool = 4_000, 10
    row, node = np.divmod(np.arange(rows * pool, dtype=np.int64), pool)
    drawn = draw_uniform(Candidates(row, node), np.arange(rows, dtype=np.int64), COUNT, RNG)
    used = np.bincount(drawn.nodes.ravel(), minlength=pool)
    # Binomial(4000, 0.4): five standard deviations are 155.
    assert np.abs(used - rows * COUNT / pool).max() < 155


@given(st.lists(st.integers(0, 5), max_size=20))
def test_ranks_within_number_each_run(values: list[int]) -> None:
    groups = np.array(sorted(values), dtype=np.int64)
    seen: Counter[int] = Counter()
    expected = []
    for value in groups.tolist():
        expected.append(seen[value])
        seen[value] += 1
    assert ranks_within(groups).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1, width=32)), max_size=20))
def test_sorted_by_is_a_stable_lexical_sort(cells: list[tuple[int, float]]) -> None:
    group = np.array([cell[0] for cell in cells], dtype=np.int64)
    race = np.array([cell[1] for cell in cells], dtype=np.float64)
    assert sorted_by(group, race).tolist() == sorted(range(len(cells)), key=cells.__getitem__)


# Pools


@given(
    st.lists(st.lists(st.integers(0, 60), max_size=40), min_size=1, max_size=4),
    st.integers(1, 12),
    st.data(),
)
def test_candidates_are_members_of_the_pool_each_once(
    pools: list[list[int]], limit: int, data: st.DataObject
) -> None:
    pairs = [(key, node) for key, nodes in enumerate(pools) for node in nodes]
    key, node = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    pool = Pool.from_pairs(len(pools), key, node)
    keys = data.draw(st.lists(st.integers(0, len(pools) - 1), min_size=1, max_size=6))
    found = pool.candidates(np.array(keys, dtype=np.int64), limit, RNG)
    cells = list(zip(found.row.tolist(), found.node.tolist(), strict=True))
    assert len(set(cells)) == len(cells)
    for row, wanted in enumerate(keys):
        got = {n for r, n in cells if r == row}
        members = pools[wanted]
        assert got <= set(members)
        if len(members) <= 2 * limit:
            assert got == set(members)
        else:
            assert 1 <= len(got) <= limit


def test_restricted_pools_keep_what_is_allowed_under_its_key() -> None:
    pool = Pool.from_pairs(2, np.array([1, 0, 1]), np.array([3, 2, 1]))
    some = pool.restricted(np.array([True, True, False, True]))
    assert (some.indptr.tolist(), some.node.tolist()) == ([0, 0, 2], [3, 1])
    found = some.candidates(np.array([-1, 1]), 5, RNG)
    assert list(zip(found.row.tolist(), found.node.tolist(), strict=True)) == [(1, 1), (1, 3)]


# Families


SIZE = 12
KIND = np.array([0] * 8 + [1] * 4, dtype=np.int64)


def truth_of(true: set[tuple[int, int]], alike: set[tuple[int, int]]) -> Truth:
    def keys(pairs: set[tuple[int, int]]) -> Ints:
        return np.array(sorted(a * SIZE + b for a, b in pairs), dtype=np.int64)

    return Truth(SIZE, keys(true), keys(alike))


PAIRS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=12)


@given(PAIRS, PAIRS, st.tuples(*[st.integers(0, SIZE - 1)] * 3))
def test_false_is_what_is_neither_true_nor_alike(
    true: frozenset[tuple[int, int]],
    alike: frozenset[tuple[int, int]],
    cell: tuple[int, int, int],
) -> None:
    concept, gold, node = cell
    expected = (
        node not in (concept, gold)
        and (concept, node) not in true
        and (gold, node) not in alike
        and (concept, node) not in alike
    )
    truth = truth_of(set(true), set(alike))
    found = truth.is_false(*(np.array([value]) for value in (concept, gold, node)))
    assert found.tolist() == [expected]


def drawn_with(family: Family, max_fill: int, truth: Truth, rows: int = 40) -> Perturbation:
    """Ask ``rows`` questions, about nodes 0 .. 7 in turn; the gold is the next node."""
    concept = np.arange(rows, dtype=np.int64) % 8
    gold = (concept + 1) % 8
    parts = perturb(
        DrawRequest(concept, gold, KIND[gold]),
        [family._replace(key=concept)],
        truth,
        KIND,
        distractors=3,
        max_fill=max_fill,
        repeats=1,
        rng=RNG,
    )
    return next(iter(parts))


def test_fills_are_false_distinct_of_the_golds_kind_and_marked() -> None:
    """Every question's own family offers two nodes, of which one stands for true."""
    truth = truth_of({(concept, (concept + 2) % 8) for concept in range(8)}, set())
    keys = np.repeat(np.arange(8, dtype=np.int64), 2)
    nodes = (keys + np.tile([2, 3], 8)) % 8
    family = Family("near", 1, keys, pool=Pool.from_pairs(8, keys, nodes))
    drawn = drawn_with(family, 2, truth)
    assert drawn.rows.size == 40
    assert (drawn.filled == [False, True, True]).all()
    concept = (drawn.rows % 8)[:, None]
    assert (drawn.nodes[:, :1] == (concept + 3) % 8).all()
    assert not np.isin((drawn.nodes - concept) % 8, [0, 1, 2]).any()
    assert (KIND[drawn.nodes] == 0).all()
    assert all(len(set(line)) == 3 for line in drawn.nodes.tolist())
    # With fewer fills allowed than the family lacks, there is nothing to ask.
    assert drawn_with(family, 1, truth).rows.size == 0


def test_random_distractors_are_of_the_golds_kind() -> None:
    family = Family(RANDOM, 0, np.empty(0, dtype=np.int64))
    drawn = drawn_with(family, 0, truth_of(set(), set()))
    assert drawn.rows.size == 40
    assert not drawn.filled.any()
    assert (KIND[drawn.nodes] == 0).all()


def test_without_a_pool_the_candidates_are_the_golds_of_the_key() -> None:
    """Six questions of one key, of which two have one gold; another has none to share."""
    gold = np.array([0, 1, 2, 3, 3, 4, 5], dtype=np.int64)
    key = np.array([7, 7, 7, 7, 7, 7, -1], dtype=np.int64)
    concept = np.full(7, 11, dtype=np.int64)
    [drawn] = perturb(
        DrawRequest(concept, gold, KIND[gold]),
        [Family("near", 1, key)],
        truth_of(set(), set()),
        KIND,
        distractors=4,
        max_fill=0,
        repeats=1,
        rng=RNG,
    )
    assert drawn.rows.tolist() == [0, 1, 2, 3, 4, 5]
    for row, nodes in zip(drawn.rows.tolist(), drawn.nodes.tolist(), strict=True):
        assert set(nodes) == {0, 1, 2, 3, 4} - {int(gold[row])}
