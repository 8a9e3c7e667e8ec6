"""Parts of a benchmark in processes of their own, with their wall time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]

Report = dict[str, Any]


def positive(text: str) -> int:
    """Read a number of an option, which is at least 1.

    Raises:
        ValueError: it is not.
    """
    if (number := int(text)) < 1:
        raise ValueError
    return number


class Finished(NamedTuple):
    """A process that has ended: seconds by the clock and of the processor, memory, output."""

    wall: float
    processor: float
    peak_mib: float
    output: str


def run(command: list[str], folder: Path | None = None, **environment: str) -> Finished:
    """Run a command in a new process, in a folder; its errors go to our standard error.

    Raises:
        SystemExit: it failed.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env=env, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
        output.seek(0)
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        processor = usage.ru_utime + usage.ru_stime
        return Finished(wall, processor, usage.ru_maxrss / unit, output.read())


def run_part(script: str, *words: str, **environment: str) -> Report:
    """Run a script that prints JSON in a fresh process; add its wall time and peak memory.

    What it reports of either itself stays.
    """
    done = run([sys.executable, script, *words], **environment)
    report = json.loads(done.output.splitlines()[-1]) or {}
    return {"wall": done.wall, "peak_mib": done.peak_mib, **report}


def best_of(rounds: int, key: str, script: str, *words: str, **environment: str) -> Report:
    """Run a script several times; return the report whose ``key`` is the least."""
    reports = [run_part(script, *words, **environment) for _ in range(rounds)]
    return min(reports, key=lambda report: report[key])
