"""Benchmarks: what they import from kbprobe exists, and continuous integration runs each."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

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
