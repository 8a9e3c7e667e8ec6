"""Intervals against independent formulas, and against the truth in simulated data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evaluation.results import intervals
from evaluation.results.types import Estimate
from kbprobe.arrays import Bools, Ints


def clustered_rows(
    chance: np.random.Generator, clusters: int, mean: float = 0.6, alike: float = 0.3
) -> tuple[Bools, Ints]:
    """Rows of clusters of 1 to 12: each cluster has its own accuracy (beta-binomial)."""
    sizes = chance.integers(1, 13, clusters)
    weight = (1 - alike) / alike
    own = chance.beta(mean * weight, (1 - mean) * weight, clusters)
    cluster = np.repeat(np.arange(clusters), sizes)
    return chance.random(cluster.size) < own[cluster], cluster


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(counts: tuple[int, int]) -> None:
    right, n = counts
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert intervals.wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.floats(0, 1), st.floats(1, 5_000))
def test_wilson_of_fractional_rows_is_that_of_statsmodels(share: float, n: float) -> None:
    from statsmodels.stats import proportion

    expected = proportion.proportion_confint(share * n, n, method="wilson")
    assert intervals.wilson(share, n) == pytest.approx(expected, abs=1e-15)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=60),
    st.integers(0, 3),
)
def test_every_interval_holds_its_value_and_stays_within_bounds(
    rows: list[tuple[bool, int]], seed: int
) -> None:
    right = np.array([row[0] for row in rows])
    cluster = np.array([row[1] for row in rows])
    other = np.roll(right, 1)
    whole = np.ones(right.size, dtype=np.bool_)
    strict, difference = intervals.strict_accuracy(right, cluster, whole, seed)
    for share in (intervals.accuracy(right, cluster, seed), strict):
        assert 0 <= share.low <= share.value <= share.high <= 1
        assert share.low < share.high
    paired = intervals.paired_difference(right, other, cluster, seed)
    for points in (difference, paired):
        assert -100 <= points.low <= points.value + 1e-9
        assert points.value - 1e-9 <= points.high <= 100
    assert paired.value == pytest.approx(100 * (other.mean() - right.mean()))


def test_independent_rows_have_wilsons_interval() -> None:
    right = np.arange(200) < 130
    estimate = intervals.accuracy(right, np.arange(200), seed=0)
    expected = binomtest(130, 200).proportion_ci(method="wilson")
    assert (estimate.method, estimate.n) == ("wilson", 200)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


def test_resampling_kinds_of_clusters_is_resampling_clusters() -> None:
    """The quantiles and moments of a plain bootstrap, cluster by cluster."""
    chance = np.random.default_rng(3)
    right, cluster = clustered_rows(chance, 80)
    rows = np.bincount(cluster)
    sums = np.bincount(cluster, weights=right).astype(np.int64)
    fast = intervals.resampled_totals(np.stack([rows, sums], axis=1), seed=1)
    drawn = chance.integers(0, 80, (20_000, 80))
    naive = np.stack([rows[drawn].sum(axis=1), sums[drawn].sum(axis=1)], axis=1)
    assert fast.shape == (10_000, 2)
    assert fast.mean(axis=0) == pytest.approx(naive.mean(axis=0), rel=0.01)
    assert np.cov(fast.T) == pytest.approx(np.cov(naive.T), rel=0.06)
    tails = [0.025, 0.25, 0.5, 0.75, 0.975]
    assert np.quantile(fast[:, 1] / fast[:, 0], tails) == pytest.approx(
        np.quantile(naive[:, 1] / naive[:, 0], tails), abs=0.004
    )


def test_resamples_are_drawn_in_blocks_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.stack([np.full(500, 2), np.arange(500)], axis=1)
    whole = intervals.resampled_totals(columns, seed=5, resamples=70)
    monkeypatch.setattr(intervals, "_BLOCK", 500 * 16)
    parts = intervals.resampled_totals(columns, seed=5, resamples=70)
    assert (whole[:, 0] == 1_000).all()
    assert (parts == whole).all()


def test_the_seed_decides_and_the_order_of_rows_does_not() -> None:
    right, cluster = clustered_rows(np.random.default_rng(0), 200)
    order = np.random.default_rng(1).permutation(right.size)
    one = intervals.accuracy(right, cluster, seed=7)
    assert one.method == "cluster bootstrap"
    assert intervals.accuracy(right[order], cluster[order], seed=7) == one
    assert intervals.accuracy(right, 199 - cluster, seed=7) == one
    other = intervals.accuracy(right, cluster, seed=8)
    assert other.value == one.value
    assert other != one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clusters", "mean", "method", "times"),
    [
        (10, 0.6, "wilson, effective n", 400),
        (60, 0.95, "wilson, effective n", 400),
        (120, 0.6, "cluster bootstrap", 120),
    ],
)
def test_intervals_cover_the_truth_where_rows_are_alike(
    clusters: int, mean: float, method: str, times: int
) -> None:
    """About 95 of 100; Wilson's over rows, which takes them for independent, far fewer."""
    chance = np.random.default_rng(11)
    found, naive, quick = [], [], []
    for seed in range(times):
        right, cluster = clustered_rows(chance, clusters, mean)
        estimate = intervals.accuracy(right, cluster, seed)
        low, high = intervals.wilson(float(right.mean()), right.size)
        assert estimate.method == method
        found.append(holds(estimate, mean))
        quick.append(holds(intervals.quick_accuracy(right, cluster), mean))
        naive.append(low <= mean <= high)
        if method == "cluster bootstrap":
            assert estimate.high - estimate.low > high - low
    assert 0.90 <= np.mean(found) <= 0.99
    assert 0.90 <= np.mean(quick) <= 0.99
    assert np.mean(naive) < 0.80


