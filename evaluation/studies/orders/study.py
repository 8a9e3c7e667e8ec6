"""Declares the study of orders."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.orders.runs import FIXED, OrdersOptions, expand
from evaluation.studies.orders.show import show
from evaluation.studies.orders.summary import summarise
from evaluation.studies.orders.types import NAME, OrdersSummary


def _page(summary: OrdersSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.orders.page import render

    return {f"{NAME}.html": render(summary)}


ORDERS = Study(
    name=NAME,
    help="Orders: show the lettered choices of each question in several orders, and measure how "
    "accuracy and answers depend on the order.",
    expand=expand,
    summarise=summarise,
    show=show,
    page=_page,
    options=OrdersOptions,
    fixed=FIXED,
)
"""The study."""
