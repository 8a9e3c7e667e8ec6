"""Declares the study of prompts."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.prompts.options import PromptsOptions
from evaluation.studies.prompts.runs import FIXED, expand
from evaluation.studies.prompts.show import show
from evaluation.studies.prompts.summary import summarise
from evaluation.studies.prompts.types import NAME, PromptsSummary


def _page(summary: PromptsSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.prompts.page import render

    return {f"{NAME}.html": render(summary)}


PROMPTS = Study(
    name=NAME,
    help="Prompts: ask the same questions with several prompts, or with other examples, and "
    "compare accuracies and answers.",
    expand=expand,
    summarise=summarise,
    show=show,
    page=_page,
    options=PromptsOptions,
    fixed=FIXED,
)
"""The study."""
