"""A new analysis is one module: its numbers are kept, and its section is in the report."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import Field

from evaluation.report.page import render
from evaluation.results import analyses
from evaluation.results.analyses import all_analyses
from evaluation.results.analyses.base import (
    Analysis,
    Example,
    Examples,
    Grid,
    Picture,
    ResultFiles,
    Section,
    Shares,
    Text,
)
from evaluation.results.types import Estimate, Model, Results
from tests.evaluation.test_report import probe, run, well_formed

HALF = Estimate(value=0.5, low=0.4, high=0.6, n=60, method="wilson")


class Even(Model):
    """How rows of even number do."""

    accuracy: Estimate = Field(description="Share of these rows answered right.")


def plot(figure: Any) -> None:
    figure.subplots().plot([0, 1], [1, 0], label="line")


def section(files: ResultFiles) -> Section | None:
    held = files.results.analyses.get("even")
    if held is None:
        return None
    accuracy = Even.model_validate(held).accuracy
    parts = (
        Text("A sentence <b>."),
        Shares("rows", "Accuracy", (("even rows", accuracy),)),
        Grid("A table", ("name", "value"), (("first", "1"), ("second", "2")), faint=frozenset({1})),
        Grid("Another", ("name", "value"), (("third", "3"),), fold="Unfold"),
        Picture("A picture", 2.0, plot),
        Examples("Some", tuple(Example(row, (("why", "because", "id"),)) for row in (2, 4)), 1),
        Examples("None", (), 1),
    )
    return Section("even", "Even rows", "Even rows: a title", parts)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("even")
    module.ANALYSIS = Analysis("even", section, Even)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"{analyses.__name__}.even", module)
    monkeypatch.setattr(analyses, "MODULES", (*analyses.MODULES, "even"))


def test_names_differ() -> None:
    names = [analysis.name for analysis in all_analyses()]
    assert names[-1] == "even"
    assert len(set(names)) == len(names)


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
        "because",
        "There are none.",
    ):
        assert text in page.text