@pytest.mark.slow
def test_paired_and_strict_differences_cover_the_truth() -> None:
    chance = np.random.default_rng(12)

    def draw(clusters: int) -> tuple[Bools, Bools, Ints]:
        cluster = np.repeat(np.arange(clusters), chance.integers(1, 6, clusters))
        own = chance.beta(3, 1, clusters)[cluster]
        better = np.minimum(own + 0.1, 1.0)
        return chance.random(own.size) < own, chance.random(own.size) < better, cluster

    first, second, cluster = draw(300_000)
    true_gain = 100 * (second.mean() - first.mean())
    wrong = np.bincount(cluster, weights=~first)
    true_strict = 100 * ((wrong == 0).mean() - first.mean())
    gains, stricts = [], []
    for seed in range(60):
        first, second, cluster = draw(200)
        gain = intervals.paired_difference(first, second, cluster, seed)
        whole = np.ones(first.size, dtype=np.bool_)
        _, strict = intervals.strict_accuracy(first, cluster, whole, seed)
        assert gain.method == "paired cluster bootstrap"
        assert strict.method == "cluster bootstrap"
        gains.append(holds(gain, true_gain))
        stricts.append(holds(strict, true_strict))
    assert np.mean(gains) >= 0.88
    assert np.mean(stricts) >= 0.88


def test_pairing_narrows_the_interval_of_a_difference() -> None:
    """Two models that nearly always agree: their gap is known better than either accuracy."""
    right, cluster = clustered_rows(np.random.default_rng(5), 300)
    second = right.copy()
    second[::20] ^= True
    gap = intervals.paired_difference(right, second, cluster, seed=0)
    alone = intervals.accuracy(right, cluster, seed=0)
    assert gap.high - gap.low < 0.5 * 100 * (alone.high - alone.low)


def test_a_design_effect_by_hand() -> None:
    """Clusters wholly right or wholly wrong are worth a row each; t cuts that further."""
    rows, right = np.full(40, 5), np.array([5, 0] * 20)
    t_over_z = 2.0226909 / 1.9599640
    assert intervals.effective_rows(rows, right) == pytest.approx(
        40 * (39 / 40) / t_over_z**2, rel=1e-6
    )


def test_all_right_still_leaves_doubt() -> None:
    """Nothing varies, so clusters are taken as the units."""
    right, cluster = np.ones(400, dtype=np.bool_), np.arange(400) // 10
    estimate = intervals.accuracy(right, cluster, seed=0)
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.method == "wilson, effective n"
    assert 0.88 < estimate.low < binomtest(40, 40).proportion_ci(method="wilson").low
    strict, difference = intervals.strict_accuracy(right, cluster, right, seed=0)
    assert (strict.value, strict.n, strict.method) == (1.0, 40, "wilson")
    assert difference.low < difference.value == 0.0 < difference.high


