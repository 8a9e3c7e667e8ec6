"""Declares the study of prediction overlap ([F])."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.overlap.show import show
from evaluation.studies.overlap.summary import OverlapOptions, summarise
from evaluation.studies.overlap.types import NAME, OverlapSummary


def _page(summary: OverlapSummary) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.overlap.page import render

    return {f"{NAME}.html": render(summary)}


OVERLAP = Study(
    name=NAME,
    help="Prediction overlap: how similar the answers of models are, pair by pair, from their "
    "results folders.",
    expand=None,
    summarise=summarise,
    show=show,
    page=_page,
    options=OverlapOptions,
    least=2,
)
"""The study."""
