"""Time and memory of compiling a ConceptNet dump, compared with a straightforward reader.

    python benchmarks/conceptnet.py [--lines N | --from FILE] [--rounds N] [--json]

Measured on the edges between English concepts, each in a fresh process, best of three:

- **ours**: reading and filtering (``kb_cache.conceptnet.source.read_edges``), compiling into
  tables, writing the snapshot; each phase is timed separately.
- **reference**: ``gzip``, ``csv.reader``, ``json.loads`` for each kept line, a dict of concepts and
  a list of edges, as one would write it in ten minutes. It ends where our compiling ends.
- **arrow** and **duckdb** (if installed): only finding the English lines, with their CSV readers;
  **ours, lines alone** does the same.

By default they read a dump made of two samples of ConceptNet, one tenth of it English as in the
full dump: the samples next to the repository, or the smaller ones in its tests. ``--from`` takes a
real dump instead. The time for the whole of 5.7 is EXTRAPOLATED from lines per second, the
snapshot's writing from edges. Peak memory is the kernel's figure for the process; it grows with the
number of edges kept, not of lines read. The only assertion is that both sides keep the same edges.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from processes import ROOT, Report, run_part

BESIDE = ROOT.parent / "shared" / "data" / "conceptnet"
TESTS = ROOT / "tests"
ENGLISH = (
    BESIDE / "assertions_en.csv.gz",
    TESTS / "data" / "miniatures" / "conceptnet-miniature.csv.gz",
)
"""Where to look for English edges: next to the repository, then the smaller part in the tests."""
SAMPLE = (
    BESIDE / "assertions-5.7-format-sample.csv",
    TESTS / "kb_cache" / "data" / "conceptnet-mini.csv",
)
"""Where to look for lines of any language."""
#: Of ConceptNet 5.7.0, about 3.4 million between English concepts.
DUMP_LINES, DUMP_ENGLISH = 34_074_917, 3_400_000
ENGLISH_SHARE = 0.1


# What runs in the child processes.


def ours(path: Path) -> Report:
    import kb_cache.conceptnet.source  # noqa: F401 - imports are not counted
    from kb_cache.base import Compiled
    from kb_cache.conceptnet.filter import compile_edges
    from kb_cache.conceptnet.source import read_edges
    from kb_cache.conceptnet.types import Malformed, Selection
    from kb_cache.snapshot import SourceInfo, write_snapshot

    malformed = Malformed(path)
    start = time.perf_counter()
    batches = list(read_edges(path, Selection(), malformed))
    read = time.perf_counter()
    tables, merged = compile_edges(batches)
    compiled = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        info = write_snapshot(
            Path(folder), Compiled("", tables), kind="conceptnet", name="benchmark", version="",
            licence="", source=SourceInfo(""),
        )  # fmt: skip
    return {
        "lines": malformed.lines,
        "edges": info.rows["assertions"] + merged,
        "read": read - start,
        "compile": compiled - read,
        "write": time.perf_counter() - compiled,
        "seconds": compiled - start,
        "bytes": info.bytes,
    }


def reference(path: Path) -> Report:
    import csv

    csv.field_size_limit(1 << 24)
    concepts: dict[str, int] = {}
    edges = []
    start = time.perf_counter()
    lines = 0
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            lines += 1
            _, relation, begin, end, text = row
            if not (begin.startswith("/c/en/") and end.startswith("/c/en/")):
                continue
            info = json.loads(text)
            ids = [concepts.setdefault(uri, len(concepts)) for uri in (begin, end)]
            edges.append((relation, *ids, info["weight"], info["dataset"], info.get("surfaceText")))
    edges.sort(key=lambda edge: edge[:3])
    return {"lines": lines, "edges": len(edges), "seconds": time.perf_counter() - start}


def ours_lines(path: Path) -> Report:
    from kb_cache.conceptnet import source as conceptnet_lines
    from kb_cache.conceptnet.types import Malformed

    malformed = Malformed(path)
    start = time.perf_counter()
    edges = 0
    for fields in conceptnet_lines._Lines(path, 5, malformed, None):
        for column in (2, 3):
            fields = fields.filter(fields.starts_with(column, "/c/en/"))
        edges += fields.batch({"relation": 1, "start": 2, "end": 3, "info": 4}).num_rows
    return {"lines": malformed.lines, "edges": edges, "seconds": time.perf_counter() - start}


def arrow(path: Path) -> Report:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    names = ["uri", "relation", "start", "end", "info"]
    start = time.perf_counter()
    reader = csv.open_csv(
        pa.input_stream(path, compression="gzip"),
        read_options=csv.ReadOptions(column_names=names, block_size=4 << 20),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False, double_quote=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=names[1:]
        ),
    )
    lines = edges = 0
    for batch in reader:
        lines += batch.num_rows
        kept = [pc.starts_with(batch[end], "/c/en/") for end in ("start", "end")]
        edges += batch.filter(pc.and_(*kept)).num_rows
    return {"lines": lines, "edges": edges, "seconds": time.perf_counter() - start}


def duckdb(path: Path) -> Report:
    import duckdb

    columns = {f"c{i}": "VARCHAR" for i in range(5)}
    start = time.perf_counter()
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    query = connection.sql(
        f"""
        SELECT c1, c2, c3, c4 FROM read_csv('{path}', delim='\t', quote='', escape='', header=false,
            auto_detect=false, columns={columns}, compression='gzip', max_line_size=16000000)
        WHERE starts_with(c2, '/c/en/') AND starts_with(c3, '/c/en/')
        """
    )
    edges = sum(batch.num_rows for batch in query.to_arrow_reader(100_000))
    return {"lines": None, "edges": edges, "seconds": time.perf_counter() - start}


PARTS: dict[str, Callable[[Path], Report]] = {
    "ours": ours,
    "reference": reference,
    "ours, lines alone": ours_lines,
    "arrow": arrow,
    "duckdb": duckdb,
}


# The parent process.


def make_dump(path: Path, lines: int) -> None:
    """Write a dump in which one line in ten is an English edge and the others are of any language.

    Words are altered in some lines, so that the number of concepts is realistic.
    """
    draw = random.Random(0)
    english_path, sample_path = (next(filter(Path.exists, places)) for places in (ENGLISH, SAMPLE))
    sample = sample_path.read_text("utf-8").splitlines()
    foreign = [line for line in sample if line.count("/c/en/") < 4]
    with gzip.open(english_path, "rt", encoding="utf-8") as file:
        english = [line.rstrip("\n") for line in file]
    with gzip.open(path, "wt", encoding="utf-8", newline="\n") as file:
        for _ in range(lines):
            if draw.random() < ENGLISH_SHARE:
                line = english[draw.randrange(len(english))]
            else:
                line = foreign[draw.randrange(len(foreign))]
                line = line.replace("test", f"test{draw.randrange(1_000_000)}")
            file.write(f"{line}\n")


def measure(path: Path, rounds: int) -> Report:
    """Run every part in each round, and keep the fastest run of each."""
    done: dict[str, Report] = {}
    for _ in range(rounds):
        for name in PARTS:
            report = run_part(__file__, "--part", name, str(path))
            if "seconds" in report and report["seconds"] < done.get(name, report)["seconds"] + 1e-9:
                done[name] = report
    ours, reference = done["ours"], done["reference"]
    if ours["edges"] != reference["edges"]:
        raise SystemExit(f"ours kept {ours['edges']} edges, the reference {reference['edges']}")
    reading = ours["read"] / ours["lines"] * DUMP_LINES
    rest = (ours["compile"] + ours["write"]) / ours["edges"] * DUMP_ENGLISH
    return {
        "parts": done,
        "ratio": reference["seconds"] / ours["seconds"],
        "whole": reading + rest,
        "whole_reading": reading,
        "whole_reference": reference["seconds"] / reference["lines"] * DUMP_LINES,
    }


def show(report: Report) -> None:
    """Print the report for people."""
    lines = report["parts"]["ours"]["lines"]
    print(f"{lines:,} lines, {report['parts']['ours']['edges']:,} edges kept\n")
    print(f"{'':<20} {'seconds':>8} {'lines/s':>10} {'peak MiB':>9}")
    for name, part in report["parts"].items():
        rate = lines / part["seconds"]
        print(f"{name:<20} {part['seconds']:>8.2f} {rate:>10,.0f} {part['peak_mib']:>9,.0f}")
    ours = report["parts"]["ours"]
    phases = ", ".join(f"{phase} {ours[phase]:.2f} s" for phase in ("read", "compile", "write"))
    print(f"\nours: {phases}; {ours['bytes'] / 1e6:.1f} MB")
    print(f"ours / reference (read and compile): {report['ratio']:.1f} times as fast")
    print(
        f"the whole of 5.7, {DUMP_LINES:,} lines (EXTRAPOLATED): {report['whole']:,.0f} s, of "
        f"which {report['whole_reading']:,.0f} s reading; reference, without writing, "
        f"{report['whole_reference']:,.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000, metavar="N")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="a real dump, gzip"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="the best of N counts")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        name, path = given.part
        sys.path.remove(str(Path(__file__).parent))  # this file is not the module conceptnet
        try:
            json.dump(PARTS[name](Path(path)), sys.stdout)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            json.dump(None, sys.stdout)
        return
    with tempfile.TemporaryDirectory(prefix="kbprobe-benchmark-") as folder:
        path = given.source or Path(folder) / "dump.csv.gz"
        if given.source is None:
            make_dump(path, given.lines)
        report = measure(path, given.rounds)
    print(json.dumps(report, indent=2)) if given.json else show(report)


if __name__ == "__main__":
    main()
