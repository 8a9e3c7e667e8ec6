"""Declares the study of transfer between probes ([F])."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.transfer.runs import FIXED, TransferOptions, expand
from evaluation.studies.transfer.show import show
from evaluation.studies.transfer.summary import summarise
from evaluation.studies.transfer.types import NAME, TransferSummary


def _page(summary: TransferSummary) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.transfer.page import render

    return {f"{NAME}.html": render(summary)}


TRANSFER = Study(
    name=NAME,
    help="Transfer: train a model on each of several probes, and evaluate it on all of them.",
    expand=expand,
    summarise=summarise,
    show=show,
    page=_page,
    options=TransferOptions,
    fixed=FIXED,
)
"""The study."""
