"""Declares the study of learning curves ([O], section 3)."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.curve.options import CurveOptions
from evaluation.studies.curve.runs import FIXED, expand
from evaluation.studies.curve.show import show
from evaluation.studies.curve.summary import summarise
from evaluation.studies.curve.types import NAME, CurveSummary


def _page(summary: CurveSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.curve.page import render

    return {f"{NAME}.html": render(summary)}


CURVE = Study(
    name=NAME,
    help="Learning curves: accuracy after training on more and more rows, beside zero-shot "
    "accuracy, baselines and controls.",
    expand=expand,
    summarise=summarise,
    show=show,
    options=CurveOptions,
    fixed=FIXED,
    page=_page,
)
