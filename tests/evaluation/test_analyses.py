"""A new analysis is one module: its numbers are kept, and its section is in the report."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from evaluation.items.types import Item, ItemColumns
from evaluation.report.page import render
from evaluation.results import analyses
from evaluation.results.analyses import all_analyses
from evaluation.results.analyses.answers import answer_shares, frequency_of_picks
from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.metrics import Scores, predictions_table
from evaluation.results.parts import shares
from evaluation.results.types import Estimate, Model, Results
from kbprobe.document import Part, Picture, Table, Text
from tests.evaluation.test_report import probe, run, well_formed

HALF = Estimate(value=0.5, low=0.4, high=0.6, n=60, method="wilson")


class Even(Model):
    """How rows of even number do."""

    accuracy: Estimate = Field(description="Share of these rows answered right.")


def plot(figure: Any) -> None:
    figure.subplots().plot([0, 1], [1, 0], label="line")


def parts(_files: ResultFiles, block: Even) -> tuple[Part, ...]:
    return (
        Text("A sentence <b>."),
        shares("rows", "Accuracy", (("even rows", block.accuracy),), 0.5),
        Table(("name", "value"), (("first", 1), ("second", 2)), "A table", faint=frozenset({1})),
        Table(("name", "value"), (("third", 3),), "Another", fold="Unfold"),
        Picture("A picture", 2.0, plot),
    )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("even")
    module.ANALYSIS = Analysis(  # type: ignore[attr-defined]
        "even", "Even rows", "Even rows: a title", parts, Even
    )
    monkeypatch.setitem(sys.modules, f"{analyses.__name__}.even", module)
    monkeypatch.setattr(analyses, "MODULES", (*analyses.MODULES, "even"))


def test_names_differ() -> None:
    names = [analysis.name for analysis in all_analyses()]
    assert names[-1] == "even"
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_its_numbers_are_kept_and_its_section_is_shown() -> None:
    results, predictions = run(probe())
    assert 'id="even"' not in render(results, predictions)
    results = results.with_analysis("even", Even(accuracy=HALF))
    assert Results.model_validate_json(results.model_dump_json()) == results
    page = well_formed(render(results, predictions))
    assert "even" in page.ids
    for text in (
        "Even rows: a title",
        "A sentence <b>.",
        "40.0% to 60.0%",
        "second",
        "Unfold",
    ):
        assert text in page.text


def statements(answers: tuple[int, ...], given: tuple[int, ...]) -> tuple[Results, Any]:
    """Rows of one scale, each answered as told."""
    words = ("never", "sometimes", "always")
    items = ItemColumns.of(
        [
            Item(f"id{row}", "mc_mlm", f"Row {row} is [MASK].", words, answer)
            for row, answer in enumerate(answers)
        ]
    )
    split = replace(probe(len(answers)), items=items)
    scores = np.full((len(answers), 3), -9.0)
    scores[np.arange(len(answers)), list(given)] = -1.0
    tokens = np.ones(scores.size, dtype=np.int64)
    predictions = predictions_table(
        split, Scores(scores.ravel(), tokens, {}, {}, "logit", 1, 1, 7), "sum", 0.0
    )
    return run(probe())[0], predictions


def test_the_share_of_each_answer_is_told() -> None:
    results, predictions = statements((0, 0, 1, 2), (1, 1, 1, 2))
    assert answer_shares(predictions) == [
        ("always", 0.25, 0.25, 1.0),
        ("never", 0.5, 0.0, 0.0),
        ("sometimes", 0.25, 0.75, 1.0),
    ]
    page = render(results, predictions)
    assert "Answers: which are given" in page
    assert answer_shares(run(probe())[1]) == []


def test_scores_are_related_to_the_frequency_of_words() -> None:
    # Never is the most frequent of the words, sometimes the least.
    found = [frequency_of_picks(statements((0, 1, 2, 0), (given,) * 4)[1]) for given in (0, 1)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].correlation < 0 < found[0].correlation
    assert [(one.given, one.right) for one in found if one] == [(1.0, 0.5), (0.0, 0.5)]
    assert frequency_of_picks(run(probe())[1]) is None
