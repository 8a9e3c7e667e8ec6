"""Items written as a probe that can be evaluated: one file of rows a split."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from evaluation.items.types import Item

WORDS = ("a dog", "a cat", "a mouse", "a bus", "a truck", "a house", "a toy", "a piano")


def drawn(name: str, count: int, question: str = "What is a dog?") -> list[Item]:
    """Return questions of several lengths, with three choices and an answer drawn by name."""
    random = np.random.default_rng(len(name))
    return [
        Item(
            f"{name}-{number}",
            "mc_qa",
            f"{question} {'Really. ' * (number % 3)}",
            tuple(map(str, random.choice(WORDS, 3, replace=False))),
            int(random.integers(3)),
        )
        for number in range(count)
    ]


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
