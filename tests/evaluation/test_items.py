"""Cutting a split to size, and what identifies it."""

import dataclasses
import hashlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbprobe
from evaluation.items import sampling
from evaluation.items.sampling import draw_clusters, sample
from evaluation.items.sources import find_split
from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.options import RunOptions
from evaluation.runs.reading import SplitReader


def drawn_one_by_one(clusters: list[int], limit: int, seed: int) -> tuple[list[int], bool]:
    """Draw clusters as the docstring says, without any shortcut."""
    rows_of: dict[str, list[int]] = {}
    for row, cluster in enumerate(clusters):
        rows_of.setdefault(f"c{cluster}", []).append(row)
    order = sorted(rows_of, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
    kept: list[int] = []
    for name in order:
        if len(kept) + len(rows_of[name]) > limit:
            break
        kept += rows_of[name]
    return (sorted(kept), True) if kept else (rows_of[order[0]][:limit], False)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 39), st.integers(0, 3))
def test_draws_equal_those_made_one_by_one(clusters, limit, seed):
    names = [f"c{cluster}" for cluster in clusters]
    drawn = draw_clusters(pa.array(names), limit, seed)
    assert (drawn.rows, drawn.whole) == drawn_one_by_one(clusters, limit, seed)
    assert drawn.clusters == len(set(clusters))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "age_comparison"
    kbprobe.build("age_comparison", output=folder, limit=900)
    return str(folder)


@pytest.mark.parametrize("options", [
    {}, {"seed": 1}, {"limit_by": "rows"}, {"limit": 1}, {"split": "train"},
    {"config": "no_language"}, {"limit": 10_000}, {"split": "all"},
])  # fmt: skip
def test_a_limit_reads_the_rows_that_a_whole_split_is_cut_to(built, options):
    given = RunOptions(**{"limit": 20, **options})
    whole = SplitReader()
    whole.rows(built, given.model_copy(update={"limit": None}))
    one, other = whole.rows(built, given), SplitReader().rows(built, given)
    tables = [split.about.combine_chunks() for split in (one, other)]
    assert tables[0].equals(tables[1])
    assert one.arguments.equals(other.arguments)
    alone = [dataclasses.replace(split, about=None, arguments=None) for split in (one, other)]
    assert alone[0] == alone[1]


def test_only_rows_that_are_drawn_are_read(built, monkeypatch):
    read = []
    monkeypatch.setattr(sampling, "in_schema", lambda table: read.append(len(table)))
    monkeypatch.setattr(sampling, "_AT_ONCE", 7)
    found = find_split(built)
    assert sampling.open_sample(found, 20, "rows", 0) is None
    assert read == [20]


def split_of(clusters: list[int]) -> ProbeSplit:
    items = ItemColumns.of(
        [Item(str(n), "mc_qa", f"q{n}", ("a", "b"), 0) for n in range(len(clusters))]
    )
    about = pa.table({"cluster": [f"c{cluster}" for cluster in clusters]})
    return ProbeSplit("p", "here", "test", items, about, True, fingerprint(items))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 45), st.integers(0, 3))
def test_whole_clusters_in_the_order_of_the_source(clusters, limit, seed):
    whole = split_of(clusters)
    cut = sample(whole, limit, "clusters", seed)
    assert 0 < len(cut.items) <= max(limit, 1)
    kept = [int(item.id) for item in cut.items]
    assert kept == sorted(kept)
    names = cut.about["cluster"].to_pylist()
    if cut.clustered:
        assert all(
            names.count(f"c{c}") == clusters.count(c) for c in {clusters[row] for row in kept}
        )
    else:
        assert len(set(names)) == 1, "one cluster, too large for the limit"
    assert cut.fingerprint == fingerprint(cut.items)
    assert sample(whole, limit, "clusters", seed).fingerprint == cut.fingerprint


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 45), st.integers(0, 3))
def test_single_rows_are_exactly_as_many_in_the_order_of_the_source(clusters, limit, seed):
    whole = split_of(clusters)
    cut = sample(whole, limit, "rows", seed)
    kept = [int(item.id) for item in cut.items]
    assert kept == sorted(set(kept))
    assert len(kept) == min(limit, len(clusters))
    assert cut.fingerprint == sample(whole, limit, "rows", seed).fingerprint
    if limit < len(clusters):
        # Parts of clusters have no strict accuracy.
        assert not cut.clustered
        assert cut.drawn_from == (len(clusters), len(set(clusters)))
    else:
        assert cut is whole


def test_single_rows_reach_more_clusters_than_whole_ones():
    whole = split_of([row // 20 for row in range(2_000)])
    for seed in range(5):
        by_clusters, by_rows = (sample(whole, 100, by, seed) for by in ("clusters", "rows"))
        assert by_clusters.clusters == 5
        assert by_rows.clusters > 50
        assert by_clusters.drawn_from == by_rows.drawn_from == (2_000, 100)


@pytest.mark.slow
def test_large_clusters_are_not_passed_over():
    clusters = [cluster for cluster in range(40) for _ in range(1 if cluster < 20 else 30)]
    large = sum(
        int(name[1:]) >= 20
        for seed in range(50)
        for name in set(
            sample(split_of(clusters), 120, "clusters", seed).about["cluster"].to_pylist()
        )
    )
    small = sum(
        int(name[1:]) < 20
        for seed in range(50)
        for name in set(
            sample(split_of(clusters), 120, "clusters", seed).about["cluster"].to_pylist()
        )
    )
    assert large > 0.6 * small


@given(st.text(), st.text())
def test_the_fingerprint_hangs_on_every_part(one, two):
    first = fingerprint([Item("i", "mc_qa", one, (two, "x"), 0)])
    assert first != fingerprint([Item("i", "mc_qa", one + "!", (two, "x"), 0)])
    assert first != fingerprint([Item("i", "mc_qa", one, (two, "x"), 1)])
    assert first != fingerprint([Item("i", "mc_qa", one, (two, "y"), 0)])
