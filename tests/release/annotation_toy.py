"""Small probes of every kind, and people who annotate them."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kbprobe.format.items import LABELS, Items, arrow_schema
from kbprobe.format.manifest import write_manifest
from kbprobe.format.sheets import read_key
from release.annotation.gold import items_of
from tests.manifests import toy_manifest, write_parquet
from tests.rows import empty_row

CARD = """---
language: [en]
license: cc0-1.0
---

# toy

## What it cannot show

- Much.

## Licence

Public domain.

## Canary

kbprobe canary GUID 0
"""

SPLITS = {"train": 40, "validation": 20, "test": 60}
NLI = ("entailment", "neutral", "contradiction")


def make_row(split: str, at: int, setup: str, labelled: bool) -> dict[str, Any]:
    """A row of the item schema, as plain Python."""
    texts = {
        "mc_qa": [f"=thing {at}-{n}" for n in range(4)],
        "mc_mlm": ["always", "sometimes", "never"],
        "acceptability": ["acceptable", "unacceptable"],
        "nli": list(NLI),
    }[setup]
    answer = (at * 7 + len(split)) % len(texts)
    question = {"mc_mlm": f"A cat [MASK] has {at} lives."}.get(setup, f"+What is thing {at} of")
    return empty_row() | {
        "id": f"{split}-{at:04d}",
        "question": question if setup != "nli" else "",
        "premise": f"There are {at} cats." if setup == "nli" else "",
        "hypothesis": f"=There are {at + 1} cats." if setup == "nli" else "",
        "choices": {"text": texts, "label": list(LABELS[: len(texts)])},
        "answer": answer if labelled else -1,
        "answerKey": LABELS[answer] if labelled else "",
        "setup": setup,
        "cluster": f"{split}-{at // 3}",
        "concept": f"c{at}",
        "hops": at % 2 + 1,
        "distractor_family": ("random", "sister")[at % 2],
        "distractor_hops": at % 2,
        "choice_nodes": texts,
        "choice_families": ["gold", *["random"] * (len(texts) - 1)],
        "choice_hops": [1] * len(texts),
        "triples": [{"subject": "s", "relation": "r", "object": "o"}],
        "schema_version": "1.0",
    }


def rows_items(rows: Sequence[Mapping[str, Any]]) -> Items:
    return items_of(pa.Table.from_pylist(list(rows), arrow_schema()))


def make_probe(
    folder: Path, setup: str = "mc_qa", labelled: bool = True, controls: Sequence[str] = ()
) -> Path:
    """Write a probe as a build does."""
    splits = {
        split: rows_items([make_row(split, at, setup, labelled) for at in range(count)])
        for split, count in SPLITS.items()
    }
    folder.mkdir(parents=True)
    configs = dict.fromkeys(("default", *controls), splits)
    files = write_parquet(folder, configs)
    write_manifest(folder, toy_manifest("toy", files, about="What is <it> & why?"))
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


def sheet_rows(sheets: Path) -> list[dict[str, str]]:
    """All rows of an export's CSV sheets, as Python's csv reads them."""
    found = []
    for path in sorted((sheets / "sheets").glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            found += list(csv.DictReader(file))
    return found


def answers(
    sheets: Path, right: Mapping[str, int], skill: float, seed: int, marks: float = 0.05
) -> dict[str, str]:
    """What a simulated annotator writes for each item id: right with probability ``skill``."""
    draw = random.Random(seed)
    said = {}
    for item in read_key(sheets / "key.json").items:
        place = item.order.index(right[item.id])
        if draw.random() >= skill:
            place = draw.randrange(len(item.order))
        said[item.item_id] = LABELS[place]
        if draw.random() < marks:
            said[item.item_id] = draw.choice(["none", "two", "nonsense"])
    return said


def right_answers(setup: str = "mc_qa") -> dict[str, int]:
    """The toy's answers by row, whether or not the probe tells them."""
    return {
        f"{split}-{at:04d}": make_row(split, at, setup, True)["answer"]
        for split, count in SPLITS.items()
        for at in range(count)
    }


def long_csv(votes: Sequence[tuple[str, str, str]], delimiter: str = ",", end: str = "\r\n") -> str:
    """Votes as a long table: item id, annotator, answer."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(["item_id", "annotator", "answer"])
    writer.writerows(votes)
    return text.getvalue()
