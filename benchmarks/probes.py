"""Measure the build of each probe with its default options: time, memory, size on disk.

    python benchmarks/probes.py [--conceptnet NAME] [--dump NAME] [PROBE ...]

Each build runs in its own process, from start to end, including the audit, and writes to a
temporary folder. The table has the median of ``--rounds`` builds. Probes that need a snapshot of
ConceptNet or Wikidata are left out unless one is named.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import builders
from builders.engine.probe import find_probe
from kbprobe.format.manifest import read_manifest


def build(name: str, options: list[str]) -> tuple[int, float, float, float, float]:
    """Build a probe; return its rows, the seconds by the clock and of processor time, MiB and MB.

    These are the peak memory, and the size on disk.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        command = [sys.executable, "-m", "builders.cli", name, *options, "-o", str(folder)]
        start = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None
            said = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"{name}: {said}")
        rows = int(read_manifest(folder).model_dump()["counts"]["rows"])
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return rows, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size / 1e6


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probes", nargs="*", default=builders.names())
    parser.add_argument("--conceptnet", help="snapshot of ConceptNet")
    parser.add_argument("--dump", help="snapshot of Wikidata")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| probe | rows | seconds | of a processor | peak MiB | MB on disk |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in given.probes:
        fields = find_probe(name).options.model_fields
        options = []
        if "dump" in fields:
            options = ["--dump", given.dump]
        elif "conceptnet" in fields and fields["conceptnet"].default:
            options = ["--conceptnet", given.conceptnet]
        if None in options:
            continue
        rounds = [build(name, options) for _ in range(given.rounds)]
        rows, seconds, processor, peak, size = (
            statistics.median(values) for values in zip(*rounds, strict=True)
        )
        measured = f"{seconds:.1f} | {processor:.1f} | {peak:,.0f} | {size:.1f}"
        print(f"| `{name}` | {rows:,.0f} | {measured} |", flush=True)


if __name__ == "__main__":
    main()
