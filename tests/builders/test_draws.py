"""The strategies of builders/engine/draw: what each guarantees, on random instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.engine.draw.balanced import Matching, select_equally, select_matching
from kbprobe.arrays import Ints
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
