"""Rows of the table in words."""

from __future__ import annotations

from evaluation.results.words import last_name
from evaluation.studies.crossval.types import CrossvalRow


def row_name(row: CrossvalRow) -> str:
    """Name a row: ``MiniLM, pooled``."""
    if row.kind == "majority":
        return "majority label"
    model = last_name(row.model)
    if row.kind == "zero_shot":
        return f"{model}, without training"
    if row.kind == "random":
        number = len(row.repetitions)
        encoders = "random encoder" if number == 1 else f"{number} random encoders"
        return f"{model}, {encoders}, {row.learner}"
    return f"{model}, {row.learner}"
