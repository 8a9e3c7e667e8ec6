"""Declares the study of baselines ([W], sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.baselines.options import BaselinesOptions
from evaluation.studies.baselines.record import record
from evaluation.studies.baselines.runs import FIXED, expand
from evaluation.studies.baselines.show import show
from evaluation.studies.baselines.summary import summarise
from evaluation.studies.baselines.types import NAME, BaselinesSummary


def _page(summary: BaselinesSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.baselines.page import render

    return {f"{NAME}.html": render(summary)}


BASELINES = Study(
    name=NAME,
    help="Baselines without a language model: guessing, majority, word vectors, and models that "
    "see only the choices.",
    expand=expand,
    summarise=summarise,
    show=show,
    options=BaselinesOptions,
    fixed=FIXED,
    finish=record,
    modelless=True,
    page=_page,
)
