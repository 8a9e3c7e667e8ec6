"""All items as comma-separated values, ``items.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.studies.item_analysis.types import ItemsSummary
from kbprobe.tables import csv_text

_HEAD = (
    *("probe", "split", "rank", "id", "cluster", "question", "key", "key_text", "other"),
    *("other_text", "models", "right", "for_other", "point_biserial", "evidence", "remarks"),
)


def write_rows(summary: ItemsSummary) -> str:
    """Return a line for each item, in the order to read them, and a column for each model."""
    labels = list(dict.fromkeys(run.label for one in summary.probes for run in one.runs))
    lines: list[Sequence[Any]] = [(*_HEAD, *labels)]
    for one in summary.probes:
        names = [run.label for run in one.runs]
        for rank, item in enumerate(one.items, 1):
            said = dict(zip(names, item.said, strict=True))
            lines.append(
                (
                    *(one.probe, one.split, rank, item.id, item.cluster, item.question),
                    *(item.key, item.choices[item.key], _or_empty(item.rival)),
                    "" if item.rival is None else item.choices[item.rival],
                    *(item.models, item.right, item.for_rival),
                    "" if item.point_biserial is None else round(item.point_biserial, 4),
                    round(item.evidence, 4),
                    "; ".join(item.remarks),
                    *(_or_empty(said.get(label)) for label in labels),
                )
            )
    return csv_text(lines, line_end="\n")


def _or_empty(choice: int | None) -> int | str:
    return "" if choice is None else choice
