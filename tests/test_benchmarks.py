"""Benchmarks run seldom: what they import from kbprobe exists."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "benchmarks").glob("*.py"))
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
