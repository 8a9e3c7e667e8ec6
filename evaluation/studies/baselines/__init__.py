"""Baselines: accuracy without a language model, or without the question."""

from evaluation.studies.base import Study
from evaluation.studies.baselines.document import document
from evaluation.studies.baselines.record import (
    FIXED,
    BaselinesOptions,
    expand,
    record_figures,
    summarise,
)

BASELINES = Study(
    name="baselines",
    help="Baselines without a language model: guessing, majority, word vectors, and models that "
    "see only the choices.",
    expand=expand,
    summarise=summarise,
    document=document,
    options=BaselinesOptions,
    fixed=FIXED,
    finish=record_figures,
    modelless=True,
)
"""The study."""
