"""Benchmarks: what they import from kbprobe exists, and continuous integration runs each."""

from __future__ import annotations

import ast
import gzip
import json
import re
import runpy
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import people
from builders.engine.probe import find_probe

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
OURS = ("kbprobe", "kb_cache", "builders", "evaluation", "release")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_imports_from_kbprobe_exist(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            module = import_module(node.module or "")
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                assert hasattr(module, alias.name) or find_spec(whole), whole


def test_each_is_run_once_as_small_as_it_gets() -> None:
    script = (ROOT / ".ci" / "benchmarks").read_text(encoding="utf-8")
    commands = {path.stem for path in SCRIPTS if "__main__" in path.read_text(encoding="utf-8")}
    (lines,) = re.findall(r"<<END\n(.+?)END", script, re.S)
    assert sorted(line.split()[0] for line in lines.splitlines()) == sorted(commands)
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "/.ci/benchmarks" in steps


def test_the_options_that_ceilings_names_exist() -> None:
    limits = runpy.run_path(str(ROOT / "benchmarks" / "ceilings.py"))["LIMITS"]
    for name, cases in limits.items():
        for options in cases.values():
            find_probe(name).options.parse(dict(options), name)


def row_about(word: str, relation: str, *choices: str, **more: Any) -> dict[str, Any]:
    """Return a row about a word, whose gold is the first choice."""
    return {
        "id": word,
        "question": f"What is {word}?",
        "choices": {"text": list(choices)},
        "answer": 0,
        "relation": relation,
        "concept": f"{word}.n.01",
        "surface_form": "",
        "arguments": [],
        "distractor_family": "field",
        **more,
    }


def test_distractors_that_people_name_are_counted_by_family(tmp_path: Path) -> None:
    answers = {
        "sea_cow": {
            "hyp": {
                "[W] is a kind of [V]": [["mammal", "swimmer"], ["Sea-Mammal"], ["animal"], []],
                "[W] is a type of [V]": [["swimmer"], ["mammal"], ["fish"], ["animal"]],
            },
            "mero": {"[W] has [V]": [["fin"], ["fin"], [], []]},
        },
        "hall": {"hyp": {"[W] is a kind of [V]": [["room"], ["room"], [], []]}},
    }
    path = tmp_path / "people.json.gz"
    path.write_bytes(gzip.compress(json.dumps(answers).encode()))
    rows = [
        row_about("sea_cow", "hypernym", 'mammal, defined as "fin"', "fish (or swimmer)", "fin"),
        row_about("sea_cow", "hypernym", "aquatic animal", "fish", "tool"),
        row_about("sea_cow", "hypernym", "animal", "mammal", "tool", distractor_family="random"),
        row_about("sea_cow", "part", "fin", "swimmer", "hoof"),
        row_about("hallway", "hypernym", "corridor", "room (or chamber)", surface_form="hall"),
        row_about("hallway", "hypernym", "corridor", "room"),
        row_about("sea_cow", "synonym", "manatee", "mammal"),
    ]
    found = people.compared(rows, people.read_answers(path))
    assert found.line(["field"]) == [6, 4, 2, 2]
    assert found.line(["random"]) == [1, 1, 1, 1]
    named = [(row["id"], texts) for row, texts in found.contradicted]
    assert named == [
        ("sea_cow", ["fish (or swimmer)"]),
        ("sea_cow", ["mammal"]),
        ("hallway", ["room (or chamber)"]),
    ]
    every = people.compared(rows, people.read_answers(path), least=1)
    assert every.line(every.counts)[2] == 4, "fish is named once"


def test_the_tests_that_other_kernels_repeat_exist() -> None:
    script = (ROOT / ".ci" / "kernels").read_text(encoding="utf-8")
    (listed,) = re.findall(r"tests=\(\n(.+?)\n\)", script, re.S)
    listed = " ".join(listed.split())
    shown = subprocess.run(
        ["bash", "-c", f"echo {listed}"], capture_output=True, text=True, check=True
    )
    paths = shown.stdout.split()
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
