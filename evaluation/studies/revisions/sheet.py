"""All questions as comma-separated values, ``revisions.csv``."""

from __future__ import annotations

import csv
import io

from evaluation.studies.revisions.types import RevisionsSummary

_HEAD = (
    *("probe", "split", "model", "id", "cluster", "question"),
    *("learnt", "forgotten", "changes", "answers"),
)


def write_questions(summary: RevisionsSummary) -> str:
    """Return a line for each question of each model and probe, in the probe's order."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(_HEAD)
    for one in summary.models:
        for asked in one.questions:
            lines.writerow(
                (
                    *(one.probe, one.split, one.model),
                    *(asked.id, asked.cluster or "", asked.question or ""),
                    *(asked.learnt or "", asked.forgotten or "", asked.changes),
                    asked.answers,
                )
            )
    return written.getvalue()
