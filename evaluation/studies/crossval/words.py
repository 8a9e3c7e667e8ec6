"""Rows of the table in words."""

from __future__ import annotations

from evaluation.results.words import last_name, short
from evaluation.studies.crossval.types import CrossvalRow

_LABEL = 20


def row_name(row: CrossvalRow) -> str:
    """Name a row: ``sentence-transformers/all-MiniLM-L6-v2, pooled``."""
    return ", ".join([*_model(row), _fitted(row)])


def row_label(row: CrossvalRow) -> str:
    """Name a row in a figure, where there is less room: ``all-MiniLM-L6-v2, pooled``."""
    return ", ".join(
        [*(short(name.rpartition("/")[2], _LABEL) for name in _model(row)), _fitted(row)]
    )


def _model(row: CrossvalRow) -> list[str]:
    return [] if row.kind == "majority" else [last_name(row.model)]


def _fitted(row: CrossvalRow) -> str:
    if row.kind == "majority":
        return "majority label"
    if row.kind == "zero_shot":
        return "without training"
    if row.kind == "random":
        number = len(row.repetitions)
        encoders = "random encoder" if number == 1 else f"{number} random encoders"
        return f"{encoders}, {row.learner}"
    return str(row.learner)
