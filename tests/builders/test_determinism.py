"""The same knowledge base, options and seed give the same bytes, anywhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from tests.real_data import MINIATURE

Built = Callable[[str, str], Path]
Rows = list[dict[str, Any]]

SMALL = {"wordnet": MINIATURE}

pytestmark = pytest.mark.usefixtures("miniature")

ELSEWHERE = """
import json
import sys
from dataclasses import replace
from pathlib import Path

from builders.engine.pipeline import build, request_of, write
from kbprobe.format.manifest import read_manifest

for name, manifest in zip(sys.argv[2::2], sys.argv[3::2]):
    request = replace(request_of(read_manifest(Path(manifest))), audit=False)
    write(build(request), Path(sys.argv[1]) / name)
"""


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "data").iterdir())
    }


@pytest.mark.parametrize(
    ("hash_seed", "builds"),
    [
        pytest.param("1", [("wordnet_hypernymy", "miniature")], marks=pytest.mark.slow),
        ("2", [("wordnet_hyponymy", "small")]),
        pytest.param("2", [("wordnet_hyponymy", "published")], marks=pytest.mark.slow),
    ],
)
def test_another_process_writes_the_same_bytes(
    tmp_path: Path,
    environment: dict[str, str],
    built: Built,
    hash_seed: str,
    builds: list[tuple[str, str]],
) -> None:
    wanted = [
        word for name, kind in builds for word in (name, str(built(name, kind) / "manifest.json"))
    ]
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path), *wanted],
        check=True,
        cwd=tmp_path,
        env=environment | {"PYTHONHASHSEED": hash_seed},
        timeout=300,
    )
    for name, kind in builds:
        here, there = digests(built(name, kind)), digests(tmp_path / name)
        assert len(here) >= 2
        assert here == there


def small(folder: Path, name: str = "wordnet_hyponymy", **changes: Any) -> Rows:
    """The rows of a small build with other options, seed or template."""
    probe = find_probe(name)
    request = {key: changes.pop(key) for key in ("seed", "template") if key in changes}
    options = probe.options.parse({**SMALL, "pos": ("verb",), "tier": "full", **changes}, name)
    write(build(Request(probe, options, audit=False, **request)), folder)
    return [
        row for path in sorted(folder.glob("data/*")) for row in pq.read_table(path).to_pylist()
    ]


@pytest.mark.slow
def test_another_seed_gives_other_rows_but_the_same_ids_to_the_same_rows(tmp_path: Path) -> None:
    """What identifies a row is what it asks, with which gold and which distractors."""

    def identified(rows: Rows) -> dict[tuple[str, str, frozenset[str]], str]:
        return {
            (row["context"], row["choice_nodes"][row["answer"]], frozenset(row["choice_nodes"])): (
                row["id"]
            )
            for row in rows
        }

    # Few hypernyms to draw from, so that other seeds often draw the same.
    options: dict[str, Any] = {
        "families": ("hypernym",), "sampling": "uniform", "max_fill": 0, "choices": 3,
        "golds_per_hop": 0, "train_rows": 0, "tier": "full",
        "max_hops": 4, "wordnet": "3.0",
    }  # fmt: skip
    one, other = (small(tmp_path / str(seed), seed=seed, **options) for seed in (0, 1))
    assert [row["id"] for row in one] != [row["id"] for row in other]
    first, second = identified(one), identified(other)
    both = first.keys() & second.keys()
    assert len(both) > 50
    assert all(first[key] == second[key] for key in both)
    # Wordings, order and splits are drawn anew.
    questions = {row["id"]: row["question"] for row in one}
    changed = [row for row in other if questions.get(row["id"], row["question"]) != row["question"]]
    assert len(changed) > 25


@pytest.mark.slow
def test_another_wording_changes_no_row_but_its_question(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "question: [{id: own, text: 'A sort of {{ word }}, in {{ sentence }}:', key_words: []}]\n",
        encoding="utf-8",
    )
    plain = small(tmp_path / "plain", limit=200)
    reworded = small(tmp_path / "reworded", limit=200, template=tmp_path / "t.yaml")
    for one, other in zip(plain, reworded, strict=True):
        assert one["question"] != other["question"]
        assert other["template"] == "own"
        for column in one.keys() - {"question", "template"}:
            assert one[column] == other[column], column


@pytest.mark.slow
def test_rows_of_a_limited_build_are_rows_of_the_full_one(tmp_path: Path) -> None:
    full = {row["id"]: row for row in small(tmp_path / "full")}
    limited = small(tmp_path / "limited", limit=200)
    assert 150 < len(limited) <= 200 < len(full)
    for row in limited:
        assert full[row["id"]] == row


@pytest.mark.slow
def test_more_families_leave_the_rows_of_the_others_as_they_are(tmp_path: Path) -> None:
    """A draw depends on its question and family alone, not on what else is built."""
    every = {"train_rows": 0, "tier": "full"}
    alone = small(tmp_path / "alone", families=("cousin_branch",), **every)
    beside = small(tmp_path / "beside", families=("random", "cousin_branch"), **every)
    near = {row["id"]: row for row in beside if row["distractor_family"] == "cousin_branch"}
    assert len(alone) > 200
    assert len(beside) > len(near)
    assert {row["id"]: row["choice_nodes"] for row in alone} == {
        one: row["choice_nodes"] for one, row in near.items()
    }
