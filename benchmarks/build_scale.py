"""Measure how the time and memory of a build grow with its rows.

    python benchmarks/build_scale.py [--rows 500000,1000000,...] [--json]

Each build runs in its own process: `wordnet_hypernymy` with the families of the paper and those
near the gold, uniform sampling, all contexts and no caps, with as many perturbations as give about
the requested number of rows (duplicate rows are dropped). The audit is included. The report shows
the seconds of each phase, the peak memory of the process (on Linux phase by phase), rows per
second, and how far the time deviates from a straight line fitted to all sizes. Imports and reading
WordNet are excluded, since they do not grow with the rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from processes import Report, run_part

PROBE = "wordnet_hypernymy"
OPTIONS: dict[str, Any] = {
    "families": ("paper", "near"),
    "max_hops": 20,
    "stem_overlap": "keep",
    "sampling": "uniform",
    "train_rows": 0,
    "cap_per_gold": 0,
    "tier": "full",
}
ROWS = (500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000)
GROWING = ("plan", "render", "audit", "write")
"""The phases whose time depends on the rows."""


def reset_peak() -> None:
    """Reset the kernel's peak memory count of this process, if possible (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Return the peak memory since the last reset, or (except on Linux) of the whole process."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def build_one(specification: Report) -> Report:
    """Build and write the probe in this process; return its rows, seconds and peaks."""
    from builders.engine.pipeline import build_all
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    probe = find_probe(PROBE)
    options = {**OPTIONS, "perturbations": specification["perturbations"]}
    request = Request(probe, probe.options.parse(options, probe.name))
    peaks: dict[str, float] = {}
    now = ["imports"]

    def entered(phase: str) -> None:
        peaks[now[0]] = peak_mib()
        reset_peak()
        now[0] = phase.split(": ", 1)[1].split(" (")[0]

    start = time.perf_counter()
    folder = Path(specification["output"]) / "probe"
    [(built, manifest, _)] = build_all([(request, folder)], entered)
    seconds = time.perf_counter() - start
    peaks[now[0]] = peak_mib()
    return {
        "rows": manifest["counts"]["rows"],
        "files": len(manifest["files"]),
        "bytes": sum(file.bytes for file in manifest["files"]),
        "seconds": built.seconds,
        "wall": seconds,
        "peaks_mib": peaks,
        "peak_mib": max(peaks.values()),
    }


def measure(perturbations: int, scratch: Path) -> Report:
    """Build in a fresh process."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    given = {"perturbations": perturbations, "output": str(folder)}
    report = run_part(__file__, "--build", json.dumps(given))
    shutil.rmtree(folder)
    return {**report, **given}


def table(found: Sequence[Report]) -> str:
    """Return the measurements as a Markdown table, one line per build."""
    rows, took = (np.array([of(line) for line in found]) for of in (itemgetter("rows"), growing))
    # Fit the straight line with the smallest relative errors.
    by_row, start = np.polyfit(rows, took, 1, w=1 / took) if len(found) > 1 else (np.nan, np.nan)
    lines = [
        f"| rows | {' | '.join(GROWING)} | rows/s | off linear | peak MiB | files | MB |",
        f"|{'---:|' * (6 + len(GROWING))}",
    ]
    for line in found:
        phases = " | ".join(f"{line['seconds'][name]:.1f}" for name in GROWING)
        seconds = growing(line)
        off = f"{seconds / (start + by_row * line['rows']) - 1:+.0%}" if len(found) > 1 else ""
        lines.append(
            f"| {line['rows']:,} | {phases} | {line['rows'] / seconds:,.0f} | "
            f"{off} | {line['peak_mib']:,.0f} | {line['files']} | {line['bytes'] / 1e6:,.0f} |"
        )
    if len(found) > 1:
        lines.append(f"\nThe line: {start:.1f} s, and {1e6 * by_row:.1f} s for each million rows.")
    return "\n".join(lines)


def growing(line: Report) -> float:
    """Return the total seconds of the phases whose time depends on the rows."""
    return float(sum(line["seconds"][phase] for phase in GROWING))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.build:
        print(json.dumps(build_one(json.loads(args.build))))
        return
    print("building 1 perturbation to count its rows", file=sys.stderr)
    once = measure(1, args.scratch)["rows"]
    found = []
    for rows in map(int, args.rows.split(",")):
        perturbations = min(max(round(rows / once), 1), 50)
        print(f"{rows:,} rows", file=sys.stderr)
        found.append(measure(perturbations, args.scratch))
    print(json.dumps(found) if args.json else table(found))


if __name__ == "__main__":
    main()
