"""Suites: recipes that state checksums, the record of what was built, and kbprobe-1 itself."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.engine.command import run_jobs
from builders.engine.recipe import find_suite, read_recipe
from kbprobe.errors import UsageError
from kbprobe.format.manifest import read_manifest
from kbprobe.format.suite import checksums, read_suite

Run = Callable[..., "subprocess.CompletedProcess[str]"]

RECIPE = """
suite: ages
checksums: ages.sha256
output: suites/ages
format: jsonl
options: {train_rows: 60, validation_rows: 20, test_rows: 40, controls: false, variants: false}
probes:
  - {probe: age_comparison, options: {test_rows: 30}}
  - {probe: multihop_comparison, output: hops}
"""
FILES = 6


@pytest.fixture
def recipe(tmp_path: Path, build_probe: Run) -> Path:
    """A recipe with the checksums of what it builds, which is built."""
    path = tmp_path / "ages.yaml"
    path.write_text(RECIPE.replace("checksums", "# checksums"))
    done = build_probe("--recipe", "ages.yaml", "--no-audit")
    assert done.returncode == 0, done.stderr
    assert "states no checksums" in done.stdout
    folder = tmp_path / "suites" / "ages"
    sums = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.jsonl"))
    }
    assert len(sums) == FILES
    lines = [f"{digest}  {name}\n" for name, digest in sums.items()]
    (tmp_path / "ages.sha256").write_text("".join(lines))
    path.write_text(RECIPE)
    return path


def test_a_suite_has_the_checksums_of_its_recipe_or_is_none(
    recipe: Path, tmp_path: Path, build_probe: Run
) -> None:
    folder = tmp_path / "suites" / "ages"
    suite = read_suite(folder)
    assert suite is not None
    assert (suite.name, suite.seed, suite.standard) == ("ages", 0, False)

    done = build_probe("--recipe", "ages.yaml", "--no-audit")
    assert f"All {FILES} files have the checksums of ages." in done.stdout
    suite = read_suite(folder)
    assert suite is not None
    assert (suite.title, suite.standard) == ("ages", True)
    assert [one.folder for one in suite.probes] == ["age_comparison", "hops"]
    splits = read_manifest(folder / "age_comparison").counts.splits
    assert (splits["train"], splits["validation"], splits["test"]) == (60, 20, 30)
    assert read_manifest(folder / "hops").counts.splits["test"] == 39  # three to a cluster

    record = folder / "suite.json"
    built = record.read_text()
    record.write_text(built.replace('"name": "ages"', '"name": "kbprobe-1"'))
    with pytest.raises(UsageError, match=r"suite\.json was changed.*Build the suite again"):
        read_suite(folder)
    record.write_text(built)

    sums = tmp_path / "ages.sha256"
    sums.write_text(sums.read_text().replace("  hops/data/test.jsonl", "0  hops/data/test.jsonl"))
    done = build_probe("--recipe", "ages.yaml", "--no-audit")
    assert done.returncode == 1
    assert f"1 of {FILES} files" in done.stderr
    assert "hops/data/test.jsonl differs" in done.stderr
    assert read_suite(folder) is None


def test_another_seed_is_a_sibling_in_a_folder_of_its_own(
    recipe: Path, tmp_path: Path, build_probe: Run
) -> None:
    done = build_probe("--recipe", "ages.yaml", "--no-audit", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert "Not compared with the checksums of ages" in done.stdout
    sibling = read_suite(tmp_path / "suites" / "ages-seed-7")
    assert sibling is not None
    assert (sibling.title, sibling.standard) == ("ages, seed 7", False)
    own = read_suite(tmp_path / "suites" / "ages")
    assert own is not None
    assert [one.folder for one in own.probes] == [one.folder for one in sibling.probes]
    pairs = zip(own.probes, sibling.probes, strict=True)
    assert all(one.rows_digest != other.rows_digest for one, other in pairs)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"test_rows": "test_row"}, "options.test_row: no probe of the recipe has this option"),
        ({"format: jsonl": "format: csv"}, "format"),
        ({"ages.sha256": "none.sha256"}, "none.sha256"),
        ({"suites/ages": "/etc/ages"}, "output: /etc/ages is outside of the working directory"),
        ({"suites/ages": "../ages"}, "give it on the command line: -o ../ages"),
    ],
)
def test_a_faulty_suite_is_refused(
    tmp_path: Path, build_probe: Run, changed: dict[str, str], words: str
) -> None:
    text = RECIPE
    for old, new in changed.items():
        text = text.replace(old, new, 1)
    (tmp_path / "ages.yaml").write_text(text)
    (tmp_path / "ages.sha256").touch()
    done = build_probe("--recipe", "ages.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--suite", "kbprobe1"], "Did you mean 'kbprobe-1'?"),
        (["--suite", "kbprobe-1", "--template", "x.yaml"], "--template does not go with --suite"),
        (["--suite", "kbprobe-1", "wordnet_antonymy"], "one of them"),
    ],
)
def test_impossible_suites_are_refused(build_probe: Run, words: list[str], told: str) -> None:
    done = build_probe(*words)
    assert done.returncode == 2
    assert told in done.stderr


CHEAP = ("age_comparison", "multihop_comparison", "object_comparison")
"""Probes of kbprobe-1 that are built in a second or two."""


SUITES = ("kbprobe-1", "kbprobe-2")


def standard(suite: str, folder: Path) -> Any:
    return read_recipe(find_suite(suite), folder, {"template": None, "audit": False})


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_cheap_probes_have_the_bytes_of_the_suites_checksums(suite: str, tmp_path: Path) -> None:
    """A change that fails this, or the next test, makes another suite: these never change."""
    declared = standard(suite, tmp_path)
    run_jobs([job for job in declared.jobs if job[0].probe.name in CHEAP], False, False)
    for name in CHEAP:
        found = checksums(name, read_manifest(tmp_path / name))
        stated = declared.stated.items()
        assert found == {path: sha for path, sha in stated if path.startswith(f"{name}/")}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_has_the_bytes_of_its_checksums(
    suite: str, build_probe_process: Run, tmp_path: Path
) -> None:
    done = build_probe_process("--suite", suite, "--no-audit")
    assert done.returncode == 0, done.stderr
    assert f"files have the checksums of {suite}." in done.stdout
    folder = tmp_path / "probes" / suite
    assert json.loads((folder / "suite.json").read_text())["standard"]
    for job in standard(suite, folder).jobs:
        assert 400 < read_manifest(job[1]).counts.splits["test"] <= 1000
