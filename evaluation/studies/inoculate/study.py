"""Declares the study of inoculation by fine-tuning (Liu et al. 2019; [W], section 5)."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.inoculate.options import InoculateOptions
from evaluation.studies.inoculate.runs import FIXED, expand, follow
from evaluation.studies.inoculate.show import show
from evaluation.studies.inoculate.summary import summarise
from evaluation.studies.inoculate.types import NAME, InoculateSummary


def _page(summary: InoculateSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.inoculate.page import render

    return {f"{NAME}.html": render(summary)}


INOCULATE = Study(
    name=NAME,
    help="Inoculation: train a multiple-choice model on a few rows of a probe, and measure what "
    "accuracy it gains there and loses on its original task.",
    expand=expand,
    follow=follow,
    summarise=summarise,
    show=show,
    options=InoculateOptions,
    fixed=FIXED,
    page=_page,
)
