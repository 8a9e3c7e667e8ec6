"""Cutting a split to size, and what identifies it."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evaluation.items.types import Item, ProbeSplit, fingerprint, sample_clusters, sample_rows


def split_of(clusters: list[int]) -> ProbeSplit:
    items = tuple(Item(str(n), "mc_qa", f"q{n}", ("a", "b"), 0) for n in range(len(clusters)))
    about = pa.table({"cluster": [f"c{cluster}" for cluster in clusters]})
    return ProbeSplit("p", "here", "test", items, about, True, fingerprint(items))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 45), st.integers(0, 3))
def test_whole_clusters_in_the_order_of_the_source(clusters, limit, seed):
    whole = split_of(clusters)
    cut = sample_clusters(whole, limit, seed)
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
    assert sample_clusters(whole, limit, seed).fingerprint == cut.fingerprint


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 45), st.integers(0, 3))
def test_single_rows_are_exactly_as_many_in_the_order_of_the_source(clusters, limit, seed):
    whole = split_of(clusters)
    cut = sample_rows(whole, limit, seed)
    kept = [int(item.id) for item in cut.items]
    assert kept == sorted(set(kept))
    assert len(kept) == min(limit, len(clusters))
    assert cut.fingerprint == sample_rows(whole, limit, seed).fingerprint
    if limit < len(clusters):
        # Parts of clusters have no strict accuracy.
        assert not cut.clustered
        assert cut.drawn_from == (len(clusters), len(set(clusters)))
    else:
        assert cut is whole


def test_single_rows_reach_more_clusters_than_whole_ones():
    whole = split_of([row // 20 for row in range(2_000)])
    for seed in range(5):
        by_clusters, by_rows = (take(whole, 100, seed) for take in (sample_clusters, sample_rows))
        assert by_clusters.clusters == 5
        assert by_rows.clusters > 50
        assert by_clusters.drawn_from == by_rows.drawn_from == (2_000, 100)


def test_large_clusters_are_not_passed_over():
    clusters = [cluster for cluster in range(40) for _ in range(1 if cluster < 20 else 30)]
    large = sum(
        int(name[1:]) >= 20
        for seed in range(50)
        for name in set(sample_clusters(split_of(clusters), 120, seed).about["cluster"].to_pylist())
    )
    small = sum(
        int(name[1:]) < 20
        for seed in range(50)
        for name in set(sample_clusters(split_of(clusters), 120, seed).about["cluster"].to_pylist())
    )
    assert large > 0.6 * small


@given(st.text(), st.text())
def test_the_fingerprint_hangs_on_every_part(one, two):
    first = fingerprint([Item("i", "mc_qa", one, (two, "x"), 0)])
    assert first != fingerprint([Item("i", "mc_qa", one + "!", (two, "x"), 0)])
    assert first != fingerprint([Item("i", "mc_qa", one, (two, "x"), 1)])
    assert first != fingerprint([Item("i", "mc_qa", one, (two, "y"), 0)])
