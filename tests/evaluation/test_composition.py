"""Rows beside the facts that they rest on: counted by hand, and corrected for guessing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.items.types import Links
from evaluation.results import intervals
from evaluation.results.analyses.composition import (
    NO_ROW,
    NOT_NAMED,
    NOT_THERE,
    SET_ASIDE,
    relate,
    with_facts,
)
from evaluation.results.analyses.facts import COLUMNS, Facts
from evaluation.results.types import Estimate, predictions_schema

ESTIMATE = Estimate(value=0.5, low=0.4, high=0.6, n=6, method="wilson")


def table(ids: list[str], correct: list[bool | None], width: int = 4, **more: Any) -> pa.Table:
    schema = predictions_schema()
    columns: dict[str, Any] = {name: [None] * len(ids) for name in schema.names}
    columns |= {"id": ids, "correct": correct, "cluster": ids}
    columns |= {"choices": [[str(n) for n in range(width)]] * len(ids)} | more
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def related(rows: pa.Table, links: Links, facts: pa.Table) -> Facts:
    told: Any = SimpleNamespace(items=6, scored=6, accuracy=ESTIMATE, chance=0.25)
    return relate(with_facts(rows, links, facts), links, facts, told, ["facts"], 0)


FACTS = table(["a", "b", "c", "d", "e", "gone"], [True, True, False, True, False, None])

ROWS = [  # correct, its facts, hops, relation, how many facts are right
    (False, ("a", "b"), 2, "spouse", 2),
    (True, ("a", "c"), 2, "spouse", 1),
    (True, ("c", "e"), 2, "spouse", 0),
    (True, ("a", "b", "d"), 3, "start", 3),
    (False, ("b", "d", "e"), 3, "start", 2),
    (True, ("a", "a"), 2, "", 1),
    (True, ("a", ""), 2, "spouse", None),
    (True, ("a", "elsewhere"), 2, "spouse", None),
    (True, ("gone", "a"), 2, "spouse", None),
    (True, (), None, "", None),
    (None, ("a", "b"), 2, "spouse", 2),
]
IDS = [f"row{n}" for n in range(len(ROWS))]
LINKS = Links(tuple(row[1] for row in ROWS), tuple(row[3] for row in ROWS))


def composed() -> pa.Table:
    return table(IDS, [row[0] for row in ROWS], hops=[row[2] for row in ROWS])


def test_each_row_tells_its_facts_and_how_many_are_right():
    told = with_facts(composed(), LINKS, FACTS)
    assert told["facts_right"].to_pylist() == [row[4] for row in ROWS]
    assert told["fact_ids"].to_pylist() == [list(row[1]) for row in ROWS]
    assert told.column_names == [*predictions_schema().names, *COLUMNS]


def test_rows_are_counted_by_the_facts_that_are_right():
    block = related(composed(), LINKS, FACTS)
    assert block.left_out == {NO_ROW: 1, NOT_THERE: 1, SET_ASIDE: 1, NOT_NAMED: 1}
    rows = block.rows
    assert rows.rows == 6
    parts = (rows.all_facts, rows.some_facts, rows.no_facts)
    # A fact that a row names twice counts once.
    assert [part.rows for part in parts] == [3, 2, 1]
    assert [part.accuracy.value for part in parts] == pytest.approx([2 / 3, 1 / 2, 1.0])
    assert rows.accuracy.value == pytest.approx(4 / 6)
    assert rows.fails.value == pytest.approx(1 / 6)
    assert rows.right_without.value == pytest.approx(2 / 6)
    # One fact: always right. Two: 2/3 by 1/3. Three: 1 by 1 by 1/2.
    assert rows.all_facts_independent == pytest.approx(1 / 6 + (3 * 2 / 9 + 2 / 2) / 6)
    assert rows.fails_independent == pytest.approx((3 * 2 / 9 * 1 / 3 + 2 / 2 * 1 / 2) / 6)
    assert rows.all_facts_chance == pytest.approx((1 / 4 + 3 / 16 + 2 / 64) / 6)
    assert rows.known is rows.known_fails is None, "six rows tell nothing"


def test_rows_are_split_by_what_they_share():
    block = related(composed(), LINKS, FACTS)
    assert [(part.name, part.rows) for part in block.by_hops] == [("2 hops", 4), ("3 hops", 2)]
    assert [(part.name, part.rows) for part in block.by_relation] == [("spouse", 3), ("start", 2)]
    assert block.by_family == []
    assert block.by_relation[1].some_facts.accuracy.value == 0.0
    assert block.by_relation[1].no_facts.rows == 0
    assert block.by_relation[1].no_facts.accuracy is None


def test_where_no_row_can_be_counted_the_facts_are_told_alone():
    links = Links((("",), ("elsewhere",)), ("", ""))
    block = related(table(["x", "y"], [True, False]), links, FACTS)
    assert block.rows is None
    assert block.by_hops == block.by_relation == []
    assert block.left_out == {NO_ROW: 1, NOT_THERE: 1}


def guessed(knows: Any, chance: float, generator: Any) -> Any:
    return knows | (generator.random(knows.shape) < chance)


@pytest.mark.slow
def test_correction_finds_what_was_known_when_the_rest_is_guessed():
    """60% know both facts, half of these cannot put them together; the rest guess among four."""
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(40):
        count = 400
        both = generator.random(count) < 0.6
        first = both | (generator.random(count) < 0.5)
        composes = both & (generator.random(count) < 0.5)
        answers = guessed(np.stack([first, both, composes]), 0.25, generator)
        ids = [f"{place}{row}" for place in "ab" for row in range(count)]
        facts = table(ids, answers[:2].ravel().tolist())
        rows = table([f"row{n}" for n in range(count)], answers[2].tolist())
        links = Links(tuple((f"a{n}", f"b{n}") for n in range(count)), ("",) * count)
        found = related(rows, links, facts).rows
        assert found.all_facts_share.value > 0.6, "guesses pass for knowledge"
        inside += found.known.low < 0.6 < found.known.high
        inside += found.known_fails.low < 0.3 < found.known_fails.high
    assert 70 <= inside <= 80, "95% intervals, 80 of them"


def test_a_model_that_only_guesses_is_found_to_know_nothing():
    generator = np.random.default_rng(1)
    count = 4000
    answers = generator.random((3, count)) < 0.25
    facts = table([f"{p}{n}" for p in "ab" for n in range(count)], answers[:2].ravel().tolist())
    rows = table([f"row{n}" for n in range(count)], answers[2].tolist())
    links = Links(tuple((f"a{n}", f"b{n}") for n in range(count)), ("",) * count)
    found = related(rows, links, facts).rows
    assert found.known.low < 0 < found.known.high
    assert found.known_fails.low < 0 < found.known_fails.high
    assert found.fails.low < found.fails_chance < found.fails.high
    assert found.all_facts_share.low < found.all_facts_chance < found.all_facts_share.high


def test_the_mean_knows_that_rows_of_one_cluster_are_alike():
    generator = np.random.default_rng(2)
    inside = 0
    for _ in range(200):
        cluster = np.repeat(np.arange(40), 10)
        values = np.repeat(generator.normal(0.3, 1.0, 40), 10) + generator.normal(0, 0.2, 400)
        found = intervals.mean(values, cluster)
        assert found.method == "t over clusters"
        assert found.n == 400
        inside += found.low < 0.3 < found.high
    assert inside >= 180
    assert intervals.mean(values, np.minimum(cluster, 28)) is None, "29 clusters"
    assert intervals.mean(np.ones(400), cluster) is None, "nothing varies"
