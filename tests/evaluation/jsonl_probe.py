"""Items written as a probe that can be evaluated: one file of rows a split."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluation.items.types import Item


def write(folder: Path, splits: Mapping[str, Sequence[Item]]) -> str:
    """Write items by split, each a cluster of its own, and return the folder's name."""
    folder.mkdir(exist_ok=True)
    for split, items in splits.items():
        rows = []
        for item in items:
            labels = "ABCDEFGH"[: len(item.choices)]
            rows.append(
                {
                    "id": item.id,
                    "setup": item.setup,
                    "question": item.question,
                    "choices": {"text": list(item.choices), "label": list(labels)},
                    "answer": item.answer,
                    "answerKey": labels[item.answer],
                    "cluster": item.id,
                }
            )
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return str(folder)
