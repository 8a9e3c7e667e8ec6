"""Chance that depends on what is drawn alone, and splits that never divide a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbprobe
from benchmarks.choice_rules import accuracies
from builders.engine.pipeline import build
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.engine.splits import assign_splits, connected_components
from evaluation.options import RunOptions
from evaluation.results.words import limit_remark
from evaluation.runs.reading import SplitReader
from kbprobe.arrays import shuffled_within
from kbprobe.audit.rows import first_units
from kbprobe.format.items import plain
from kbprobe.rng import RandomGenerator

Built = Callable[[str, str], Path]
PROBES = ["wordnet_definitions", "wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy"]


def test_bits_are_the_same_everywhere_and_always() -> None:
    """Datasets are only as reproducible as these numbers: a change here breaks all manifests."""
    rng = RandomGenerator.of(7, "wordnet_hypernymy")
    assert rng.key == 4048876967638603367
    assert rng.bits([0, 1], 5).tolist() == [6057938201996612175, 8821386361788327393]
    assert rng.child("splits", 3).key == 2985118959587420792


@given(st.permutations(range(20)))
def test_a_draw_does_not_depend_on_its_place(order: list[int]) -> None:
    rng = RandomGenerator.of(0, "x")
    ordered = dict(enumerate(rng.uniform(np.arange(20)).tolist()))
    assert rng.uniform(np.array(order)).tolist() == [ordered[key] for key in order]


def test_seeds_purposes_and_keys_give_other_numbers() -> None:
    generators = [
        RandomGenerator.of(0, "a"),
        RandomGenerator.of(1, "a"),
        RandomGenerator.of(0, "b"),
        RandomGenerator.of(0, "a", "b"),
    ]
    generators += [RandomGenerator.of(0, "a").child("b"), RandomGenerator.of(0, "a").child("b", 1)]
    drawn = {rng.bits(np.arange(3), 1).tobytes() for rng in generators}
    drawn.add(generators[0].bits(np.arange(3), 2).tobytes())
    assert len(drawn) == 7


@given(st.integers(1, 1000), st.integers(0, 2**40))
def test_draws_below_a_bound_stay_below_it(bound: int, key: int) -> None:
    rng = RandomGenerator.of(3, "below")
    assert 0 <= int(rng.below(bound, key)[0]) < bound
    assert 0 < float(rng.uniform(key)[0]) < 1


def test_draws_below_a_bound_are_even() -> None:
    drawn = RandomGenerator.of(3, "even").below(10, np.arange(100_000))
    # Binomial(100000, 0.1): five standard deviations are 474.
    assert np.abs(np.bincount(drawn, minlength=10) - 10_000).max() < 474


# Splits


def test_a_split_is_a_function_of_the_concept() -> None:
    concept = np.array([5, 9, 5, 2, 9, 5])
    rng = RandomGenerator.of(0, "splits")
    split = assign_splits(concept, (0.3, 0.3, 0.4), rng)
    by_concept = dict(zip(concept.tolist(), split.tolist(), strict=True))
    assert split.tolist() == [by_concept[node] for node in concept.tolist()]
    assert assign_splits(np.array([9]), (0.3, 0.3, 0.4), rng)[0] == by_concept[9]


@pytest.mark.parametrize("shares", [(0.25, 0.25, 0.5), (0.1, 0.2, 0.7), (0, 0.4, 0.6), (1, 0, 0)])
def test_shares_are_honoured(shares: tuple[float, float, float]) -> None:
    split = assign_splits(np.arange(40_000), shares, RandomGenerator.of(0, "splits"))
    found = np.bincount(split, minlength=3) / 40_000
    # Five standard deviations of a share of a half.
    assert np.abs(found - shares).max() < 5 * 0.5 / 200
    assert all(part == 0 for part, share in zip(found, shares, strict=True) if share == 0)


@given(st.lists(st.integers(0, 8), max_size=40), st.integers(0, 45), st.integers(0, 5))
def test_first_units_are_whole_and_as_many_as_fit(
    concepts: list[int], rows: int, seed: int
) -> None:
    concept = np.array(concepts, dtype=np.int64)
    keep = first_units(concept, rows, RandomGenerator.of(seed, "first"))
    kept = set(concept[keep].tolist())
    assert keep.tolist() == [node in kept for node in concepts]
    assert keep.sum() <= rows
    left_out = [concepts.count(node) for node in set(concepts) - kept]
    assert all(size > rows - keep.sum() for size in left_out)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "wordnet_hypernymy" else pytest.param(name, marks=pytest.mark.slow)
        for name in PROBES
    ],
)
def test_splits_of_a_build_share_no_cluster_and_no_choice(built: Built, name: str) -> None:
    clusters: dict[str, set[str]] = {}
    choices: dict[str, set[str]] = {}
    for path in (built(name, "miniature") / "data").glob("*.parquet"):
        split = path.name.split("-")[0]
        table = pq.read_table(path, columns=["cluster", "choice_nodes"])
        clusters[split] = set(table["cluster"].to_pylist())
        choices[split] = {node for row in table["choice_nodes"].to_pylist() for node in row}
    assert {"train", "test"} <= clusters.keys()
    for one, other in combinations(clusters, 2):
        assert not clusters[one] & clusters[other]
        assert not choices[one] & choices[other]


@pytest.mark.slow
def test_a_split_without_share_is_not_written(miniature: str, tmp_path: Path) -> None:
    from builders.engine.pipeline import write

    probe = find_probe("wordnet_hyponymy")
    values = {"wordnet": miniature, "split_shares": (0, 0.4, 0.6), "limit": 300}
    options = probe.options.parse(values, probe.name)
    manifest = write(build(Request(probe, options, audit=False)), tmp_path / "probe")
    assert [file.split for file in manifest["files"]] == ["validation", "test"]
    assert manifest["counts"]["splits"]["train"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("most", ["limit", "train_rows", "validation_rows", "test_rows"])
def test_a_cut_build_holds_whole_groups_of_the_full_one(
    built: Built, miniature: str, most: str
) -> None:
    """So that the choices tell nothing, however few rows are wanted."""
    probe = find_probe("wordnet_hypernymy")
    options = probe.options.parse({"wordnet": miniature, most: 52}, probe.name)
    done = build(Request(probe, options, audit=False))
    split = most.removesuffix("_rows")
    splits = done.splits if most == "limit" else {split: done.splits[split]}
    some = Counter[tuple[str, ...]]()
    for items in splits.values():
        some.update(map(choice_set, plain(items.table())["choice_nodes"].to_pylist()))
    full = pq.read_table(built("wordnet_hypernymy", "miniature") / "data", columns=["choice_nodes"])
    every = Counter(map(choice_set, full["choice_nodes"].to_pylist()))
    assert 0 < some.total() <= 52
    assert some <= every
    assert not any(count % 5 for count in some.values())


@pytest.mark.slow
@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_cut_split_holds_whole_clusters_of_the_full_one(
    built: Built, miniature: str, split: str
) -> None:
    """So that strict cluster accuracy is of whole ones."""
    probe = find_probe("wordnet_hypernymy")
    values = {"wordnet": miniature, f"{split}_rows": 30, "rows_by": "clusters"}
    options = probe.options.parse(values, probe.name)
    done = build(Request(probe, options, audit=False))
    some = Counter(plain(done.splits[split].table())["cluster"].to_pylist())
    full = pq.read_table(built("wordnet_hypernymy", "miniature") / "data")
    every = Counter(full["cluster"].to_pylist())
    assert 0 < some.total() <= 30
    assert all(every[cluster] == count for cluster, count in some.items())


@pytest.mark.slow
def test_rules_over_choices_are_exactly_at_chance_in_whole_groups(
    miniature: str, tmp_path: Path
) -> None:
    def lowest_and_highest(folder: str, **drawn: Any) -> tuple[Fraction, Fraction]:
        found = accuracies(SplitReader().rows(str(tmp_path / folder), RunOptions(**drawn)))
        assert len(found) == 30
        return min(found.values()), max(found.values())

    options = {"wordnet": miniature, "test_rows": 203, "audit": False}
    kbprobe.build("wordnet_hypernymy", output=tmp_path / "groups", **options)
    kbprobe.build("wordnet_hypernymy", output=tmp_path / "clusters", rows_by="clusters", **options)
    chance = Fraction(1, 5)
    assert lowest_and_highest("groups") == (chance, chance)
    assert lowest_and_highest("groups", limit=52) == (chance, chance)
    for parts in (
        lowest_and_highest("groups", limit=52, limit_by="clusters"),
        lowest_and_highest("clusters"),
    ):
        assert parts[0] < chance < parts[1]
    for by, words in (("groups", "whole choice groups"), ("clusters", "whole clusters;")):
        drawn = {"limit": 52, "limit_by": by, "scorer": "random", "output": tmp_path / by / "run"}
        results = kbprobe.evaluate(str(tmp_path / "groups"), "none", **drawn).results
        assert (results.metrics.strict_accuracy is None) == (by == "groups")
        assert words in str(limit_remark(results))


def choice_set(nodes: list[str]) -> tuple[str, ...]:
    return tuple(sorted(nodes))


@given(st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=4), max_size=12))
def test_what_hangs_together_is_found_as_by_spreading_from_each(groups: list[list[int]]) -> None:
    found = connected_components(groups)
    assert found.keys() == {member for group in groups for member in group}
    for member, least in found.items():
        reached = {member}
        for _ in groups:
            for group in groups:
                if reached & set(group):
                    reached |= set(group)
        assert least == min(reached)


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize("values", [3, 100_000])
@pytest.mark.parametrize("lots", [5, 1 << 62])
def test_an_order_by_keys_and_lots_is_that_of_lexsort(size: int, values: int, lots: int) -> None:
    random = np.random.default_rng(0)
    first, second = random.integers(0, values, size), random.integers(0, 3, size)
    lot = random.integers(0, lots, size).astype(np.uint64)
    wanted = np.lexsort((lot, second, first))
    assert shuffled_within(lot, first, second).tolist() == wanted.tolist()
