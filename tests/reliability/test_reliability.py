"""A short run of the reliability suite; docs/reliability.md tells of the long one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from kbprobe.errors import UsageError
from tests.reliability import workers
from tests.reliability.target import Refused, Target

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="workers are forked and measured as on Linux"
)


@pytest.mark.slow
def test_mutated_files_are_read_right_or_refused(tmp_path: Path) -> None:
    """Some mutations of every reader, always the same."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability", "--mutations", "4", "--keep", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "n-triples" in done.stdout


def seeds(folder: Path) -> list[Path]:
    (folder / "input.txt").write_bytes(b"sound")
    return [folder / "input.txt"]


def reader(damage: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader that reads sound input, and does something else with any other."""
    return lambda path: None if path.read_bytes() == b"sound" else damage(path)


def refuse(error: Exception) -> NoReturn:
    raise error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "outcome"),
    [
        (lambda path: None, "read"),
        (lambda path: refuse(UsageError(f"{path} is damaged")), "refused"),
        (lambda path: refuse(UsageError("it is damaged")), "unnamed"),
        (lambda path: dict[str, int]()["x"], "traceback"),
        (lambda path: time.sleep(60), "hang"),
        (lambda path: sum(range(10**12)), "hang"),
        (lambda path: bytearray(os.urandom(1 << 20) * 160), "memory"),
        (lambda path: os._exit(3), "died"),
    ],
)
def test_every_way_of_failing_is_noticed(
    monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], outcome: str
) -> None:
    monkeypatch.setattr(workers, "TIME_LIMIT", 1.0)
    monkeypatch.setattr(workers, "CLOCK_LIMIT", 3.0)
    monkeypatch.setattr(workers, "MEMORY_LIMIT", 64 << 20)
    found = workers.run_target(Target("toy", seeds, reader(damage)), range(2), seed=0)
    assert found.counts == {outcome: 2}
    assert len(found.failures) == (0 if outcome in workers.PASSED else 2)


def test_a_reading_is_compared_with_an_independent_one(tmp_path: Path) -> None:
    def size(path: Path) -> int:
        if len(path.read_bytes()) < 5:
            raise UsageError(f"{path} is short")
        return len(path.read_bytes())

    def other_size(path: Path) -> int:
        if len(path.read_bytes()) < 4:
            raise Refused("short")
        return min(6, len(path.read_bytes()))

    target = Target("toy", seeds, size, other_size)
    found = workers.run_target(target, range(60), seed=0, keep=tmp_path)
    said = {failure.said.split(":")[0].split(" 7")[0] for failure in found.failures}
    assert found.counts["read"]
    assert found.counts["refused"]
    assert "refused what an independent reader accepts" in said
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {f"toy-{failure.case}-input.txt" for failure in found.failures}
