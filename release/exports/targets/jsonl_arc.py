"""ARC's JSON lines, which most tools for multiple choice read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbprobe.errors import how_to_install
from release.exports.source import ProbeSource, Target, Task, Written

FURTHER = (
    "setup", "cluster", "concept", "hops", "distractor_family", "distractor_hops", "pos",
    "template",
)  # fmt: skip
"""Columns that ARC does not have and its readers ignore; ``evaluate-probe`` reads them."""


def write(source: ProbeSource, folder: Path, repo_id: str | None) -> Written:
    """Write a file for each config: ``SPLIT.jsonl``, or ``CONFIG/SPLIT.jsonl``."""
    commands = []
    for task in source.tasks:
        name = f"{task.folder}{task.split}.jsonl"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
            for row in _rows(task):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        commands.append(f"evaluate-probe {name} --model MODEL")
    notes = (
        "Each line has `id`, `question` (`stem`, and `choices` as a list of `text` and `label`) "
        f"and `answerKey`, as in ARC. Further keys ({', '.join(f'`{name}`' for name in FURTHER)}) "
        "are kbprobe's columns; confidence intervals use the cluster.",
    )
    return Written(tuple(commands), notes)


def _rows(task: Task) -> Iterator[dict[str, Any]]:
    """Yield the rows in ARC's layout."""
    columns = ["id", "question", "choices", "answer", *FURTHER]
    for batch in task.table.select(columns).to_batches(1024):
        for row in batch.to_pylist():
            texts, labels = row["choices"]["text"], row["choices"]["label"]
            choices = [
                {"text": text, "label": label} for text, label in zip(texts, labels, strict=True)
            ]
            yield {
                "id": row["id"],
                "question": {"stem": row["question"], "choices": choices},
                "answerKey": labels[row["answer"]],
                # Empty columns are left out.
                **{name: row[name] for name in FURTHER if row[name] not in (None, "")},
            }


TARGET = Target("ARC's JSON lines", f"# {how_to_install('eval')}", write)
