"""Choice groups in pools: what the draw guarantees, on random questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.engine.draw.families import Family, GroupRules
from builders.engine.draw.pools import _group_counts, draw_in_groups
from builders.engine.options import RANDOM
from kbprobe.arrays import Bools, Ints
from kbprobe.rng import RandomGenerator

RNG = RandomGenerator.of(0, "tests")
SIZE = 3


@dataclass(frozen=True)
class Problem:
    """Questions to be put in groups: parallel lists, and pairs that may not stand together."""

    gold: tuple[int, ...]
    cell: tuple[int, ...]
    keys: tuple[tuple[str, tuple[int, ...]], ...]
    unit: tuple[int, ...] | None = None
    kin: tuple[int, ...] | None = None
    identity: tuple[int, ...] | None = None
    clashes: int = 5
    uses: int = 2
    once: bool = False
    random_share: float = 1.0
    size: int = SIZE

    @property
    def identities(self) -> Ints:
        return ints(self.identity or range(len(self.gold)))

    def wrong(self, one: Ints, other: Ints) -> Bools:
        """Rule out equal golds, and a fixed part of all pairs of an identity and a gold."""
        gold, identity = ints(self.gold), self.identities
        clash = (identity[one] * 31 + gold[other] * 17) % self.clashes == 0
        return np.asarray((gold[one] != gold[other]) & ~clash)

    def families(self) -> list[Family]:
        return [
            Family(
                name,
                0,
                ints(key),
                unit=None if self.unit is None or name == RANDOM else ints(self.unit),
                kin=ints(self.kin) if self.kin is not None and name == "kin" else None,
            )
            for name, key in self.keys
        ]

    def draw(self, seed: int = 0) -> dict[str, Ints]:
        drawn = draw_in_groups(
            self.families(),
            ints(self.gold),
            ints(self.gold),
            ints(self.cell),
            self.identities,
            GroupRules(self.size, self.uses, self.wrong),
            once=self.once,
            random_share=self.random_share,
            rng=RandomGenerator.of(seed, "tests"),
        )
        return {family.name: groups for family, groups in drawn}

    def shuffled(self, order: list[int]) -> Problem:
        def some(values: tuple[int, ...] | None) -> tuple[int, ...] | None:
            return None if values is None else tuple(values[at] for at in order)

        return replace(
            self,
            gold=some(self.gold),
            cell=some(self.cell),
            keys=tuple((name, some(key)) for name, key in self.keys),
            unit=some(self.unit),
            kin=some(self.kin),
            identity=tuple(self.identities[order].tolist()),
        )


def ints(values: object) -> Ints:
    return np.array(list(values), dtype=np.int64)  # type: ignore[call-overload]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    lines = draw(st.integers(1, 30))

    def column(least: int, most: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(least, most), min_size=lines, max_size=lines)))

    keys = [("near", column(-1, 3)), ("far", column(-1, 1)), (RANDOM, (0,) * lines)]
    kin = None
    if draw(st.booleans()):
        keys.insert(0, ("kin", (0,) * lines))
        kin = column(0, 9)
    return Problem(
        gold=column(0, 12),
        cell=column(0, 2),
        keys=tuple(keys),
        unit=draw(st.none() | st.just(column(0, 12))),
        kin=kin,
        clashes=draw(st.sampled_from([2, 3, 7, 1000])),
        uses=draw(st.integers(1, 3)),
        once=draw(st.booleans()),
        random_share=draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
        size=draw(st.integers(2, 4)),
    )


@given(problems(), st.integers(0, 3))
def test_what_every_group_guarantees(problem: Problem, seed: int) -> None:
    asked: list[tuple[int, frozenset[int]]] = []
    uses: Counter[tuple[str, int]] = Counter()
    for name, groups in problem.draw(seed).items():
        family = next(one for one in problem.families() if one.name == name)
        unit = ints(problem.gold) if family.unit is None else family.unit
        assert groups.shape[1] == problem.size
        for group in groups.tolist():
            golds = [problem.gold[at] for at in group]
            # Each choice is gold once.
            assert len(set(golds)) == problem.size
            assert len({int(unit[at]) for at in group}) == problem.size
            # All share a pool and a cell.
            assert len({(problem.cell[at], int(family.key[at])) for at in group}) == 1
            assert family.key[group[0]] >= 0
            one, other = np.nonzero(~np.eye(problem.size, dtype=np.bool_))
            assert problem.wrong(ints(group)[one], ints(group)[other]).all()
            asked += [(at, frozenset(golds)) for at in group]
            uses.update((name, at) for at in group)
            if family.kin is not None:
                assert max(Counter(family.kin[group].tolist()).values()) > 1
        # Who is shown again completes the group of a question that is shown for the first time.
        met: set[int] = set()
        for group in groups.tolist():
            assert not set(group) <= met
            met |= set(group)
    assert len(set(asked)) == len(asked)
    assert max(uses.values(), default=0) <= (1 if problem.once else problem.uses)
    if problem.once:
        assert max(Counter(at for at, _ in asked).values(), default=0) <= 1


@pytest.mark.slow
@settings(max_examples=40)
@given(problems(), st.integers(0, 3))
def test_random_rows_are_at_most_their_share_of_each_cell(problem: Problem, seed: int) -> None:
    drawn = problem.draw(seed)
    cell = ints(problem.cell)
    counts = {
        name: np.bincount(cell[groups.ravel()], minlength=3) for name, groups in drawn.items()
    }
    if "kin" in drawn:
        kin = ints(problem.kin or ())[drawn["kin"]]
        alone = (kin[:, :, None] == kin[:, None, :]).sum(axis=2) == 1
        fills = np.bincount(cell[drawn["kin"][alone]], minlength=3)
    else:
        fills = np.zeros(3, dtype=np.int64)
    every = np.sum(list(counts.values()), axis=0)
    random = counts[RANDOM]
    if (every - random - fills).sum() == 0:
        return  # Nothing but random rows: they are all there is.
    # Fills of kin groups cannot be helped: they count, but leave no room where they are too many.
    assert (
        random[random > 0] + fills[random > 0] <= problem.random_share * every[random > 0] + 1e-6
    ).all()


def test_questions_shown_again_do_not_exceed_the_share_of_random_rows() -> None:
    """Twenty random questions make six groups of three; two more groups would be too many."""
    keys = (("near", tuple([0] * 21 + [-1] * 39)), (RANDOM, (0,) * 60))
    problem = Problem(tuple(range(60)), (0,) * 60, keys, clashes=10_000, random_share=0.49)
    drawn = problem.draw()
    assert (drawn["near"].size, drawn[RANDOM].size) == (21, 18)


@pytest.mark.slow
@settings(max_examples=30)
@given(problems(), st.data())
def test_the_order_of_questions_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.gold))))
    drawn, mixed = problem.draw(), problem.shuffled(order).draw()
    for name, groups in drawn.items():
        back = ints(order)[mixed[name]]
        assert as_sets(groups) == as_sets(back)


def as_sets(groups: Ints) -> Counter[frozenset[int]]:
    return Counter(frozenset(group) for group in groups.tolist())


def test_another_seed_makes_other_groups() -> None:
    problem = Problem(tuple(range(60)), (0,) * 60, ((RANDOM, (0,) * 60),), clashes=10_000)
    assert as_sets(problem.draw(0)[RANDOM]) != as_sets(problem.draw(1)[RANDOM])


@pytest.mark.parametrize("lines", [30, 32])
def test_all_are_placed_where_nothing_is_in_the_way(lines: int) -> None:
    """Of 32 questions two are left over by groups of five; others are shown again for them."""
    problem = Problem(
        tuple(range(lines)), (0,) * lines, (("near", (0,) * lines),), clashes=10_000, size=5
    )
    groups = problem.draw()["near"]
    uses = Counter(groups.ravel().tolist())
    assert uses.keys() == set(range(lines))
    left_over = lines % 5
    assert lines <= sum(uses.values()) <= lines + 4 * left_over
    assert replace(problem, uses=1).draw()["near"].shape == (lines // 5, 5)


def test_kin_stay_together_and_the_rest_is_filled_up() -> None:
    """Ten words of two senses and ten of three, besides forty of one."""
    words = [0, 0, 1, 1, 1]
    kin = tuple(5 * i + word for i in range(10) for word in words)
    kin = (*kin, *range(100, 140))
    lines = len(kin)
    problem = Problem(
        tuple(range(lines)),
        (0,) * lines,
        (("kin", (0,) * lines), (RANDOM, (0,) * lines)),
        kin=kin,
        clashes=10_000,
        size=5,
    )
    groups = problem.draw()["kin"]
    whole = {word: {at for at in range(50) if kin[at] == word} for word in set(kin[:50])}
    placed = Counter(
        kin[at]
        for group in groups.tolist()
        for at in group
        if whole.get(kin[at], {-1}) <= set(group)
    )
    assert all(placed[word] >= len(members) for word, members in whole.items())


def test_once_leaves_a_question_to_the_first_family_that_places_it() -> None:
    lines = 60
    near = tuple([0] * 30 + [-1] * 30)
    keys = (("near", near), ("far", (0,) * lines), (RANDOM, (0,) * lines))
    problem = Problem(tuple(range(lines)), (0,) * lines, keys, clashes=10_000, uses=1)
    every, once = problem.draw(), replace(problem, once=True).draw()
    assert {name: groups.size for name, groups in every.items()} == {
        "near": 30, "far": 60, RANDOM: 60
    }  # fmt: skip
    assert {name: groups.size for name, groups in once.items()} == {
        "near": 30,
        "far": 30,
        RANDOM: 0,
    }


def test_the_same_choices_are_not_shown_again_by_another_family() -> None:
    """Siblings that have no cousins: the pools of both families are the same."""
    keys = (("near", (0,) * SIZE), ("far", (0,) * SIZE))
    problem = Problem(tuple(range(SIZE)), (0,) * SIZE, keys, clashes=10_000)
    drawn = problem.draw()
    assert [len(drawn[name]) for name in ("near", "far")] == [1, 0]


def most_groups(members: list[int], size: int) -> int:
    """Make as many groups as there can be: each takes one of the units that have most left."""
    left, groups = sorted(members, reverse=True), 0
    while len(left) >= size and left[size - 1] > 0:
        left = sorted([count - (at < size) for at, count in enumerate(left)], reverse=True)
        groups += 1
    return groups


@given(st.lists(st.lists(st.integers(1, 9), max_size=8), max_size=4), st.integers(2, 5))
def test_group_counts_are_those_of_a_greedy_search(pools: list[list[int]], size: int) -> None:
    pools = [members for members in pools if members]
    pool = np.repeat(np.arange(len(pools), dtype=np.int64), [len(members) for members in pools])
    found = _group_counts(pool, ints(count for members in pools for count in members), size)
    assert found.tolist() == [most_groups(members, size) for members in pools]
