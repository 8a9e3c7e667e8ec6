"""Facts: how models do on questions that rest on several facts, beside the facts alone.

A run asks the facts that its rows rest on as well (:mod:`evaluation.runs.sub_questions`); this
study puts the runs of several probes and models beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from evaluation.names import folder_name
from evaluation.results.analyses.facts import Facts, facts_of
from evaluation.results.types import Estimate
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


class ModelFacts(BaseModel):
    """A model on a probe whose rows rest on facts."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    facts: Facts = Field(description="The facts, and how the rows do beside them.")


class FactsSummary(BaseModel):
    """The summary of the study."""

    schema_version: str = "1.0"
    models: list[ModelFacts] = Field(description="Each model on each probe.")


def _expand(request: StudyRequest) -> list[RunSpec]:
    return [
        request.spec(probe, model, facts=True)
        for model in request.models
        for probe in request.probes
    ]


def _summarise(_request: StudyRequest, finished: Sequence[Finished]) -> FactsSummary:
    models = []
    for run in finished:
        results = run.evaluation.results
        facts = facts_of(results)
        if facts is None:
            raise UsageError(
                f"the rows of {results.probe.name} rest on no facts that the probe asks for: name "
                "a probe with such a config, such as encyclopedic_composition"
            )
        one = ModelFacts(
            probe=results.probe.name,
            split=results.probe.split,
            model=results.model.id,
            facts=facts,
        )
        models.append(one)
    return FactsSummary(models=models)


def show(summary: FactsSummary, console: Console | None = None) -> None:
    """Print a row for each probe and model, in percent."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for name in ("probe", "model"):
        table.add_column(name)
    heads = ("facts", "rows", "all facts right", "of these wrong", "right without", "known, wrong")
    for name in heads:
        table.add_column(name, justify="right")
    for one in summary.models:
        rows = one.facts.rows
        shares: list[Estimate | None] = [one.facts.accuracy]
        if rows is not None:
            right = rows.all_facts.accuracy
            wrong = None if right is None else right.model_copy(update={"value": 1 - right.value})
            shares += [rows.accuracy, rows.all_facts_share, wrong]
            shares += [rows.right_without, rows.known_fails]
        shares += [None] * (len(heads) - len(shares))
        cells = ["-" if share is None else f"{100 * share.value:.1f}" for share in shares]
        table.add_row(f"{one.probe} ({one.split})", folder_name(one.model), *cells)
    width = None if Console().is_terminal else 160
    (console or Console(width=width, markup=False, highlight=False)).print(table)


FACTS = Study(
    name="facts",
    help="Evaluate models on questions that rest on several facts, and on these facts alone.",
    expand=_expand,
    summarise=_summarise,
    show=show,
    fixed=("facts",),
)
