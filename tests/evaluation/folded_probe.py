"""Small probes of labelled rows with folds: one word of the text, or of the pair, decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kbprobe.format.items import LABELS
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS

NOUNS = ("dog", "cat", "mouse", "car", "bus", "truck", "bicycle", "house", "piano", "toy")
WORDS = ("red", "small", "domestic")
FOLDS = 4


def rows_of(setup: str, clusters: int = 60) -> list[dict[str, Any]]:
    """Return rows in clusters of two, one after another in different splits and folds."""
    labels = SETUPS[setup].labels
    rows = []
    for at in range(2 * clusters):
        cluster, answer = at // 2, (at // 2 + at) % len(labels)
        subject = f"{NOUNS[cluster % 10]} and {NOUNS[(cluster // 10 + at) % 10]}"
        row: dict[str, Any] = {"question": f"A {subject} is {WORDS[answer]}."}
        if setup == NLI:
            row = {
                "premise": f"What is a {subject}?",
                "hypothesis": f"It is {WORDS[answer]} and a {subject} is a toy.",
            }
        rows.append(
            {
                "id": f"row-{at}",
                "setup": setup,
                **row,
                "choices": {"text": list(labels), "label": list(LABELS[: len(labels)])},
                "answer": answer,
                "answerKey": LABELS[answer],
                "cluster": f"cluster-{cluster}",
                "fold": cluster % FOLDS,
                "split": ("train", "validation", "test")[cluster % 3],
            }
        )
    return rows


def write(folder: Path, setup: str = ACCEPTABILITY, clusters: int = 60, **changes: Any) -> str:
    """Write a probe as files of rows, one a split; ``changes`` replace columns, None drops one."""
    folder.mkdir(parents=True)
    for row in rows_of(setup, clusters):
        split = row.pop("split")
        kept = {name: value for name, value in (row | changes).items() if value is not None}
        with (folder / f"{split}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")
    return str(folder)
