"""Declares the study of a model's revisions."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.studies.base import Study
from evaluation.studies.revisions.runs import FIXED, RevisionsOptions, expand
from evaluation.studies.revisions.show import show
from evaluation.studies.revisions.summary import summarise, summarise_rest
from evaluation.studies.revisions.track import track
from evaluation.studies.revisions.types import NAME, RevisionsSummary


def _page(summary: RevisionsSummary) -> Mapping[str, str]:
    # Templates and figures are read when a page is made, not for --help.
    from evaluation.studies.revisions.page import render
    from evaluation.studies.revisions.sheet import write_questions

    return {f"{NAME}.html": render(summary), f"{NAME}.csv": write_questions(summary)}


REVISIONS = Study(
    name=NAME,
    help="Evaluate several revisions of a model, such as its training steps, on the same "
    "questions: accuracy by step, and when each question was learnt or forgotten.",
    expand=expand,
    summarise=summarise,
    summarise_rest=summarise_rest,
    show=show,
    options=RevisionsOptions,
    fixed=FIXED,
    page=_page,
    track=track,
)
