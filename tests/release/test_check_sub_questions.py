"""The check of a probe with a further config that asks for its facts alone."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from release.checks.checking import check

TOY = Path(__file__).resolve().parents[1] / "builders" / "test_sub_questions.py"


@pytest.fixture(scope="module")
def toy() -> ModuleType:
    """The toy probe of the builders' own test."""
    spec = importlib.util.spec_from_file_location("toy_composition", TOY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy_composition"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(toy: ModuleType, tmp_path: Path) -> Path:
    made = toy.built()
    toy.write(made, tmp_path / "toy")
    return tmp_path / "toy"


def failures(folder: Path) -> dict[str, str]:
    return {one.name: f"{one.what} ({one.where})" for one in check(folder).failed}


def edit(folder: Path, change: Any) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_rows_and_facts_hold_up(folder: Path) -> None:
    # Sixty rows that any baseline gets right: its audit is flagged, and nothing else.
    assert failures(folder).keys() <= {"audit"}


def test_a_sub_question_configs_counts_and_audit_are_looked_at(folder: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["sub_questions"]["facts"]["counts"]["clusters"] = 1
        manifest["sub_questions"]["facts"]["audit"] = None

    edit(folder, change)
    found = failures(folder)
    assert "facts" in found["counts"]
    assert "without an audit (facts)" in found["audit"]


def test_facts_that_no_sub_question_asks_for_are_found(folder: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        gone = {"test"}
        manifest["files"] = [
            one
            for one in manifest["files"]
            if one["config"] == "default" or one["split"] not in gone
        ]

    edit(folder, change)
    found = failures(folder)
    assert "asked for in no sub-question" in found["facts"]
    assert "facts/data/test" in found["other files"]
