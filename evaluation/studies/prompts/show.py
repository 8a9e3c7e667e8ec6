"""The summary as tables on a terminal."""

from __future__ import annotations

from evaluation.results.words import last_name
from evaluation.studies.prompts.types import PromptsSummary
from evaluation.studies.prompts.words import sentences
from evaluation.studies.variation.words import HEADS, console_cells


def show(summary: PromptsSummary) -> None:
    """Print the accuracy with each prompt, its spread, and how often answers are the same."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent

    rows = [
        (
            f"{one.probe} ({one.split})",
            last_name(one.model),
            run.label,
            percent(run.accuracy),
            f"{100 * one.chance:.1f}",
            f"{run.scored:,}",
            f"{run.set_aside:,}",
        )
        for one in summary.models
        for run in one.runs
    ]
    heads = ("accuracy %", "chance %", "rows", "set aside")
    print_rows(("probe", "model", "prompt", *heads), rows, names=3)
    spread = [
        (
            f"{one.probe} ({one.split})",
            last_name(one.model),
            f"{len(one.runs)}",
            *console_cells(one.variation),
        )
        for one in summary.models
    ]
    print_rows(("probe", "model", "prompts", *HEADS), spread)
    console = wide_console()
    for one in summary.models:
        console.print(f"{one.probe}, {last_name(one.model)}:", soft_wrap=True)
        for line in (*sentences(one), *one.notes):
            console.print(f"  {line}", soft_wrap=True)
