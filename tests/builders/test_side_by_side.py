"""Probes of one command, built side by side in forked processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbprobe.forks import Forks, process_limit
from tests.builders.test_output import files_of
from tests.commands import interrupted

Run = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can fork safely")

SEVERAL = ("multihop_comparison", "age_comparison", "object_comparison")
SMALL = ("--format", "jsonl", "--limit", "120", "--no-audit")


def test_bytes_and_reports_do_not_depend_on_the_number_of_processes(
    tmp_path: Path, build_probe: Run
) -> None:
    """The largest is built first, and reported when its turn comes."""
    ways = {}
    for workers in ("1", "3"):
        done = build_probe(*SEVERAL, *SMALL, "--json", "-o", "probes", "--workers", workers)
        assert done.returncode == 0, done.stderr
        ways[workers] = done.stdout, files_of(tmp_path / "probes")
        (tmp_path / "probes").rename(tmp_path / workers)
    assert ways["1"] == ways["3"]
    told = [json.loads(line) for line in ways["3"][0].splitlines()]
    assert [manifest["probe"] for manifest in told] == [*SEVERAL]


def test_of_several_probes_the_others_are_built_and_the_failed_one_is_named(
    tmp_path: Path, build_probe: Run
) -> None:
    recipe = tmp_path / "some.yaml"
    recipe.write_text(
        "format: jsonl\noptions: {limit: 120}\nprobes:\n"
        + "".join(f"  - probe: {name}\n" for name in SEVERAL).replace(
            "age_comparison", "age_comparison\n    options: {limit: 1}"
        )
    )
    done = build_probe("--recipe", "some.yaml", "--no-audit", "--workers", "2")
    assert done.returncode == 1
    assert "age_comparison: --limit 1: rows that belong together" in done.stderr
    assert "1 of 3 probes were not built" in done.stderr
    built = [line for line in done.stdout.splitlines() if " rows (" in line]
    assert [line.partition(":")[0] for line in built] == [SEVERAL[0], SEVERAL[2]]
    assert sorted(path.name for path in (tmp_path / "probes").iterdir()) == sorted(
        {*SEVERAL} - {"age_comparison"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True], ids=["of the parent", "from the terminal"])
def test_an_interrupt_ends_all_processes_and_leaves_nothing_half_written(
    group: bool, tmp_path: Path, command_line: list[str], environment: dict[str, str]
) -> None:
    large = ("--limit", "100000", "--format", "jsonl", "--workers", "2", "-o", "probes")
    code, errors = interrupted(
        [*command_line, *SEVERAL, *large],
        lambda: list(tmp_path.glob("probes/.*.new-*")),
        group,
        cwd=tmp_path,
        env=environment,
    )
    assert code == 130
    assert errors.strip().startswith("build-probe: Interrupted; nothing was left half written.")
    left = list(tmp_path.glob("probes/*"))
    assert all((folder / "manifest.json").is_file() for folder in left)
    assert not list(tmp_path.glob("probes/.*"))


def test_a_job_whose_process_ends_is_left_to_the_caller() -> None:
    def work(number: int, tell: Callable[[str], None]) -> int:
        tell("working")
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 10 * number

    told = []
    with Forks(2, work) as forks:
        outcomes = list(forks.outcomes(range(6), lambda phase, *_: told.append(phase)))
    results = [outcome and outcome.result for outcome in outcomes]
    assert results == [0, None, 20, 30, 40, 50]
    assert told.count("working") == 6
    assert 1 <= process_limit(1 << 60) <= process_limit(1) <= (os.cpu_count() or 1)


def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbprobe.forks.PATIENCE", 0.2)

    def work(number: int, tell: Callable[[str], None]) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt), Forks(1, work) as forks:
            list(forks.outcomes([0], lambda *_: None))
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert not multiprocessing.active_children()


def test_probes_whose_processes_ended_are_built_by_the_command_itself(
    tmp_path: Path, build_probe: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where memory does not suffice for several at once."""
    monkeypatch.setattr(
        "builders.engine.side_by_side.write", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    )
    done = build_probe(*SEVERAL, *SMALL, "--json", "-o", "probes", "--workers", "2")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line)["probe"] for line in done.stdout.splitlines()]
    assert told == [*SEVERAL]
    assert sorted(path.name for path in (tmp_path / "probes").iterdir()) == sorted(SEVERAL)
