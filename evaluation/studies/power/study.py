"""Declares the study of power."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.power.show import show
from evaluation.studies.power.summary import PowerOptions, read, summarise
from evaluation.studies.power.types import NAME, PowerSummary


def _page(summary: PowerSummary) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.power.page import render

    return {f"{NAME}.html": render(summary)}


POWER = Study(
    name=NAME,
    help="Power: how many clusters show a difference between two models, from the results folders "
    "of two or more models, or from a probe and what is assumed of the models.",
    expand=None,
    summarise=summarise,
    show=show,
    page=_page,
    options=PowerOptions,
    read=read,
)
"""The study."""
