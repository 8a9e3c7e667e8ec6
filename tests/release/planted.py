"""Small probes on disk with a leak planted, and one without any."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbprobe.format.items import LABELS, arrow_schema
from tests.manifests import toy_manifest
from tests.rows import empty_row

Row = dict[str, Any]
ROWS = {"train": 500, "test": 1000}


def plant(folder: Path, leak: Callable[[Row, int, random.Random], None] | None = None) -> Path:
    """Write a probe of random words whose golds are random, but for what ``leak`` changes.

    ``leak`` gets each row, its number and a generator. Its ``gold`` and ``distractors`` are laid
    out after that, the gold at ``position``.
    """
    files = []
    for split, count in ROWS.items():
        generator = random.Random(split)
        rows = [_row(number, split, generator) for number in range(count)]
        for number, row in enumerate(rows):
            row["rows"] = rows
            if leak:
                leak(row, number, generator)
        path = folder / "data" / f"{split}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([_item(row) for row in rows], arrow_schema()), path)
        content = path.read_bytes()
        files.append(
            {
                "path": f"data/{path.name}",
                "split": split,
                "rows": count,
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
    base = {"name": "wordnet-3.0", "version": "3.0", "digest": "0", "licence": "CC0-1.0"}
    counts = {"rows": sum(ROWS.values()), "splits": ROWS, "concepts": 1, "clusters": 1}
    manifest = toy_manifest("planted", files, knowledge_base=base, counts=counts)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def word(generator: random.Random, letters: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    return "".join(generator.choices(letters, k=6))


def _row(number: int, split: str, generator: random.Random) -> Row:
    # Every tenth row has a choice less.
    distractors = [word(generator) for _ in range(2 if number % 10 == 0 else 3)]
    return {
        "id": f"{generator.getrandbits(64):016x}",
        "question": f"{split} {number}",
        "setup": "mc_qa",
        "cluster": f"{split} {number // 2}",
        "gold": word(generator),
        "distractors": distractors,
        "position": generator.randrange(len(distractors) + 1),
        "nodes": {},
        "arguments": {},
    }


def _item(row: Row) -> Row:
    texts = list(row["distractors"])
    texts.insert(row["position"], row["gold"])
    return {
        **empty_row(),
        **{name: row[name] for name in ("id", "question", "cluster")},
        "setup": row["setup"],
        "choices": {"text": texts, "label": list(LABELS[: len(texts)])},
        "answer": row["position"],
        "choice_nodes": [row["nodes"].get(text, text) for text in texts],
        "arguments": [{"name": name, "value": text} for name, text in row["arguments"].items()],
        "hops": 0,
        "distractor_hops": 0,
    }
