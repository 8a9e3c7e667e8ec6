"""Toy probes whose questions compare two values, and models that answer in a known way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.items.types import Item, ItemColumns, ProbeSplit, arguments_type, fingerprint
from evaluation.results.metrics import Scores, measure, predictions_table
from evaluation.results.types import Results
from tests.evaluation.sample_results import results_of

Answer = Callable[[str, str], bool]
"""Of the first and the second value: whether the second of the two answers is right, or given."""

AGES = ("younger", "older")
TOLERANCE = 1e-4


def is_larger(first: str, second: str) -> bool:
    return float(first) > float(second)


def comparisons(
    pairs: Sequence[tuple[str, str]],
    right: Answer = is_larger,
    answers: tuple[str, str] = AGES,
    names: Sequence[str] = ("age_1", "age_2"),
) -> ProbeSplit:
    """Ask about pairs; every other row offers its two choices the other way round."""
    items, arguments = [], []
    for row, pair in enumerate(pairs):
        gold, choices = int(right(*pair)), answers
        if row % 2:
            gold, choices = 1 - gold, answers[::-1]
        stem = f"A {pair[0]} year old person age is [MASK] than a {pair[1]} year old person."
        items.append(Item(f"id{row:05}", "mc_mlm", stem, choices, gold))
        arguments.append(
            [{"name": name, "value": value} for name, value in zip(names, pair, strict=True)]
        )
    about: dict[str, Any] = {
        "cluster": pa.array([" ".join(sorted(pair)) for pair in pairs]),
        **{name: pa.nulls(len(pairs), pa.string()) for name in _UNTOLD},
        **{name: pa.nulls(len(pairs), pa.int32()) for name in ("hops", "distractor_hops")},
    }
    return ProbeSplit(
        name="made",
        source="here",
        split="test",
        items=ItemColumns.of(items),
        about=pa.table(about),
        clustered=True,
        fingerprint=fingerprint(items),
        arguments=pa.array(arguments, arguments_type()),
    )


_UNTOLD = ("distractor_family", "pos", "template", "concept")


def all_pairs(values: Sequence[Any]) -> list[tuple[str, str]]:
    """Every ordered pair of different values."""
    return [(str(one), str(two)) for one, two in permutations(values, 2)]


def answered(
    split: ProbeSplit,
    lead: Callable[[str, str], float],
    answers: tuple[str, str] = AGES,
    set_aside: dict[int, str] | None = None,
) -> tuple[Results, pa.Table]:
    """Score a split: ``lead`` is the second answer's lead over the first, in nats."""
    assert split.arguments is not None
    scores = []
    for item, filled in zip(split.items, split.arguments.to_pylist(), strict=True):
        value = lead(filled[0]["value"], filled[1]["value"])
        scores += [value if text == answers[1] else 0.0 for text in item.choices]
    numbers = np.array(scores)
    held = Scores(numbers, np.ones(numbers.size, int), set_aside or {}, {}, "logit", 1, 1, 7)
    predictions = predictions_table(split, held, "sum", TOLERANCE)
    metrics = measure(
        predictions,
        clustered=True,
        normalization="sum",
        by_length=False,
        seed=0,
        tie_tolerance=TOLERANCE,
    )
    return results_of(metrics, scoring={"score": "logit"}), predictions
