"""The strategies of builders/engine/draw: what each guarantees, on random instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.engine.draw.groups import (
    ChoiceGroup,
    Unit,
    draw_left_over,
    pack_groups,
    search_groups,
)
from builders.engine.draw.selection import Matching, select_equally, select_matching
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

RNG = RandomGenerator.of(0, "tests")


def ints(values: Sequence[int] | Sequence[Sequence[int]]) -> Ints:
    return np.array(values, dtype=np.int64)


# Strategy 1: balanced selection


LINES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=60)


@given(LINES, st.floats(0, 1))
def test_every_label_is_as_frequent_in_a_stratum(
    lines: list[tuple[int, int]], share: float
) -> None:
    stratum, label = ints(lines).reshape(-1, 2).T
    tie = RNG.bits(np.arange(len(lines)))
    keep = select_equally(stratum, label, 3, share, tie)
    found = Counter(line for line, kept in zip(lines, keep.tolist(), strict=True) if kept)
    for code in set(stratum.tolist()):
        held = [int(((stratum == code) & (label == one)).sum()) for one in range(3)]
        quota = min(round(sum(held) * (share / 3)), *held)
        assert [found[code, one] for one in range(3)] == [quota] * 3


@given(LINES, st.floats(0, 1))
def test_selecting_equally_is_matching_without_features(
    lines: list[tuple[int, int]], share: float
) -> None:
    """The fast path takes the rows that the local search takes if there is nothing to match."""
    stratum, label = ints(lines).reshape(-1, 2).T
    tie = RNG.bits(np.arange(len(lines)))
    keep = np.flatnonzero(select_equally(stratum, label, 3, share, tie))
    cell = stratum * 3 + label
    rows = Matching(
        cell=cell,
        features=np.empty((len(lines), 0), dtype=np.int64),
        keys=np.empty((len(lines), 0), dtype=np.int64),
        target=np.empty((1, 0), dtype=np.int64),
        weight=np.empty(0, dtype=np.int64),
        owner=np.empty(0, dtype=np.int64),
        tie=tie,
    )
    need = Counter((0, int(one)) for one in cell[keep])
    chosen, parts = select_matching(rows, need, 1)
    assert sorted(chosen) == keep.tolist()
    assert set(parts) <= {0}


@st.composite
def matchings(draw: st.DrawFn) -> tuple[Matching, dict[tuple[int, int], int]]:
    rows, keys, features = draw(st.integers(1, 30)), draw(st.integers(2, 12)), 6
    line = st.tuples(
        st.integers(0, 2),
        st.lists(st.integers(0, features - 1), min_size=3, max_size=3, unique=True),
        st.lists(st.integers(0, keys - 1), min_size=2, max_size=2, unique=True),
    )
    lines = draw(st.lists(line, min_size=rows, max_size=rows))
    target = draw(st.lists(st.integers(0, 8), min_size=2 * features, max_size=2 * features))
    found = Matching(
        cell=ints([cell for cell, _, _ in lines]),
        features=ints([has for _, has, _ in lines]),
        keys=ints([shown for _, _, shown in lines]),
        target=ints(target).reshape(2, features),
        weight=ints([10] * features),
        owner=ints(draw(st.lists(st.integers(-1, 1), min_size=keys, max_size=keys))),
        tie=RNG.bits(np.arange(rows)),
    )
    cells = st.tuples(st.integers(0, 1), st.integers(0, 2))
    return found, draw(st.dictionaries(cells, st.integers(1, 6), max_size=6))


@settings(deadline=None)
@given(matchings(), st.integers(1, 3))
def test_matching_keeps_keys_apart_and_fills_each_cell(
    given_: tuple[Matching, dict[tuple[int, int], int]], most: int
) -> None:
    rows, need = given_
    chosen, parts = select_matching(rows, need, most)
    assert len(set(chosen)) == len(chosen)
    found = Counter(zip(parts, rows.cell[chosen].tolist(), strict=True))
    assert all(found[key] <= need.get(key, 0) for key in found)
    where: dict[int, set[int]] = {}
    uses: Counter[int] = Counter()
    for at, part in zip(chosen, parts, strict=True):
        for key in rows.keys[at].tolist():
            where.setdefault(key, {int(rows.owner[key])} - {-1}).add(part)
            uses[key] += 1
    assert all(len(parts) == 1 for parts in where.values())
    assert max(uses.values(), default=0) <= most


def test_matching_finds_the_rows_that_are_like_the_targets() -> None:
    """Ten rows of either of two looks; the target has the second alone."""
    look = np.repeat(np.arange(2, dtype=np.int64), 10)
    rows = Matching(
        cell=np.zeros(20, dtype=np.int64),
        features=look[:, None],
        keys=np.arange(20, dtype=np.int64)[:, None],
        target=ints([[0, 8]]),
        weight=ints([10, 10]),
        owner=np.full(20, -1, dtype=np.int64),
        tie=RNG.bits(np.arange(20)),
    )
    chosen, _ = select_matching(rows, {(0, 0): 8}, 1)
    assert look[chosen].tolist() == [1] * 8


# Strategy 3: choice groups


class Numbers:
    """Rows whose golds are numbers: alike within a distance, and apart by two."""

    def __init__(self, golds: Sequence[int]) -> None:
        self.values = sorted(set(golds))
        self.gold: Sequence[int] = [self.values.index(value) for value in golds]
        self.row_keys = np.arange(len(golds), dtype=np.int64)
        self.gold_keys = ints(self.values)
        self.levels = 2

    def alike(self, level: int, gold: int) -> Bools:
        found = np.abs(self.gold_keys - self.gold_keys[gold]) <= (6, 99)[level]
        found[gold] = False
        return np.asarray(found)

    def differ(self, one: int, other: int) -> bool:
        return abs(self.values[one] - self.values[other]) >= 2

    def is_false(self, row: int, gold: int) -> bool:
        return (self.values[gold] + row) % 7 != 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(2, 4), st.integers(0, 3))
def test_groups_hold_different_golds_each_false_for_the_others(
    golds: list[int], size: int, seed: int
) -> None:
    rules = Numbers(golds)
    groups = search_groups(rules, size, RandomGenerator.of(seed))
    members = [row for group in groups for row in group.members]
    assert len(set(members)) == len(members)
    assert [group.level for group in groups] == sorted(group.level for group in groups)
    for group in groups:
        check_group(rules, group, size)
    left = set(range(len(golds))) - set(members)
    # What is left over at the last level finds no partner among the rest.
    assert not any(compatible(rules, pair) for pair in combinations(sorted(left), 2) if size == 2)


def check_group(rules: Numbers, group: ChoiceGroup, size: int) -> None:
    assert len(group.members) == size
    for one, other in combinations(group.members, 2):
        assert rules.alike(group.level, rules.gold[one])[rules.gold[other]]
        assert compatible(rules, (one, other))


def compatible(rules: Numbers, pair: tuple[int, int]) -> bool:
    one, other = pair
    return (
        rules.differ(rules.gold[one], rules.gold[other])
        and rules.is_false(one, rules.gold[other])
        and rules.is_false(other, rules.gold[one])
    )


def test_rows_left_over_get_the_golds_least_used() -> None:
    rules = Numbers([1, 3, 5, 9, 12, 30])
    used = ints([9, 0, 3, 1, 0, 0])
    # Nine is false for row 0, three and five as well; twelve and thirty are far off.
    assert draw_left_over(rules, 0, 2, used, RNG) == [(1, 0), (2, 0)]
    *others, last = draw_left_over(rules, 0, 9, used, RNG)[2:]
    assert sorted(others) == [(4, 1), (5, 1)]
    assert last == (3, 1)


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), max_size=30), st.integers(2, 5), st.integers(3, 50))
def test_packed_groups_are_full_and_allowed(lengths: list[int], size: int, modulus: int) -> None:
    ends = np.cumsum([0, *(min(length, size) for length in lengths)]).tolist()
    units: list[Unit] = [tuple(range(*pair)) for pair in pairwise(ends)]

    def fits(rows: Unit, row: int) -> bool:
        return all((row * other) % modulus != 1 for other in rows)

    groups = pack_groups(units, size, fits)
    rows = [row for group in groups for unit in group for row in unit]
    assert len(set(rows)) == len(rows)
    of_unit = {row: unit for unit in units for row in unit}
    for group in groups:
        assert sum(map(len, group)) == size
        assert all(set(part) <= set(of_unit[part[0]]) for part in group)
        for one, other in combinations(group, 2):
            assert all(fits(one, row) for row in other)


@given(st.lists(st.integers(1, 5), max_size=30), st.integers(1, 5))
def test_packing_loses_less_than_a_group_where_everything_fits(
    lengths: list[int], size: int
) -> None:
    ends = np.cumsum([0, *(min(length, size) for length in lengths)]).tolist()
    units: list[Unit] = [tuple(range(*pair)) for pair in pairwise(ends)]
    groups = pack_groups(units, size, lambda rows, row: True)
    assert len(groups) == ends[-1] // size
    whole = [unit for group in groups for unit in group if unit in units]
    # Units are cut only to fill a gap that no other unit fills.
    assert len(whole) >= len(groups)
