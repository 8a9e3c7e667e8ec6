"""Analyses: numbers and report sections that apply only to some probes, one module each.

An analysis is a module of this package that defines ``ANALYSIS`` and is listed in :data:`MODULES`.
It may add numbers to ``results.json``, under its name in ``analyses``, columns to
``predictions.parquet``, and a section to the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from evaluation.results.analyses.base import Analysis

MODULES = (
    *("labels", "generated", "answers", "viability", "distances", "ordered_values", "facts"),
    *("consistency", "several", "seen", "vocabulary"),
)
"""The modules with an analysis, in the order of their sections in the report."""


def all_analyses() -> Iterator[Analysis]:
    """Yield every analysis."""
    for name in MODULES:
        yield import_module(f"{__name__}.{name}").ANALYSIS
