"""Facts: accuracy on questions that rest on several facts, compared with the single facts.

A run also asks the facts that its rows rest on (:mod:`evaluation.runs.executor`); this study
compares the runs of several probes and models.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from evaluation.names import folder_name
from evaluation.report import cells
from evaluation.results.analyses.facts import Facts, facts_of
from evaluation.results.words import name_or_count
from evaluation.runs.checks import check_split
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from kbprobe.document import Document, Row, Section, Table
from kbprobe.errors import UsageError


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
    run = request.defaults.run
    for probe in request.probes:
        found = check_split(probe, run.split, run.config)
        if found is not None and not (found.manifest and found.manifest.sub_questions):
            raise UsageError(_no_facts(found.name))
    return [
        request.spec(probe, model, facts=True)
        for model in request.models
        for probe in request.probes
    ]


def _summarise(_request: StudyRequest, finished: Sequence[Finished]) -> FactsSummary:
    models = []
    for run in finished:
        results = run.evaluation.results
        probe, facts = results.probe, facts_of(results)
        if facts is None:
            raise UsageError(_no_facts(probe.name))
        models.append(
            ModelFacts(probe=probe.name, split=probe.split, model=results.model.id, facts=facts)
        )
    return FactsSummary(models=models)


def _no_facts(probe: str) -> str:
    return (
        f"the rows of {probe} rest on no facts that the probe asks for: name a probe with such a "
        "config, such as encyclopedic_composition"
    )


def _document(summary: FactsSummary) -> Document:
    head = ("facts", "rows", "all facts right", "of these wrong", "right without", "known, wrong")
    rows: list[Row] = [
        (
            f"{one.probe} ({one.split})",
            folder_name(one.model),
            *map(cells.share, _shares(one.facts)),
        )
        for one in summary.models
    ]
    caption = "Accuracy on the facts and on the rows, and how often one goes without the other"
    return Document(
        "Questions that rest on facts",
        name_or_count(dict.fromkeys(one.probe for one in summary.models), "probes"),
        [Section("", [Table(("probe", "model", *head), rows, caption, names=2)])],
    )


def _shares(facts: Facts) -> list[float | None]:
    rows = facts.rows
    if rows is None:
        return [facts.accuracy.value, *[None] * 5]
    right, known = rows.all_facts.accuracy, rows.known_fails
    return [
        facts.accuracy.value,
        rows.accuracy.value,
        rows.all_facts_share.value,
        None if right is None else 1 - right.value,
        rows.right_without.value,
        None if known is None else known.value,
    ]


FACTS = Study(
    name="facts",
    help="Evaluate models on questions that combine several facts, and on the single facts.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    reports=True,
    fixed=frozenset({"facts"}),
)
