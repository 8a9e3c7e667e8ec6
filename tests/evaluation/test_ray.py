"""Workers that Ray starts: the same results as in one process, and none lost with a worker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from evaluation.executors.base import Ended
from evaluation.suites.run import RECORD
from tests.evaluation.test_suites import declare, read_record
from tests.reliability.commands import _hash

pytestmark = [pytest.mark.slow, pytest.mark.posix]
ray = pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")


@pytest.fixture(autouse=True)
def in_world(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)


def suite(path: Path, output: Path, *words: str) -> str:
    """Run a suite in a process of its own, with a cache of its own; return what it reports."""
    environment = {
        **os.environ, "KBPROBE_CACHE": str(output.with_suffix(".cache")), "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    command = [sys.executable, "-m", "evaluation.cli", "suite", str(path), "-o", str(output)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def held(output: Path) -> dict[str, str]:
    """Return the hashes of a suite's files, times and pages left out."""
    paths = (path for path in output.rglob("*") if path.is_file() and path.suffix != ".html")
    return {path.relative_to(output).as_posix(): _hash(path) for path in paths}


def test_workers_write_what_one_process_writes(tmp_path: Path) -> None:
    curve = {"study": "curve", "options": {"sizes": [4, 8], "seeds": 2, "learners": ["linear"]}}
    path = declare(
        tmp_path, probes=["clozes"], models=["bert", "gpt2"], seeds=[0, 1],
        studies=["zero_shot", curve], options={"device": "cpu"},
    )  # fmt: skip
    suite(path, tmp_path / "one")
    said = suite(path, tmp_path / "two", "--executor", "ray", "--workers", "2")
    assert "0 of them finished before; 0 failed" in said
    assert held(tmp_path / "two") == held(tmp_path / "one")
    again = suite(path, tmp_path / "two", "--executor", "ray", "--workers", "2")
    runs = len(read_record(tmp_path / "two").runs)
    assert f"{runs} runs, {runs} of them finished before" in again


def test_results_come_back_from_workers_that_share_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluation.executors import ray as executor
    from evaluation.executors.ray import RayWorkers
    from evaluation.suites.file import read_suite
    from evaluation.suites.run import SuitePlan, run_suite

    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    path = declare(tmp_path, probes=["clozes"], models=["gpt2"], options={"device": "cpu"})
    suite(path, tmp_path / "one")
    plan = SuitePlan.of(*read_suite(path, tmp_path / "two"))
    seen = executor._starter

    def elsewhere(module: object, gpus: float, marker: tuple[str, str]) -> object:
        return seen(module, gpus, (f"{marker[0]}-of-another-disk", marker[1]))

    monkeypatch.setattr(executor, "_starter", elsewhere)
    assert not run_suite(plan, RayWorkers(workers=1)).failed
    assert held(tmp_path / "two") == held(tmp_path / "one")


def test_a_worker_that_is_killed_is_replaced(world: Path, tmp_path: Path) -> None:
    for number in range(6):
        shutil.copytree(world / "questions", tmp_path / "probes" / f"questions-{number}")
        with (tmp_path / "probes" / f"questions-{number}" / "test.jsonl").open("a") as file:
            file.write("\n" * number)  # other content, the same rows
    path = declare(
        tmp_path, probes=[f"{tmp_path}/probes/*"], models=["gpt2", "llama"], seeds=[0, 1],
        options={"device": "cpu"},
    )  # fmt: skip
    suite(path, tmp_path / "one")
    killed: list[int] = []

    def strike() -> None:
        """Kill the first worker that has written results."""
        while not killed:
            time.sleep(0.01)
            if not list((tmp_path / "two" / "runs").glob("*/results.json")):
                continue
            listed = subprocess.run(["pgrep", "-f", "^ray::Worker"], capture_output=True, text=True)
            for process in listed.stdout.split()[:1]:
                os.kill(int(process), signal.SIGKILL)
                killed.append(int(process))

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    said = suite(path, tmp_path / "two", "--executor", "ray", "--workers", "2")
    thread.join(10)
    assert killed
    assert held(tmp_path / "two") == held(tmp_path / "one")
    reported = [line for line in said.splitlines() if line.startswith("[")]
    assert len(reported) == len(read_record(tmp_path / "two").runs) == 24
    assert max(Counter(line.partition("] ")[2] for line in reported).values()) == 1
    assert not list((tmp_path / "two").rglob(".*"))
    assert (tmp_path / "two" / RECORD).is_file()


def test_a_batch_that_loses_its_worker_each_time_is_given_up(tmp_path: Path) -> None:
    from evaluation.executors.ray import LOST, RayWorkers
    from evaluation.runs.spec import RunSpec

    spec = RunSpec.parse("clozes", "gpt2", {"device": "cpu"}, tmp_path / "out" / "run")
    executor = RayWorkers(workers=1)

    class Deadly:
        """Stands for a worker whose process ends as soon as it is given a run."""

        def __init__(self, *_: object) -> None:
            pass

        def run(self, _specs: object) -> list[tuple[Ended, None]]:
            os._exit(1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluation.executors.ray.Worker", Deadly)
        (ended,) = executor.execute([spec])
    assert ended.error is not None
    assert f"its worker was lost {LOST + 1} times" in ended.error
