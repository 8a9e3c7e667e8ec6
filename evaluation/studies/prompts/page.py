"""The page of the study, ``prompts.html``: generated deterministically from the summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.report.dots import Dot, dots_figure
from evaluation.report.matrices import SHARES, make_matrix, symmetric_cells
from evaluation.report.tables import Cell, Table
from evaluation.report.templates import environment
from evaluation.results.words import last_name
from evaluation.studies.prompts.types import ModelPrompts, PromptRun, PromptsSummary
from evaluation.studies.prompts.words import sentences
from evaluation.studies.variation.words import spread_table, variants_table
from kbprobe.errors import require


def render(summary: PromptsSummary) -> str:
    """Return the page.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a page of prompts")
    names = [f"{one.probe}, {last_name(one.model)}" for one in summary.models]
    links = [(f"p{number}", name) for number, name in enumerate(names)]
    template = environment(Path(__file__).parent).get_template("prompts.html.j2")
    return template.render(
        title=names[0] if len(names) == 1 else f"{len(names)} models and probes",
        links=[*links, ("reading", "How to read it")] if len(links) > 1 else [],
        models=[_section(one, f"p{number}") for number, one in enumerate(summary.models)],
    )


def _section(one: ModelPrompts, name: str) -> dict[str, Any]:
    labels = [run.label for run in one.runs]
    alike = {(pair.first, pair.second): pair.alike for pair in one.pairs}
    label = f"Accuracy of {last_name(one.model)} on {one.probe} with each prompt."
    return {
        "id": name,
        "one": one,
        "model": last_name(one.model),
        "found": sentences(one),
        "figure": dots_figure(
            name, label, [Dot(run.label, run.accuracy) for run in one.runs], one.chance
        ),
        "accuracies": variants_table("prompt", one.runs),
        "spread": spread_table([(last_name(one.model), one.variation)]),
        "alike": make_matrix(
            "Share of questions with the same answer",
            "prompt / prompt",
            labels,
            labels,
            symmetric_cells(labels, alike),
            SHARES,
        ),
        "options": _options(one.runs),
    }


def _options(runs: list[PromptRun]) -> Table:
    """Return the table of what each run has of its own."""
    heads = list(dict.fromkeys(name for run in runs for name in run.options))
    rows = [(run.label, [Cell(_spelled(run.options.get(name))) for name in heads]) for run in runs]
    return ("prompt", *(name.replace("_", " ") for name in heads)), rows


def _spelled(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
