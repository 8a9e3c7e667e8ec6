"""Small probes written by hand: rows with odd texts, clozes, rows without an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbprobe.format.items import LABELS, arrow_schema
from tests.manifests import toy_manifest

ODD = [
    ('It says "{{ 7 * 7 }}" and {% if x %} here', ["{{ question }}", "{%", 'it\'s "both"', "#}"]),
    ("Two lines,\nthe second {braces} %s \\n \t", ["a\nb", "\\", "{0}", "trailing "]),
    ("Ünïcödé \u2028 🦉 ‮abc", ["日本語", "🦉🦉", "naïve", "e\u0301"]),
    ("2020-01-01", ["1999-12-31", "2000-01-01T00:00:00", "12", "None"]),
    ("12", ["true", "[1, 2]", "'", '"""']),
]
"""Stems and choices that YAML, Jinja, JSON or Python would each like to read as its own."""

CLOZES = [
    ('A {{ robin }} "is [MASK] a bird"', ["always", "never", "{{ x }}"]),
    ("[MASK] comes first\nof all 🦉", ["it", "'", "{%"]),
    ("A tail of 12 [MASK]", ["mice.", "men"]),
]


def rows(
    asked: Sequence[tuple[str, Sequence[str]]], setup: str = "mc_qa", answer: int | None = None
) -> list[dict[str, Any]]:
    """Return rows of the item schema; golds go round unless ``answer`` is given."""
    made = []
    for at, (question, texts) in enumerate(asked):
        gold = at % len(texts) if answer is None else answer
        labels = list(LABELS[: len(texts)])
        made.append(
            {
                "id": f"{setup}-{at}",
                "question": question,
                "choices": {"text": list(texts), "label": labels},
                "answer": gold,
                "answerKey": labels[gold] if gold >= 0 else "",
                "setup": setup,
                "cluster": f"cluster {at // 2}",
                "concept": f"concept.n.{at:02}",
                "relation": "toy",
                "hops": 1,
                "distractor_family": "sibling",
                "distractor_hops": 1,
            }
        )
    return made


def write_probe(folder: Path, configs: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> Path:
    """Write rows by config and split as ``build-probe`` lays them out."""
    schema, files = arrow_schema(), []
    for config, splits in configs.items():
        for split, some in splits.items():
            inner = "data" if config == "default" else f"{config}/data"
            path = folder / inner / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = pa.table(
                {
                    field.name: pa.array([row.get(field.name) for row in some], field.type)
                    for field in schema
                },
                schema=schema,
            )
            pq.write_table(table, path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            files.append(
                {
                    "path": path.relative_to(folder).as_posix(),
                    "config": config,
                    "split": split,
                    "rows": len(some),
                    "bytes": path.stat().st_size,
                    "sha256": digest,
                    "rows_sha256": digest,
                }
            )
    manifest = toy_manifest("toy's probe", files, about='Is it "odd"?')
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
