"""A probe with wordings of its own making, and a further config that asks for single facts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kbprobe
from builders.engine import probe as registry
from builders.engine.options import ProbeOptions
from builders.engine.pipeline import build, write
from builders.engine.plan import Facts, Nodes, Plan, Questions
from builders.engine.probe import Probe
from builders.engine.render.template_file import Template, Wording
from builders.engine.request import Request
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.strategies import WordingsByName
from kbprobe.errors import UsageError
from kbprobe.rng import RandomGenerator

NAME = "toy_composition"
SIZE = 60
"""Numbers; a question asks for the one that is two ahead, its facts for the next one each."""


@dataclass(frozen=True)
class Ring:
    name: str = "ring"
    version: str = "1"
    digest: str = "2" * 64
    licence: str = "CC0-1.0"
    queries: list[dict[str, Any]] = field(default_factory=lambda: [{"rows": SIZE}])


def wordings(options: Any) -> Template:
    texts = {
        "two-1": "Two after {{ x }}?",
        "two-2": "What is {{ x }} and two?",
        "one-1": "One after {{ x }}?",
    }
    made = tuple(Wording(id, text, ("after",) * ("after" in text), 1) for id, text in texts.items())
    return Template(NAME, "Sums.", made, "{{ x }}", ("x",), "3" * 64, ("made",))


def plan_of(step: int, wordings: str, split: Any, **more: Any) -> Plan:
    at = np.arange(SIZE)
    texts = pa.array([f"number {i}" for i in range(SIZE)])
    gold = (at + step) % SIZE
    edges = ((at[:, None] + np.arange(step)) % SIZE).ravel()
    fits = WordingsByName(np.zeros(SIZE, dtype=np.int64), (wordings,))
    asks = edges + 1000 if step > 1 else None
    return plan_rows(
        RowArrays(
            nodes=np.stack([gold, (gold + 7) % SIZE, (gold + 11) % SIZE], axis=1),
            split=split,
            concept=at,
            hops=step,
        ),
        questions=Questions.from_columns(at + 1000, {"x": texts}, fits),
        choices=Nodes.from_columns(texts, field="x"),
        families=["near"],
        relation="after",
        facts=Facts.from_codes(edges, 0, (edges + 1) % SIZE, texts, ("next",), step, asks),
        **more,
    )


def toy_composition(knowledge: Ring, options: ProbeOptions, rng: RandomGenerator) -> Plan:
    """Which number comes two after another?"""
    split = np.repeat([0, 1, 2], SIZE // 3)
    return plan_of(2, "two", split, sub_questions={"facts": plan_of(1, "one", split)})


PROBE = Probe(
    name=NAME,
    options=ProbeOptions,
    plan=toy_composition,
    open=lambda options: Ring(),
    question_fields=frozenset({"x"}),
    choice_fields=frozenset({"x"}),
    setup="mc_qa",
    sub_questions=("facts",),
    wordings=wordings,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.all_probes()
    monkeypatch.setitem(registry._registered, NAME, PROBE)


def built(**options: Any) -> Any:
    return build(Request(PROBE, ProbeOptions.parse(options, NAME)))


def rows_of(made: Any, config: str) -> list[dict[str, Any]]:
    return [row for items in made.configs[config].values() for row in items.table().to_pylist()]


def test_each_triple_names_the_row_that_asks_for_it_alone() -> None:
    made = built()
    facts = {row["id"]: row for row in rows_of(made, "facts")}
    rows = rows_of(made, "default")
    assert len(rows) == len(facts) == SIZE
    for row in rows:
        assert len(row["fact_ids"]) == len(row["triples"]) == 2
        for triple, name in zip(row["triples"], row["fact_ids"], strict=True):
            assert facts[name]["triples"] == [triple]
            assert facts[name]["question"] == f"One after {triple['subject']}?"
    assert all(fact["fact_ids"] == [] for fact in facts.values())
    assert not facts.keys() & {row["id"] for row in rows}


def test_facts_that_no_row_rests_on_are_left_out() -> None:
    made = built(limit=10)
    rows, facts = rows_of(made, "default"), rows_of(made, "facts")
    assert len(rows) == 10
    named = {name for row in rows for name in row["fact_ids"]}
    assert named == {row["id"] for row in facts}


def test_questions_use_the_wordings_that_fit_them() -> None:
    made = built()
    assert {row["template"] for row in rows_of(made, "default")} == {"two-1", "two-2"}
    assert {row["template"] for row in rows_of(made, "facts")} == {"one-1"}


def test_a_template_file_is_refused_where_the_probe_makes_its_own(tmp_path: Path) -> None:
    options = ProbeOptions.parse({}, NAME)
    request = Request(PROBE, options, template=tmp_path / "mine.yaml")
    with pytest.raises(UsageError, match=f"{NAME}: --template does not apply"):
        _ = request.wordings


@pytest.mark.slow
def test_folder_card_and_manifest_tell_of_both(tmp_path: Path) -> None:
    made = built()
    write(made, tmp_path / NAME)
    manifest = json.loads((tmp_path / NAME / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["knowledge_base"]["queries"] == [{"rows": SIZE}]
    assert manifest["sub_questions"]["facts"]["counts"]["rows"] == SIZE
    assert manifest["sub_questions"]["facts"]["audit"]["baselines"]
    assert {entry["config"] for entry in manifest["files"]} == {"default", "facts"}
    card = (tmp_path / NAME / "README.md").read_text(encoding="utf-8")
    assert "## The facts alone" in card
    assert "## Controls" not in card
    facts = kbprobe.load(tmp_path / NAME, config="facts")
    default = kbprobe.load(tmp_path / NAME)
    assert set(default["test"]["fact_ids"][0]) <= {
        row for split in facts.values() for row in split["id"]
    }
