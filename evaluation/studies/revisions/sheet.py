"""All questions as comma-separated values, ``revisions.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.studies.revisions.types import RevisionsSummary
from kbprobe.tables import csv_text

_HEAD = (
    *("probe", "split", "model", "id", "cluster", "question"),
    *("learnt", "forgotten", "changes", "answers"),
)


def write_questions(summary: RevisionsSummary) -> str:
    """Return a line for each question of each model and probe, in the probe's order."""
    lines: list[Sequence[Any]] = [_HEAD]
    for one in summary.models:
        for asked in one.questions:
            lines.append(
                (
                    *(one.probe, one.split, one.model),
                    *(asked.id, asked.cluster or "", asked.question or ""),
                    *(asked.learnt or "", asked.forgotten or "", asked.changes),
                    asked.answers,
                )
            )
    return csv_text(lines, line_end="\n")
