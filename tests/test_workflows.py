"""The workflows on GitHub: pinned actions, stated permissions, the versions that are declared."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
NAMED_PIN = re.compile(r"uses: (\S+@[0-9a-f]{40}) # (v\d+\.\d+\.\d+)\n")
VERSION = "Programming Language :: Python :: "

each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def workflow(path: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in workflow(path)["jobs"].values():
        yield from job["steps"]


def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def test_the_tests_run_on_the_versions_declared() -> None:
    matrix = workflow(ROOT / ".github/workflows/tests.yml")["jobs"]["readme"]["strategy"]["matrix"]
    declared = [
        line.removeprefix(VERSION) for line in project()["classifiers"] if line.startswith(VERSION)
    ]
    assert matrix["python"] == declared
    assert project()["requires-python"] == f">={declared[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


@each
def test_every_action_is_pinned_to_a_commit_and_says_its_version(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert used
    assert [name for name in used if not PINNED.fullmatch(name)] == []
    assert [name for name, _ in NAMED_PIN.findall(path.read_text(encoding="utf-8"))] == used


def test_one_action_has_one_version() -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for path in WORKFLOWS:
        for pin, version in NAMED_PIN.findall(path.read_text(encoding="utf-8")):
            name, _, commit = pin.partition("@")
            found.setdefault("/".join(name.split("/")[:2]), set()).add((commit, version))
    assert {name: pins for name, pins in found.items() if len(pins) > 1} == {}


@each
def test_a_workflow_may_only_read_and_a_job_writes_what_it_says(path: Path) -> None:
    read = workflow(path)
    assert read["permissions"] == {"contents": "read"}
    assert "cancel-in-progress" in read["concurrency"]
    for name, job in read["jobs"].items():
        assert job["timeout-minutes"] <= 90, name
        assert isinstance(job.get("permissions", {}), dict), name
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_only_the_jobs_that_sign_or_publish_may_write() -> None:
    writing = {
        (path.stem, name): {key for key, value in job["permissions"].items() if value == "write"}
        for path in WORKFLOWS
        for name, job in workflow(path)["jobs"].items()
        if "write" in job.get("permissions", {}).values()
    }
    assert writing == {
        ("codeql", "analyse"): {"security-events"},
        ("release", "build"): {"id-token", "attestations"},
        ("release", "publish"): {"id-token"},
        ("release", "release"): {"contents"},
    }


@each
def test_scripts_take_nothing_from_an_event(path: Path) -> None:
    """Titles and branch names would be run as code."""
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


@each
def test_scripts_that_are_called_exist(path: Path) -> None:
    called = re.findall(r"(?<![\w.])\.ci/[\w.-]+", path.read_text(encoding="utf-8"))
    assert [name for name in called if not (ROOT / name).is_file()] == []
