"""Score card: models on a suite of probes, each with one number for all of it."""

from evaluation.studies.base import Study
from evaluation.studies.scorecard.document import badge, document
from evaluation.studies.scorecard.record import FIXED, NAME, ScorecardOptions, expand, summarise

SCORECARD = Study(
    name=NAME,
    help="Score models on a suite of probes: one number, mean accuracy above chance, and what is "
    "behind it.",
    expand=expand,
    summarise=summarise,
    document=document,
    sheets=lambda card: {"badge.md": badge(card)},
    options=ScorecardOptions,
    fixed=FIXED,
)
"""The study."""
