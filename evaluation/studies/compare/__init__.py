"""Paired comparison: which models differ in accuracy, and how similar their answers are."""

from evaluation.studies.base import Study
from evaluation.studies.compare.document import document, sheets
from evaluation.studies.compare.record import CompareOptions, collect, expand, summarise

COMPARE = Study(
    name="compare",
    help="Compare two or more results on the same probe, question by question and pair by pair. "
    "Name the folders of the results; or probes and models, which are evaluated first.",
    expand=expand,
    summarise=summarise,
    collect=collect,
    document=document,
    sheets=sheets,
    options=CompareOptions,
    fixed=frozenset({"config", "facts"}),
    least=2,
    reports=True,
)
"""The study."""
