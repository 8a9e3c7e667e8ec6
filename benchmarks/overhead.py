"""Cost of an evaluation apart from the model: microseconds per row, and start-up with a limit.

    python benchmarks/overhead.py [--rows 100000 1000000] [--json]

The rows are those of a real build of age_comparison, repeated under new ids and in new clusters of
four. They are scored by ``random``, which draws a number for each choice. Each figure comes from
its own process, whose imports are done before the clock starts:

- **read**: rows from Parquet, checked, as items, with their fingerprint; for comparison, a plain
  loop over the same file with the ``datasets`` library, which makes a dictionary of each row;
- **score**: bookkeeping of scoring, and metrics with intervals;
- **write**: predictions and results, with checksums; **read back**: the same, verified;
- **limit**: from the start of ``--limit 500`` until its rows are loaded.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import ROOT, run_part

sys.path.insert(0, str(ROOT))
PHASES = ("read", "loop over datasets", "evaluate", "limit by clusters", "limit by rows")
LIMIT = 500


def repeat(folder: Path, rows: int) -> Path:
    """Build a probe and repeat the rows of its test split; return its folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import kbprobe
    from kbprobe.files import file_sha256
    from kbprobe.format.manifest import read_manifest, write_manifest

    kbprobe.build("age_comparison", output=folder, limit=2_000)
    manifest = read_manifest(folder)
    (entry,) = manifest.files_of_split("default", "test").files
    table = pq.read_table(folder / entry.path)
    table = pa.concat_tables([table] * -(-rows // len(table))).slice(0, rows)
    own = {
        "id": [f"{row:016x}" for row in range(rows)],
        "cluster": [f"cluster {row // 4}" for row in range(rows)],
    }
    for name, values in own.items():
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    path = folder / entry.path
    pq.write_table(table, path, row_group_size=65_536)
    changed = {"rows": rows, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
    files = [
        {**one.model_dump(), **(changed if one.path == entry.path else {})}
        for one in manifest.files
    ]
    write_manifest(folder, {**manifest.content, "files": files})
    return folder


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function; return the seconds that it takes, and its result."""
    began = time.perf_counter()
    done = action()
    return time.perf_counter() - began, done


def measure(phase: str, probe: str) -> dict[str, float]:
    """Measure one phase in this process."""
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    from evaluation.options import RunOptions
    from evaluation.runs.executor import execute
    from evaluation.runs.folders import load
    from evaluation.runs.reading import SplitReader
    from evaluation.runs.spec import RunSpec

    found: dict[str, float] = {}
    if phase == "read":
        found["read"], _ = timed(lambda: SplitReader().rows(probe, RunOptions()))
    elif phase == "loop over datasets":
        import datasets

        paths = [str(path) for path in Path(probe, "data").glob("test-*.parquet")]
        rows = datasets.Dataset.from_parquet(paths, cache_dir=f"{probe}.datasets")
        found[phase], _ = timed(lambda: [dict(row) for row in rows])
    elif phase == "evaluate":
        folder = Path(f"{probe}.results")
        values = {"scorer": "random", "cache": False, "device": "cpu"}
        spec = RunSpec.parse(probe, "none", values, folder)
        found["whole run"], _ = timed(lambda: [one.or_raise() for one in execute([spec])])
        found["read back"], _ = timed(lambda: load(folder))
        timings = json.loads((folder / "results.json").read_text())["timings"]
        found |= {name: timings[name] for name in ("encode", "score", "total")}
    else:
        by = phase.rpartition(" ")[2]
        options = RunOptions(limit=LIMIT, limit_by=by)
        found[phase], _ = timed(lambda: SplitReader().rows(probe, options))
    return found


def main() -> None:
    """Run the benchmark and print the results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    options.add_argument("--json", action="store_true")
    options.add_argument("--phase", choices=PHASES, help=argparse.SUPPRESS)
    options.add_argument("--probe", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.phase:
        print(json.dumps(measure(given.phase, given.probe)))
        return
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            probe = str(repeat(Path(folder, "age_comparison"), rows))
            for phase in PHASES:
                words = ("--phase", phase, "--probe", probe)
                found = run_part(__file__, *words, TQDM_DISABLE="1")
                peak, _ = found.pop("peak_mib"), found.pop("wall")
                if given.json:
                    print(json.dumps({"rows": rows, "phase": phase, "peak_mib": peak, **found}))
                    continue
                for name, seconds in found.items():
                    each = "" if "limit" in name else f"  {1e6 * seconds / rows:6.1f} µs a row"
                    print(f"{rows:>9,} rows  {name:20} {seconds:7.2f} s{each}  {peak:6.0f} MiB")


if __name__ == "__main__":
    main()
