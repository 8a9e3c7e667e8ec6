"""Small probes of acceptability and NLI rows, as a build writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbprobe.format.items import LABELS
from kbprobe.format.manifest import write_manifest
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS
from tests.manifests import toy_manifest, write_parquet
from tests.release.annotation_toy import make_row, rows_items

NOUNS = ["dog", "cat", "mouse", "car", "bus", "truck", "bicycle", "house", "piano", "toy"]
ADJECTIVES = ["small", "red", "grand", "domestic", "musical"]
PAIRS = 48
"""Pairs of rows in the test split; each pair is a cluster."""


def acceptability_row(at: int) -> dict[str, Any]:
    """Row ``at``: an original, or its change with two words swapped."""
    noun, adjective = NOUNS[at // 2 % 10], ADJECTIVES[at // 20 % 5]
    text = f"A {noun} is {adjective}." if at % 2 == 0 else f"A {noun} {adjective} is."
    return {"question": text, "answer": int(at % 2 == 0)}


def nli_row(at: int) -> dict[str, Any]:
    """Row ``at``: a premise with one of two hypotheses."""
    first, second = NOUNS[at // 2 % 10], NOUNS[(at // 2 * 3 + at // 20 + 1) % 10]
    verb = "is" if at % 2 == 0 else "isn't"
    premise = f"A {first} is larger than a {second}, and the {second} is small."
    hypothesis = f"The {first} {verb} a kind of animal number {at}."
    return {"question": "", "premise": premise, "hypothesis": hypothesis, "answer": at % 3}


def rows_of(setup: str, split: str = "test", pairs: int = PAIRS) -> list[dict[str, Any]]:
    """Return a split's rows, in pairs that share a cluster."""
    made = {ACCEPTABILITY: acceptability_row, NLI: nli_row}[setup]
    texts = list(SETUPS[setup].labels)
    rows = []
    for at in range(2 * pairs):
        own = made(at + (0 if split == "test" else 1000))
        row = make_row(split, at, setup, labelled=True) | own
        row["choices"] = {"text": texts, "label": list(LABELS[: len(texts)])}
        row["answerKey"] = LABELS[row["answer"]]
        row["cluster"] = f"{split}-{at // 2}"
        rows.append(row)
    return rows


def write(folder: Path, setup: str, pairs: int = PAIRS) -> Path:
    """Write a probe with train and test splits, and a further config of questions."""
    splits = {split: rows_items(rows_of(setup, split, pairs)) for split in ("train", "test")}
    questions = rows_items([make_row("test", at, "mc_qa", labelled=True) for at in range(10)])
    folder.mkdir(parents=True)
    configs = {"default": splits, "minimal_pairs": {"test": questions}}
    files = write_parquet(folder, configs)
    write_manifest(folder, toy_manifest(folder.name, files))
    return folder