def test_one_cluster_is_worth_one_row() -> None:
    estimate = intervals.accuracy(np.array([True, True, False]), np.zeros(3, dtype=np.int64), 0)
    assert (estimate.low, estimate.high) == intervals.wilson(2 / 3, 1)


def test_the_same_answers_differ_by_nothing() -> None:
    right = np.arange(500) % 3 > 0
    gap = intervals.paired_difference(right, right, np.arange(500), seed=0)
    assert gap.value == 0.0
    # Of 500 clusters none tells the two apart: up to Wilson's upper end of 0 in 500 may.
    reach = 100 * intervals.wilson(0.0, 500)[1]
    assert gap.method == "paired cluster bootstrap"
    assert (gap.low, gap.high) == pytest.approx((-reach, reach))


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [5, 58])
@pytest.mark.parametrize(("up", "down"), [(0.02, 0.02), (0.2, 0.1)])
def test_a_paired_difference_of_few_clusters_covers_the_truth(
    clusters: int, up: float, down: float
) -> None:
    """What both models get right, or both wrong, has no influence on the interval."""
    chance = np.random.default_rng(7)
    hits = []
    for seed in range(40):
        cluster = np.repeat(np.arange(clusters), chance.integers(1, 7, clusters))
        gain = chance.choice([1, -1, 0], p=[up, down, 1 - up - down], size=cluster.size)
        both = chance.random(cluster.size) < 0.5
        first = np.where(gain == 0, both, gain < 0)
        second = np.where(gain == 0, both, gain > 0)
        gap = intervals.paired_difference(first, second, cluster, seed)
        others = np.where(gain == 0, ~both, first), np.where(gain == 0, ~both, second)
        assert gap == intervals.paired_difference(*others, cluster, seed)
        assert gap.method == "paired cluster bootstrap"
        hits.append(holds(gap, 100 * (up - down)))
    assert np.mean(hits) >= 0.85


def mirrored_pairs(
    chance: np.random.Generator, pairs: int, others: float, both_right: float
) -> tuple[Bools, Ints]:
    """Pairs of which one is right; in a share of ``others`` both are right or both wrong."""
    right = np.zeros((pairs, 2), dtype=np.bool_)
    right[:, 0] = True
    other = chance.random(pairs) < others
    right[other] = (chance.random(pairs) < both_right)[other, None]
    return right.ravel(), np.repeat(np.arange(pairs), 2)


@pytest.mark.parametrize("pairs", [40, 100, 300])
@pytest.mark.parametrize("others", [0.0, 0.005, 0.02, 0.05])
def test_clusters_that_are_nearly_all_alike_still_leave_doubt(pairs: int, others: float) -> None:
    """Resamples of them hardly differ: a bootstrap's intervals hold the truth 17 to 95 times."""
    chance, found = np.random.default_rng(pairs), []
    for seed in range(60):
        right, cluster = mirrored_pairs(chance, pairs, others, both_right=1.0)
        estimate = intervals.accuracy(right, cluster, seed)
        assert estimate.low < estimate.value < estimate.high
        assert estimate.high - estimate.low < 0.2
        found.append(holds(estimate, 0.5 + others / 2))
    assert np.mean(found) >= 0.93


def test_their_interval_by_hand() -> None:
    right, cluster = mirrored_pairs(np.random.default_rng(0), 100, 0.0, 1.0)
    estimate = intervals.accuracy(right, cluster, seed=0)
    reach = intervals.wilson(0.0, 100)[1] / 2
    assert estimate.method == "wilson over clusters"
    assert (estimate.low, estimate.high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_ten_other_clusters_are_enough_for_a_bootstrap() -> None:
    right = np.tile([True, False], 100)
    for others, method in ((9, "wilson over clusters"), (10, "cluster bootstrap")):
        right[: 2 * others] = True
        assert intervals.accuracy(right, np.repeat(np.arange(100), 2), 0).method == method


def test_strict_accuracy_leaves_unfinished_clusters_out() -> None:
    right = np.array([True, True, True, False, True])
    cluster = np.array([0, 0, 1, 2, 2])
    complete = np.array([True, True, False, True, True])
    strict, difference = intervals.strict_accuracy(right, cluster, complete, seed=0)
    assert (strict.value, strict.n) == (0.5, 2)
    assert difference.value == pytest.approx(100 * (0.5 - 0.8))
