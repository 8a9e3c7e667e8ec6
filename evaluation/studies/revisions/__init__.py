"""Revisions: several revisions of a model, such as its training steps, on the same questions."""

from evaluation.studies.base import Study
from evaluation.studies.revisions.document import document, sheet, track
from evaluation.studies.revisions.record import (
    FIXED,
    RevisionsOptions,
    expand,
    summarise,
    summarise_rest,
)

REVISIONS = Study(
    name="revisions",
    help="Evaluate several revisions of a model, such as its training steps, on the same "
    "questions: accuracy by step, and when each question was learnt or forgotten.",
    expand=expand,
    summarise=summarise,
    summarise_rest=summarise_rest,
    document=document,
    sheets=lambda summary: {"revisions.csv": sheet(summary)},
    options=RevisionsOptions,
    fixed=FIXED,
    track=track,
)
"""The study."""
