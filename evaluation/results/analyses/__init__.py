"""Analyses: numbers and sections that apply to some probes only, a module each.

An analysis is a module of this package with an ``ANALYSIS``, named in :data:`MODULES`. It may keep
numbers of its own in ``results.json``, under its name in ``analyses``, and columns of its own in
``predictions.parquet``; and it may have a section in the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from evaluation.results.analyses.base import Analysis

MODULES = (
    *("labels", "answers", "viability", "distances", "ordered_values", "facts"),
    *("seen", "vocabulary"),
)
"""The modules with an analysis, in the order of their sections in the report."""


def all_analyses() -> Iterator[Analysis]:
    """Yield every analysis."""
    for name in MODULES:
        yield import_module(f"{__name__}.{name}").ANALYSIS
