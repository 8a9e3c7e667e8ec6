"""Declares the study of cross-validation ([F], Table 2)."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.crossval.options import CrossvalOptions
from evaluation.studies.crossval.runs import FIXED, expand
from evaluation.studies.crossval.show import show
from evaluation.studies.crossval.summary import summarise
from evaluation.studies.crossval.types import NAME, CrossvalSummary


def _page(summary: CrossvalSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.crossval.page import render

    return {f"{NAME}.html": render(summary)}


CROSSVAL = Study(
    name=NAME,
    help="Cross-validation: fit label classifiers on all folds of a probe but one, evaluate them "
    "on that fold, and compare with the majority label and randomly initialised encoders.",
    expand=expand,
    summarise=summarise,
    show=show,
    options=CrossvalOptions,
    fixed=FIXED,
    modelless=True,
    page=_page,
)
