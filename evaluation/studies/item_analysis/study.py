"""Declares the study of items."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.item_analysis.show import show
from evaluation.studies.item_analysis.summary import FEWEST_RUNS, ItemsOptions, summarise
from evaluation.studies.item_analysis.types import NAME, ItemsSummary


def _page(summary: ItemsSummary) -> Mapping[str, str]:
    # Templates are read when a page is made, not for --help.
    from evaluation.studies.item_analysis.page import render
    from evaluation.studies.item_analysis.sheet import write_rows

    return {f"{NAME}.html": render(summary), f"{NAME}.csv": write_rows(summary)}


ITEMS = Study(
    name=NAME,
    help="Item analysis: the rows of a probe to read first, such as those with suspected wrong "
    "keys, from the results folders of several models.",
    expand=None,
    summarise=summarise,
    show=show,
    page=_page,
    options=ItemsOptions,
    least=FEWEST_RUNS,
)
"""The study."""
