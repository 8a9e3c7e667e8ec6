"""Files in the working directory that have the names of packages are not run."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evaluation.executors.ray import connected
from evaluation.reproduce import sources
from kbprobe.processes import outside_working_directory

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kbprobe", "kb_cache", "builders", "evaluation", "release")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with modules that note that they ran."""
    for name in ("builders", "click", "evaluation", "kb_cache", "pydantic", "transformers"):
        note = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n"
        (tmp_path / f"{name}.py").write_text(f"{note}raise SystemExit({name!r})\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path[1:]]))
    return tmp_path


def test_commands_import_nothing_from_the_working_directory(hostile: Path) -> None:
    for words in (["build-probe", "list"], ["evaluate-probe", "--help"]):
        command = [sys.executable, "-m", "kbprobe", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert not (hostile / "ran").exists()


def test_a_probe_is_built_without_modules_of_the_working_directory(hostile: Path) -> None:
    why = sources.build(["no_such_probe", "-o", str(hostile / "probe")], lambda *_: None)
    assert not (hostile / "ran").exists()
    assert why is not None
    assert "no_such_probe" in why


def test_workers_import_nothing_from_the_working_directory(hostile: Path) -> None:
    with outside_working_directory():
        there = Path.cwd()
    assert Path.cwd() == hostile
    assert there == ROOT or not list(there.glob("*.py"))


@pytest.mark.slow
def test_ray_imports_nothing_from_the_working_directory(hostile: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'kbprobe[ray]'")
    with connected(None) as ray:
        found = ray.get(ray.remote(_finds_hostile_transformers).remote(str(hostile)))
    assert not found
    assert not (hostile / "ran").exists()


def _finds_hostile_transformers(folder: str) -> bool:
    from importlib.util import find_spec

    spec = find_spec("transformers")
    return spec is not None and str(spec.origin).startswith(folder)


def test_python_is_started_in_one_place_alone() -> None:
    uses = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "[sys.executable" in path.read_text("utf-8")
    ]
    assert uses == ["kbprobe/processes.py"]


def run_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, in which PY is this interpreter."""
    environment = {**os.environ, "PY": sys.executable, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("closed", "code"),
    [
        *(pytest.param(one, 0, marks=pytest.mark.slow) for one in (">&-", "2>&-")),
        *(("<&- >&- 2>&-", 0), (">/dev/full", 1)),
    ],
)
def test_closed_streams_are_no_faults(closed: str, code: int) -> None:
    done = run_shell(f'"$PY" -m builders.cli list {closed}')
    assert done.returncode == code
    assert "fault" not in done.stderr


@pytest.mark.posix
def test_a_reader_that_has_exited_is_no_fault() -> None:
    done = run_shell('{ sleep 1; "$PY" -m kb_cache.cli list; echo $? >&2; } | true')
    assert done.stderr.strip() == "1"


@pytest.mark.slow
def test_help_and_probes_work_without_docstrings() -> None:
    code = "from builders.engine.probe import find_probe as f; print(f('age_comparison').summary)"
    lines = ["export PYTHONOPTIMIZE=2", '"$PY" -m kb_cache.cli fetch --help', f'"$PY" -c "{code}"']
    done = run_shell("; ".join(lines))
    assert "Compile GCIDE" in done.stdout, done.stdout
    assert "Is a person of one age" in done.stdout


def test_a_zipped_package_says_that_it_must_be_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "kbprobe.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in (path for name in PACKAGES for path in (ROOT / name).rglob("*.py")):
            archive.write(path, path.relative_to(ROOT))
    command = [sys.executable, "-m", "kbprobe", "kb-cache", "list"]
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "Install it: pip install FILE.whl" in done.stderr
