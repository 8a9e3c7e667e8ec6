"""Predictions and metrics against loops written for clarity."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.results.breakdown import drop_unscored
from evaluation.results.intervals import wilson
from evaluation.results.metrics import (
    Scores,
    measure,
    of_audit,
    predictions_table,
    tie_tolerance,
)
from evaluation.results.types import METRIC_OF, Metrics, Normalization, predictions_schema
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import Audit

NORMALIZATIONS: tuple[Normalization, ...] = ("sum", "char", "byte", "token")


def make_split(
    choices: Sequence[Sequence[str]],
    answers: Sequence[int],
    clusters: Sequence[str] | None = None,
    **about: Sequence[Any],
) -> ProbeSplit:
    items = ItemColumns.of(
        [
            Item(f"item{row}", "mc_qa", f"question {row}?", tuple(texts), answer)
            for row, (texts, answer) in enumerate(zip(choices, answers, strict=True))
        ]
    )
    nulls = [None] * len(items)
    columns = {
        "cluster": pa.array(clusters or [item.id for item in items], pa.string()),
        "hops": pa.array(about.get("hops", nulls), pa.int32()),
        "distractor_family": pa.array(about.get("distractor_family", nulls), pa.string()),
        "distractor_hops": pa.array(about.get("distractor_hops", nulls), pa.int32()),
        "pos": pa.array(about.get("pos", nulls), pa.string()),
        "template": pa.array(about.get("template", nulls), pa.string()),
        "concept": pa.array(nulls, pa.string()),
    }
    table = pa.table(columns)
    return ProbeSplit(
        "made", "here", "test", items, table, clusters is not None, fingerprint(items)
    )


def make_scores(
    values: Sequence[Sequence[float]],
    tokens: Sequence[Sequence[int]] | None = None,
    set_aside: Mapping[int, str] | None = None,
    name: str = "log-likelihood",
) -> Scores:
    flat = np.array([value for row in values for value in row], dtype=np.float64)
    counts = [count for row in tokens or [[1] * len(row) for row in values] for count in row]
    return Scores(
        scores=flat,
        tokens=np.array(counts, np.int64),
        set_aside=set_aside or {},
        notes={},
        score_name=name,
        sequences=0,
        sequence_tokens=0,
        parameters=0,
    )


def judged(
    split: ProbeSplit,
    scores: Scores,
    normalization: Normalization = "sum",
    tolerance: float = 1e-4,
    seed: int = 0,
) -> tuple[pa.Table, Metrics]:
    predictions = predictions_table(split, scores, normalization, tolerance)
    metrics = measure(
        predictions,
        clustered=split.clustered,
        normalization=normalization,
        by_length=scores.score_name == "log-likelihood",
        seed=seed,
        tie_tolerance=tolerance,
    )
    return predictions, metrics


def right_rows(flags: Sequence[bool], clusters: Sequence[str] | None = None, **about: Any) -> Any:
    """Rows of two choices, the first gold; right where flagged."""
    split = make_split([["yes", "no"]] * len(flags), [0] * len(flags), clusters, **about)
    return split, make_scores([[0.0, -1.0 if flag else 1.0] for flag in flags])


# --- predictions ------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z"]), min_size=1)
CHOICE = st.tuples(
    TEXT,
    st.floats(-500, 5, width=32) | st.sampled_from([-1.0, -2.0]) | st.just(-math.inf),
    st.integers(1, 9),
)
ROWS = st.lists(
    st.tuples(
        st.lists(CHOICE, min_size=2, max_size=6), st.integers(0, 5), st.sampled_from(["", "odd"])
    ),
    min_size=1,
    max_size=12,
)


def best_by_hand(choices: Sequence[tuple[str, float, int]], normalization: str) -> list[float]:
    """The compared scores, as lm-evaluation-harness divides them."""
    values = []
    for text, score, tokens in choices:
        lengths = {"sum": 1, "char": len(text), "byte": len(text.encode()), "token": tokens}
        values.append(score / float(lengths[normalization]))
    return values


@given(ROWS, st.sampled_from(NORMALIZATIONS))
def test_predictions_are_those_of_a_loop(rows: Any, normalization: Normalization) -> None:
    split = make_split(
        [[text for text, _, _ in choices] for choices, _, _ in rows],
        [answer % len(choices) for choices, answer, _ in rows],
    )
    aside = {row: reason for row, (_, _, reason) in enumerate(rows) if reason}
    scores = make_scores(
        [[score for _, score, _ in choices] for choices, _, _ in rows],
        [[tokens for _, _, tokens in choices] for choices, _, _ in rows],
        aside,
    )
    table = predictions_table(split, scores, normalization, 1e-4)
    assert table.schema.equals(predictions_schema())
    for row, found in enumerate(table.to_pylist()):
        choices, answer, reason = rows[row]
        assert found["id"] == f"item{row}"
        assert found["choices"] == [text for text, _, _ in choices]
        assert found["set_aside"] == (reason or None)
        if reason:
            assert found["scores"] == found["tokens"] == []
            assert found["prediction"] is found["correct"] is found["tie"] is None
            continue
        values = best_by_hand(choices, normalization)
        picked = int(np.argmax(values))
        first, second = sorted(values, reverse=True)[:2]
        margin = 0.0 if first == second else first - second
        shares = [1.0 if value == first else math.exp(value - first) for value in values]
        assert found["scores"] == [score for _, score, _ in choices]
        assert found["tokens"] == [tokens for _, _, tokens in choices]
        assert found["prediction"] == picked
        assert found["correct"] == (picked == answer % len(choices))
        assert found["margin"] == pytest.approx(margin, rel=1e-5, abs=1e-30)
        assert found["probability"] == pytest.approx(1 / sum(shares), rel=1e-5)
        assert found["tie"] == (margin <= 1e-4)


def test_length_decides_as_in_the_harness() -> None:
    """One row where sum, characters, bytes and tokens each pick another choice."""
    texts = ["ab", "a" * 12, "é" * 9, "abcdefgh"]
    scores = make_scores([[-4.0, -12.0, -9.9, -10.4]], [[1, 3, 2, 11]])
    expected = {"sum": 0, "char": 1, "byte": 2, "token": 3}
    for normalization in NORMALIZATIONS:
        table = predictions_table(make_split([texts], [0]), scores, normalization, 1e-4)
        assert table["prediction"].to_pylist() == [expected[normalization]]
    _, metrics = judged(make_split([texts], [1]), scores, "char")
    accuracies = {name: estimate.value for name, estimate in metrics.accuracies.items()}
    assert accuracies == {"acc": 0, "acc_norm": 1, "acc_bytes": 0, "acc_tokens": 0}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused_by_name(value: float) -> None:
    split = make_split([["a", "b"], ["a", "b", "c"], ["a", "b"]], [0, 0, 0])
    scores = make_scores([[0, 1], [2, 3, value], [value, 1]])
    with pytest.raises(KbprobeError, match=r"choice 3 of item item1 \(2 items in all\)"):
        predictions_table(split, scores, "sum", 1e-4)
    aside = make_scores([[0, 1], [2, 3, value], [value, 1]], None, {1: "odd", 2: "odd"})
    assert predictions_table(split, aside, "sum", 1e-4)["prediction"].to_pylist() == [1, None, None]


def test_all_choices_ruled_out_is_a_tie() -> None:
    table, metrics = judged(make_split([["a", "b"]], [0]), make_scores([[-math.inf, -math.inf]]))
    row = table.to_pylist()[0]
    assert (row["prediction"], row["margin"], row["probability"], row["tie"]) == (0, 0, 0.5, True)
    assert (metrics.accuracy.value, metrics.ties_wrong) == (1.0, 0.0)


def test_an_empty_choice_cannot_be_divided_by_its_length() -> None:
    split, scores = make_split([["a", ""]], [0]), make_scores([[0, 1]])
    with pytest.raises(UsageError, match="no length"):
        predictions_table(split, scores, "char", 1e-4)
    assert predictions_table(split, scores, "sum", 1e-4)["prediction"].to_pylist() == [1]


# --- ties -------------------------------------------------------------------------------------


def test_tie_tolerance_follows_dtype_and_size() -> None:
    split = make_split([["ab", "abcd"]], [0])
    logits, sums = make_scores([[1.0, 2.0]]), make_scores([[-600.0, -680.0]])
    assert tie_tolerance("float32", split, logits, "sum") == 1e-4
    assert tie_tolerance("float32", split, sums, "sum") == 1e-4
    assert tie_tolerance("bfloat16", split, logits, "sum") == pytest.approx(16 / 256, rel=0.05)
    assert tie_tolerance("bfloat16", split, sums, "sum") == pytest.approx(640 / 256, rel=0.05)
    assert tie_tolerance("float16", split, sums, "sum") == pytest.approx(640 / 2048, rel=0.05)
    assert tie_tolerance("float32", split, sums, "char") == pytest.approx(1e-4 / 3, rel=0.05)
    with pytest.raises(UsageError, match=r"int8.*float32"):
        tie_tolerance("int8", split, sums, "sum")


def test_tie_tolerance_looks_at_scored_items_alone() -> None:
    split = make_split([["a", "b"], ["a", "b"]], [0, 0])
    scores = make_scores([[-math.inf, -20.0], [math.nan, 9e9]], None, {1: "odd"})
    assert tie_tolerance("bfloat16", split, scores, "sum") == pytest.approx(20 / 256, rel=0.05)


def test_ties_are_counted_and_not_moved() -> None:
    split = make_split([["a", "b"]] * 4, [0] * 4)
    scores = make_scores([[1.0, 1.0], [1.0, 1.00005], [1.0, 0.99], [0.0, 3.0]])
    table, metrics = judged(split, scores)
    assert table["tie"].to_pylist() == [True, True, False, False]
    assert (metrics.ties, metrics.accuracy.value, metrics.ties_wrong) == (2, 0.5, 0.25)


# --- metrics ----------------------------------------------------------------------------------


def random_run(seed: int, rows: int = 400) -> tuple[ProbeSplit, Scores]:
    """Rows with two to five choices, some without cell or template, some set aside."""
    chance = np.random.default_rng(seed)
    widths = chance.integers(2, 6, rows)
    choices = [
        [f"choice {'x' * chance.integers(9)}{at}" for at in range(width)] for width in widths
    ]
    clusters = [f"c{chance.integers(rows // 5)}" for _ in range(rows)]
    split = make_split(
        choices,
        [int(chance.integers(width)) for width in widths],
        clusters,
        hops=[[1, 2, None][chance.integers(3)] for _ in range(rows)],
        distractor_family=[["sister", "random", None][chance.integers(3)] for _ in range(rows)],
        distractor_hops=[[0, 1, 4][chance.integers(3)] for _ in range(rows)],
        pos=[["noun", "verb", ""][chance.integers(3)] for _ in range(rows)],
        template=[["t1", "t0", None][chance.integers(3)] for _ in range(rows)],
    )
    values = [list(-20 * chance.random(width)) for width in widths]
    tokens = [list(chance.integers(1, 6, width)) for width in widths]
    aside = {int(row): "two tokens" for row in chance.choice(rows, 12, replace=False)}
    aside[next(iter(aside))] = "too long"
    return split, make_scores(values, tokens, aside)


@pytest.mark.parametrize("seed", [0, 1])
def test_metrics_are_those_of_loops(seed: int) -> None:
    split, scores = random_run(seed)
    table, metrics = judged(split, scores, "char")
    every = table.to_pylist()
    rows = [row for row in every if row["set_aside"] is None]
    right = [row["prediction"] == row["answer"] for row in rows]

    assert (metrics.items, metrics.scored) == (400, 388)
    assert metrics.set_aside == {"too long": 1, "two tokens": 11}
    assert metrics.accuracy.value == pytest.approx(np.mean(right))
    assert metrics.accuracy == metrics.accuracies["acc_norm"]
    assert metrics.chance == pytest.approx(np.mean([1 / len(row["choices"]) for row in rows]))
    for normalization, name in METRIC_OF.items():
        alone = predictions_table(split, scores, normalization, 1e-4)  # type: ignore[arg-type]
        expected = np.mean([flag for flag in alone["correct"].to_pylist() if flag is not None])
        assert metrics.accuracies[name].value == pytest.approx(expected)

    families = [row["distractor_family"] for row in rows]
    for estimate, family in (
        (metrics.near_accuracy, "sister"),
        (metrics.random_accuracy, "random"),
    ):
        assert estimate is not None
        flags = [flag for flag, name in zip(right, families, strict=True) if name == family]
        assert (estimate.value, estimate.n) == (pytest.approx(np.mean(flags)), len(flags))
        assert (estimate.low < estimate.value < estimate.high, estimate.method) == (
            True,
            "cluster bootstrap",
        )

    cells: dict[Any, list[bool]] = defaultdict(list)
    for row, flag in zip(rows, right, strict=True):
        cells[row["hops"], row["distractor_family"], row["distractor_hops"]].append(flag)
    found = {
        (cell.hops, cell.family, cell.distractor_hops): cell.accuracy for cell in metrics.table
    }
    assert found.keys() == cells.keys()
    for key, flags in cells.items():
        assert found[key].value == pytest.approx(np.mean(flags))
        assert found[key].n == len(flags)
        assert found[key].low <= np.mean(flags) <= found[key].high
    assert [cell.hops for cell in metrics.table[::9]] == [1, 2, None]

    for column, groups in (("template", metrics.by_template), ("pos", metrics.by_pos)):
        named = [row[column] for row in rows]
        assert [group.name for group in groups] == sorted({name for name in named if name})
        for group in groups:
            flags = [flag for name, flag in zip(named, right, strict=True) if name == group.name]
            assert group.accuracy.value == pytest.approx(np.mean(flags))
            assert group.accuracy.n == len(flags)


@pytest.mark.parametrize("families", [["random"] * 4, ["sister", "level"] * 2, [None] * 4])
def test_one_kind_of_distractors_has_no_accuracy_apart(families: list[str | None]) -> None:
    split, scores = right_rows([True, False] * 2, distractor_family=families)
    _, metrics = judged(split, scores)
    assert metrics.near_accuracy is metrics.random_accuracy is None


def test_clusters_are_judged_whole_by_loops() -> None:
    split, scores = random_run(2)
    table, metrics = judged(split, scores)
    clusters: dict[str, list[bool | None]] = defaultdict(list)
    guessed: dict[str, float] = defaultdict(lambda: 1.0)
    for row in table.to_pylist():
        clusters[row["cluster"]].append(row["correct"])
        guessed[row["cluster"]] /= len(row["choices"])
    by_guessing = [guessed[name] for name, flags in clusters.items() if None not in flags]
    whole = [flags for flags in clusters.values() if None not in flags]
    strict = np.mean([all(flags) for flags in whole])
    assert metrics.clusters == sum(set(flags) != {None} for flags in clusters.values())
    assert metrics.strict_accuracy is not None
    assert metrics.strict_difference is not None
    assert metrics.strict_accuracy.value == pytest.approx(strict)
    assert metrics.strict_accuracy.n == len(whole)
    assert metrics.strict_chance == pytest.approx(np.mean(by_guessing))
    assert metrics.strict_difference.value == pytest.approx(100 * (strict - metrics.accuracy.value))
    sizes = Counter(map(len, whole))
    assert {entry.size: entry.clusters for entry in metrics.cluster_sizes} == sizes
    for entry in metrics.cluster_sizes:
        flags = [flags for flags in whole if len(flags) == entry.size]
        accuracy = sum(map(sum, flags)) / (len(flags) * entry.size)  # type: ignore[arg-type]
        assert entry.accuracy == pytest.approx(accuracy)
        assert entry.strict == pytest.approx(np.mean([all(row) for row in flags]))
        assert entry.independent == pytest.approx(accuracy**entry.size)


def test_calibration_by_a_loop() -> None:
    split, scores = random_run(3)
    table, metrics = judged(split, scores)
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for row in table.to_pylist():
        if row["set_aside"] is None:
            bins[math.ceil(row["probability"] * 10) - 1].append(
                (row["probability"], row["correct"])
            )
    assert [(round(10 * bin.low), bin.n) for bin in metrics.calibration] == [
        (index, len(bins[index])) for index in sorted(bins)
    ]
    error = 0.0
    for bin in metrics.calibration:
        confidence, right = np.mean(bins[round(10 * bin.low)], axis=0)
        assert bin.confidence == pytest.approx(confidence)
        assert bin.accuracy == pytest.approx(right)
        assert bin.low < bin.confidence <= bin.high + 1e-9
        error += bin.n * abs(confidence - right) / metrics.scored
    assert metrics.calibration_error == pytest.approx(error)


@pytest.mark.parametrize("normalization", ["sum", "char"])
def test_brier_score_by_a_loop(normalization: Normalization) -> None:
    split, scores = random_run(3)
    table, metrics = judged(split, scores, normalization)
    distances = []
    for row in table.to_pylist():
        if row["set_aside"] is not None:
            continue
        lengths = [len(text) if normalization == "char" else 1 for text in row["choices"]]
        values = [score / length for score, length in zip(row["scores"], lengths, strict=True)]
        total = sum(map(math.exp, values))
        shares = [math.exp(value) / total for value in values]
        distances.append(
            sum((share - (at == row["answer"])) ** 2 for at, share in enumerate(shares))
        )
    assert metrics.brier == pytest.approx(np.mean(distances), rel=1e-5)


def test_the_same_seed_gives_the_same_numbers() -> None:
    flags = list(np.random.default_rng(0).random(900) < 0.5)
    split, scores = right_rows(flags, [f"c{row // 6}" for row in range(900)])
    _, one = judged(split, scores, seed=4)
    assert one.accuracy.method == "cluster bootstrap"
    assert judged(split, scores, seed=4)[1] == one
    other = judged(split, scores, seed=5)[1]
    assert other.accuracy.value == one.accuracy.value
    assert other.accuracy != one.accuracy


def test_rows_are_copied_only_where_some_were_not_scored() -> None:
    split = make_split([["a", "b"]] * 3, [0] * 3)
    values = [[0.0, 1.0]] * 3
    whole, _ = judged(split, make_scores(values))
    assert drop_unscored(whole) is whole
    part, _ = judged(split, make_scores(values, set_aside={1: "no mask"}))
    assert drop_unscored(part)["id"].to_pylist() == [part["id"][row].as_py() for row in (0, 2)]


def test_logits_are_not_divided_by_length() -> None:
    split, scores = make_split([["a", "bb"]], [0]), make_scores([[1.0, 0.0]], name="logit")
    _, metrics = judged(split, scores)
    assert list(metrics.accuracies) == ["acc"]


def test_rows_without_clusters_have_no_strict_accuracy() -> None:
    split, scores = right_rows([True, False, True, True])
    _, metrics = judged(split, scores)
    assert metrics.strict_accuracy is None
    assert metrics.strict_difference is None
    assert metrics.strict_chance is None
    assert metrics.cluster_sizes == []
    assert metrics.accuracy.method == "wilson"
    assert (metrics.accuracy.low, metrics.accuracy.high) == pytest.approx(wilson(0.75, 4))
    assert not metrics.table
    assert not metrics.by_template
    assert not metrics.by_pos


def test_one_row() -> None:
    split, scores = right_rows([True], ["c"], hops=[2])
    _, metrics = judged(split, scores)
    assert (metrics.accuracy.value, metrics.accuracy.n) == (1.0, 1)
    assert metrics.accuracy.low < 0.25
    assert metrics.strict_accuracy is not None
    assert metrics.strict_accuracy.value == 1.0
    assert [(cell.hops, cell.family, cell.distractor_hops) for cell in metrics.table] == [
        (2, None, None)
    ]


def test_no_cluster_is_wholly_scored() -> None:
    split, _ = right_rows([True, True, False], ["c", "c", "c"])
    scores = make_scores([[1.0, 0.0]] * 3, None, {1: "odd"})
    _, metrics = judged(split, scores)
    assert metrics.accuracy.n == 2
    assert metrics.strict_accuracy is None
    assert metrics.cluster_sizes == []


def test_nothing_scored_is_an_error_that_says_why() -> None:
    split, _ = right_rows([True, True])
    scores = make_scores([[math.nan, math.nan]] * 2, None, {0: "two tokens", 1: "two tokens"})
    with pytest.raises(UsageError, match=r"all 2 items were set aside.*two tokens: 2"):
        judged(split, scores)
    with pytest.raises(UsageError, match="empty"):
        judged(make_split([], []), make_scores([]))


def test_baselines_come_from_the_audit() -> None:
    cell = {"accuracy": 0.25, "low": 0.2, "high": 0.3, "rows": 800, "verdict": "ok"}
    value = {
        "baselines": {
            "longest choice": {"all": cell, "random": {**cell, "accuracy": 0.9}},
            "majority answer": {"all": {**cell, "rows": 0, "accuracy": 0.0}},
        },
        "flags": [],
        "chance": 0.2,
        "scored_rows": 800,
    }
    audit = Audit.model_validate(value)
    assert of_audit(audit) == {
        "baselines": {"longest choice": 0.25},
        "baseline_intervals": {"longest choice": (0.2, 0.3)},
        "oracles": {},
    }
    oracle = {"knows": "half of it", "target": 0.5, "families": {"all": 0.4, "near": 0.3}}
    audit = Audit.model_validate({**value, "oracles": {"half": oracle}})
    assert of_audit(audit)["oracles"] == {"half of it": {"all": 0.4, "near": 0.3}}
