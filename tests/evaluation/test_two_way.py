"""Intervals over test clusters and training draws together, against loops and the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.results.intervals import Resampled, TwoWayBootstrap
from kbprobe.arrays import Ints


def some_runs(clusters: int = 60, runs: int = 4, seed: int = 0) -> tuple[Ints, Ints]:
    generator = np.random.default_rng(seed)
    rows = np.repeat(generator.integers(1, 5, (clusters, 1)), runs, axis=1)
    return generator.binomial(rows, 0.6), rows


def test_each_resample_is_what_a_loop_makes_of_the_same_draws() -> None:
    right, rows = some_runs()
    resamples = 30
    made = TwoWayBootstrap(right, rows, seed=5, resamples=resamples)
    draws = {0: 1, 1: 2, 2: 3}
    # The same random numbers, used the slow way: row by row of each resample.
    clusters = np.random.default_rng((5, 60)).integers(0, 60, (resamples, 60))
    taken = np.random.default_rng((5, 3, 1)).integers(0, 3, (resamples, 2))
    expected = []
    for resample in range(resamples):
        total = 0.0
        for draw in taken[resample]:
            run = draws[int(draw)]
            hits = sum(int(right[cluster, run]) for cluster in clusters[resample])
            asked = sum(int(rows[cluster, run]) for cluster in clusters[resample])
            total += hits / asked
        expected.append(total / 2)
    assert made.average(draws).samples == pytest.approx(np.array(expected))
    assert made.average(draws).value == pytest.approx(
        np.mean([right[:, run].sum() / rows[:, run].sum() for run in (1, 2, 3)])
    )


def test_weighted_sums_of_averages_share_their_resamples() -> None:
    made = TwoWayBootstrap(*some_runs(), seed=0, resamples=100)
    one, two = made.average({0: 0, 1: 1}), made.average({0: 2, 1: 3})
    both = made.weighted([(0.25, {0: 0, 1: 1}), (0.75, {0: 2, 1: 3})])
    assert both.value == pytest.approx(0.25 * one.value + 0.75 * two.value)
    assert both.samples == pytest.approx(0.25 * one.samples + 0.75 * two.samples)
    assert one.less(two).samples == pytest.approx(one.samples - two.samples)
    assert one.less(one).estimate(100).value == 0.0


def test_the_same_seed_gives_the_same_interval() -> None:
    estimates = [
        TwoWayBootstrap(*some_runs(), seed=seed).average({0: 0, 1: 1}).estimate()
        for seed in (1, 1, 2)
    ]
    assert estimates[0] == estimates[1] != estimates[2]
    assert estimates[0].method == "two-way bootstrap"


def test_one_draw_is_resampled_over_clusters_alone() -> None:
    right, rows = some_runs(200, 1)
    estimate = TwoWayBootstrap(right, rows, seed=0).average({7: 0}).estimate()
    share = right.sum() / rows.sum()
    deviation = np.sqrt(((right - share * rows) ** 2).sum()) / rows.sum()
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


@pytest.mark.parametrize("right", [0, 1])
def test_where_all_is_right_or_wrong_the_interval_is_not_a_point(right: int) -> None:
    rows = np.full((50, 3), 2)
    made = TwoWayBootstrap(rows * right, rows, seed=0)
    estimate = made.average({0: 0, 1: 1, 2: 2}).estimate()
    assert estimate.value == right
    assert 0.02 < estimate.high - estimate.low < 0.2
    difference = made.average({0: 0}).less(made.average({0: 1})).estimate(100)
    assert difference.low < 0 < difference.high


def test_where_every_pair_is_half_right_neither_number_nor_difference_is_a_point() -> None:
    made = TwoWayBootstrap(np.ones((50, 2), np.int64), np.full((50, 2), 2), seed=0)
    one, other = made.average({0: 0}), made.average({0: 1})
    estimate, difference = one.estimate(), one.less(other).estimate(100)
    assert estimate.low < estimate.value == 0.5 < estimate.high
    assert difference.low < difference.value == 0.0 < difference.high


@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_estimates_are_ordered_and_shares(clusters: int, runs: int, seed: int) -> None:
    made = TwoWayBootstrap(*some_runs(clusters, runs, seed), seed=seed, resamples=50)
    estimate = made.average({run: run for run in range(runs)}).estimate()
    assert 0 <= estimate.low <= estimate.value + 1e-12
    assert estimate.value <= estimate.high + 1e-12 <= 1 + 2e-12


def test_a_cluster_that_a_run_was_not_scored_on_does_not_count_for_it() -> None:
    right, rows = some_runs(40, 2)
    right[:20, 1] = rows[:20, 1] = 0
    made = TwoWayBootstrap(right, rows, seed=0)
    assert made.accuracies[1] == pytest.approx(right[20:, 1].sum() / rows[20:, 1].sum())
    assert np.isfinite(made.average({0: 1}).samples).all()


@pytest.mark.parametrize(("draws", "spread"), [(3, 0.0), (3, 0.05), (6, 0.05)])
def test_the_interval_holds_the_truth(draws: int, spread: float) -> None:
    """Clusters differ in accuracy, and draws of training rows do by ``spread``."""
    generator, held, times = np.random.default_rng(1), 0, 200
    for _ in range(times):
        own = generator.beta(3, 2, (150, 1)) + generator.normal(0, spread, (1, draws))
        rows = np.full((150, draws), 2)
        right = generator.binomial(rows, np.clip(own, 0, 1))
        made = TwoWayBootstrap(right, rows, seed=0, resamples=300)
        estimate = made.average({draw: draw for draw in range(draws)}).estimate()
        held += estimate.low <= 0.6 <= estimate.high
    assert held / times >= 0.88


def test_an_interval_holds_its_number_whatever_resamples_favour() -> None:
    largest = Resampled(0.5, np.linspace(0.55, 0.7, 101), 10)
    assert (largest.estimate().low, largest.estimate().high > 0.69) == (0.5, True)
    basic = largest.basic_estimate(1.0)
    assert (basic.low, basic.high) == (pytest.approx(1 - 0.69625), 0.5)
    assert basic.method == "two-way bootstrap, basic"
    assert Resampled(0.1, np.linspace(0.2, 0.4, 9), 10).basic_estimate(1.0, 100).low == 0.0


def test_the_basic_interval_of_differences_cut_off_holds_none() -> None:
    """Two renderings that are equally hard: what is cut off at 0 is noise alone."""
    generator, held, times = np.random.default_rng(2), 0, 60
    for _ in range(times):
        own = 0.6 + generator.normal(0, 0.08, (150, 1)) + generator.normal(0, 0.02, (1, 12))
        rows = np.full((150, 12), 2)
        made = TwoWayBootstrap(generator.binomial(rows, own), rows, seed=0, resamples=200)
        means = [made.average({i: 3 * k + i for i in range(3)}) for k in range(4)]
        gaps = [(means[0], means[1]), (means[2], means[3])]
        value = sum(max(0.0, one.value - two.value) for one, two in gaps) / 2
        samples = sum(np.maximum(0.0, one.samples - two.samples) for one, two in gaps) / 2
        held += Resampled(value, np.asarray(samples), 300).basic_estimate(1.0).low == 0.0
    assert held / times >= 0.9


def test_bounds_of_another_method_are_not_left() -> None:
    samples = np.full(100, 0.5)
    estimate = Resampled(0.5, samples, 10, (0.4, 0.7)).estimate()
    assert (estimate.low, estimate.high) == (0.4, 0.7)
