"""Time and memory of building WordNetQA, compared with a straightforward generator.

    python benchmarks/wordnetqa.py [--reference-rows N | --full] [--nltk-data DIR] [--limit N]
                                   [--json]

Measured, each in a fresh process:

- **ours**: the four probes with the families of the paper, uniform sampling, all contexts, no caps
  and no audit, written as Parquet; each phase is timed separately.
- **reference**: the same kind of rows by ``naive_wordnetqa.py`` (NLTK objects, a render call for
  each text, a dict for each row), by default on a random part of the concepts of each probe. Its
  time for the suite is extrapolated from each probe's rows per second; ``--full`` runs all of it.
- whether both **ask the same**: (concept, context, gold, hops) of hypernymy, for some concepts.
- the README's **command**, from start to prompt, and ``--help``.
- **memory** of the hypernymy probe as its rows multiply (1, 2 and 4 perturbations).

The reference needs NLTK and its WordNet 3.0; without them, only our side is measured. ``--limit``
limits our side to some rows of each probe, to try the benchmark out.

How to read it: "rows/s" excludes imports and the loading of WordNet, which are shown separately for
each side. The first ratio compares rows/s, the second includes loading. "Wall" is a process from
start to end. Peak memory is the kernel's figure for the process (``ru_maxrss``). Nothing is
asserted: on a busy machine all times grow, the ratio less so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from processes import ROOT, Report, run, run_part

PROBES = ("wordnet_definitions", "wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy")
OPTIONS: dict[str, Any] = {
    "families": ("paper",),
    "sampling": "uniform",
    "train_rows": 0,
    "cap_per_gold": 0,
    "tier": "full",
    "screen": False,
    "perturbations": 1,
    # A gold is asked for in one split alone, which the reference does not know.
    "split_shares": (0.0, 0.0, 1.0),
}
PHASES = ("knowledge base", "plan", "render", "write")
COMPARED_CONCEPTS = 2000
COMMAND_RUNS, HELP_RUNS = 3, 5

# What runs in the child processes.


def options_of(name: str, given: Report) -> Any:
    """Return the options of a probe: of those given, the ones that it has."""
    from builders.engine.probe import find_probe

    options = find_probe(name).options
    return options.parse({key: given[key] for key in given if key in options.model_fields}, name)


def build_ours(specification: Report) -> Report:
    """Build and write probes; return the seconds of each phase."""
    start = time.perf_counter()
    from builders.engine.pipeline import build_all
    from builders.engine.probe import find_probe
    from builders.engine.request import Request
    from kbprobe.format import dataset  # noqa: F401

    report: Report = {"imports": time.perf_counter() - start, "probes": {}}
    jobs = []
    for probe in map(find_probe, specification["probes"]):
        options = options_of(probe.name, specification["options"])
        jobs.append(
            (Request(probe, options, audit=False), Path(specification["output"]) / probe.name)
        )
    for built, manifest, folder in build_all(jobs):
        report["probes"][folder.name] = {
            "rows": manifest["counts"]["rows"],
            "questions": manifest["counts"]["question_answer_pairs"],
            "bytes": sum(file.bytes for file in manifest["files"]),
            "seconds": built.seconds,
        }
    return report


def build_reference(specification: Report) -> Report:
    """Generate rows with ``naive_wordnetqa``, then compare what both sides ask."""
    start = time.perf_counter()
    import gc

    import naive_wordnetqa as naive

    imports = time.perf_counter() - start
    lexicon = naive.Lexicon()
    # Keep the garbage collector from traversing all of WordNet: on a part of the rows, one such
    # traversal more or less would dominate the reference's rows/s.
    gc.collect()
    gc.freeze()
    report: Report = {
        "imports": imports,
        "knowledge base": time.perf_counter() - start - imports,
        "probes": {},
    }
    for name in specification["probes"]:
        folder = Path(specification["output"]) / name
        generator = naive.Generator(name, lexicon, options_of(name, OPTIONS))
        report["probes"][name] = naive.generate(generator, specification["rows"], folder)
    name = "wordnet_hypernymy"
    generator = naive.Generator(name, lexicon, options_of(name, OPTIONS))
    report["agreement"] = agreement(generator, Path(specification["ours"]) / generator.name)
    return report


def agreement(generator: Any, folder: Path) -> Report:
    """Compare the questions of both sides about a sample of concepts."""
    import random

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    concepts = generator.concepts()[:COMPARED_CONCEPTS]
    names = pa.array([concept.name() for concept in concepts])
    columns = ["concept", "context", "answer", "choice_nodes", "hops"]
    ours = set()
    for path in sorted(folder.glob("data/*.parquet")):
        table = pq.read_table(path, columns=columns)
        for row in table.filter(pc.is_in(table["concept"], names)).to_pylist():
            gold = row["choice_nodes"][row["answer"]]
            ours.add((row["concept"], row["context"], gold, row["hops"]))
    theirs = {
        (question.concept.name(), question.context.sentence, question.gold.name(), question.hops)
        for concept in concepts
        for question in generator.questions(concept, random.Random(0))
    }
    return {
        "concepts": len(concepts),
        "both": len(ours & theirs),
        "only_ours": len(ours - theirs),
        "only_reference": len(theirs - ours),
    }


PARTS = {"ours": build_ours, "reference": build_reference}


# The parent process.


def part(name: str, specification: Report, **environment: str) -> Report:
    """Run one of ``PARTS``."""
    return run_part(__file__, "--part", name, json.dumps(specification), **environment)


def measure_ours(folder: Path, limit: int | None) -> Report:
    options = {**OPTIONS, "limit": limit}
    report = part("ours", {"probes": PROBES, "options": options, "output": str(folder)})
    probes = report["probes"].values()
    report["phases"] = {name: sum(p["seconds"][name] for p in probes) for name in PHASES}
    report["rows"] = sum(probe["rows"] for probe in probes)
    report["bytes"] = sum(probe["bytes"] for probe in probes)
    report["rows_per_s"] = report["rows"] / sum(report["phases"][name] for name in PHASES[1:])
    return report


def measure_reference(scratch: Path, source: Path, rows: int | None, ours: Report) -> Report:
    """Run the reference, and extrapolate its time to as many rows of each probe as ours has."""
    nltk_data = scratch / "nltk_data"
    unpack(source, nltk_data / "corpora")
    specification: Report = {
        "probes": PROBES,
        "rows": None if rows is None else max(rows // len(PROBES), 1),
        "output": str(scratch / "reference"),
        "ours": str(scratch / "ours"),
    }
    environment = {"NLTK_DATA": str(nltk_data), "PYTHONWARNINGS": "ignore"}
    report = part("reference", specification, **environment)
    probes = report["probes"]
    report["rows"] = sum(probe["rows"] for probe in probes.values())
    seconds = {name: done["seconds"] / done["rows"] for name, done in probes.items()}
    suite = sum(seconds[name] * ours["probes"][name]["rows"] for name in PROBES)
    report["suite_seconds"], report["rows_per_s"] = suite, ours["rows"] / suite
    return report


def unpack(source: Path, corpora: Path) -> None:
    """Put NLTK's WordNet under ``corpora``, where NLTK will find it."""
    if source.is_dir():
        shutil.copytree(source, corpora / "wordnet")
        return
    with zipfile.ZipFile(source) as archive:
        archive.extractall(corpora)


def find_source(given: Path | None) -> Path | None:
    """Find NLTK's WordNet: ``corpora/wordnet``, a folder or an archive.

    If NLTK or its WordNet is missing, print a message to standard error and return None.

    Raises:
        SystemExit: there is none in the given folder.
    """
    if not find_spec("nltk"):
        print("No reference: NLTK is missing; pip install '.[wordnet]'", file=sys.stderr)
        return None
    roots = [Path(root) for root in os.environ.get("NLTK_DATA", "").split(os.pathsep) if root]
    roots.append(ROOT.parent / "shared" / "data" / "nltk_data")
    for root in [given] if given else roots:
        for name in ("wordnet", "wordnet.zip"):
            if (root / "corpora" / name).exists():
                return root / "corpora" / name
    if given:
        raise SystemExit(f"--nltk-data {given}: no corpora/wordnet or corpora/wordnet.zip there")
    print(
        f"No reference: no corpora/wordnet or corpora/wordnet.zip in {', '.join(map(str, roots))}; "
        f"give --nltk-data DIR",
        file=sys.stderr,
    )
    return None


def measure_commands(scratch: Path) -> Report:
    """Time the README's command and the help, from start to prompt."""
    script = Path(sys.executable).with_name("build-probe")
    build_probe = [str(script)] if script.exists() else [sys.executable, "-m", "builders.cli"]
    command = ["wordnet_hypernymy", "--max-hops", "4", "-o"]
    builds = [
        run([*build_probe, *command, str(scratch / f"command-{i}")]) for i in range(COMMAND_RUNS)
    ]
    helps = [run([*build_probe, "--help"]).wall for _ in range(HELP_RUNS)]
    walls = [build.wall for build in builds]
    return {
        "command_best": min(walls),
        "command_median": statistics.median(walls),
        "command_peak_mib": max(build.peak_mib for build in builds),
        "help_median": statistics.median(helps),
    }


def measure_memory(scratch: Path, limit: int | None) -> list[Report]:
    """Measure peak memory as the rows of one probe multiply."""
    found = []
    for perturbations in (1, 2, 4):
        options = {**OPTIONS, "perturbations": perturbations, "limit": limit}
        folder = scratch / f"memory-{perturbations}"
        specification = {"probes": PROBES[1:2], "options": options, "output": str(folder)}
        done = part("ours", specification)
        rows = done["probes"][PROBES[1]]["rows"]
        found.append({"perturbations": perturbations, "rows": rows, "peak_mib": done["peak_mib"]})
        shutil.rmtree(folder)
    return found


def measure(rows: int | None, source: Path | None, limit: int | None) -> Report:
    with tempfile.TemporaryDirectory(prefix="kbprobe-benchmark-") as name:
        scratch = Path(name)
        report: Report = {"limit": limit, "ours": measure_ours(scratch / "ours", limit)}
        if source:
            reference = measure_reference(scratch, source, rows, report["ours"])
            report |= compared(report["ours"], reference)
        return {
            **report,
            "commands": measure_commands(scratch),
            "memory": measure_memory(scratch, limit),
        }


def compared(ours: Report, reference: Report) -> Report:
    """Return the reference's measurements, and our speedup over it."""
    loading = sum(reference[part] for part in ("imports", "knowledge base"))
    return {
        "reference": reference,
        "ratio": ours["rows_per_s"] / reference["rows_per_s"],
        "ratio_with_loading": (loading + reference["suite_seconds"]) / ours["wall"],
    }


def show(report: Report, full: bool) -> None:
    """Print the report for people."""
    ours, commands = report["ours"], report["commands"]
    print(f"{'ours':<22} {'rows':>9} {'MB':>6}" + "".join(f"{name:>16}" for name in PHASES))
    for name, done in ours["probes"].items():
        times = "".join(f"{done['seconds'][phase]:>14.2f} s" for phase in PHASES)
        print(f"{name:<22} {done['rows']:>9,} {done['bytes'] / 1e6:>6.1f}{times}")
    times = "".join(f"{ours['phases'][phase]:>14.2f} s" for phase in PHASES)
    print(f"{'suite':<22} {ours['rows']:>9,} {ours['bytes'] / 1e6:>6.1f}{times}")
    print(
        f"imports {ours['imports']:.2f} s; {ours['rows_per_s']:,.0f} rows/s; wall "
        f"{ours['wall']:.2f} s; peak memory {ours['peak_mib']:,.0f} MiB\n"
    )
    if "reference" in report:
        show_reference(report, full)
    print(
        f"build-probe wordnet_hypernymy --max-hops 4: best {commands['command_best']:.2f} s, "
        f"median {commands['command_median']:.2f} s of {COMMAND_RUNS}; peak memory "
        f"{commands['command_peak_mib']:,.0f} MiB\n"
        f"build-probe --help: median {commands['help_median']:.2f} s of {HELP_RUNS}\n"
    )
    print("memory of wordnet_hypernymy as its rows multiply")
    for line in report["memory"]:
        print(
            f"{line['perturbations']} perturbation(s) {line['rows']:>9,} rows "
            f"{line['peak_mib']:>7,.0f} MiB"
        )


def show_reference(report: Report, full: bool) -> None:
    """Print the reference's measurements, and the ratios to it."""
    ours, reference = report["ours"], report["reference"]
    print(f"{'reference':<22} {'rows':>9} {'seconds':>9} {'rows/s':>9}")
    for name, done in reference["probes"].items():
        rate = done["rows"] / done["seconds"]
        print(f"{name:<22} {done['rows']:>9,} {done['seconds']:>9.2f} {rate:>9,.0f}")
    how = "all rows" if full else f"EXTRAPOLATED from {reference['rows']:,} rows"
    print(
        f"{ours['rows']:,} rows in {reference['suite_seconds']:,.0f} s, "
        f"{reference['rows_per_s']:,.0f} rows/s ({how}, probe by probe)\n"
        f"imports {reference['imports']:.2f} s; "
        f"knowledge base {reference['knowledge base']:.1f} s; "
        f"peak memory {reference['peak_mib']:,.0f} MiB"
    )
    asked = reference["agreement"]
    missing = 0 if report["limit"] else asked["only_reference"]
    verdict = "agree" if asked["only_ours"] == missing == 0 else "DIFFER"
    print(
        f"hypernymy questions about {asked['concepts']:,} concepts: both sides {verdict} "
        f"({asked['both']:,} asked by both, {asked['only_ours']} by ours alone, "
        f"{asked['only_reference']} by the reference alone)\n\n"
        f"ours / reference: {report['ratio']:.1f} times the rows/s; "
        f"{report['ratio_with_loading']:.1f} times with start, imports and loading counted\n"
    )
    if verdict == "DIFFER":
        raise SystemExit("the two sides are no longer comparable: they ask different questions")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--reference-rows", type=int, default=20_000, metavar="N")
    group.add_argument("--full", action="store_true", help="run the reference on all rows")
    parser.add_argument("--nltk-data", type=Path, metavar="DIR", help="holds corpora/wordnet[.zip]")
    parser.add_argument("--limit", type=int, metavar="N", help="rows of each probe of ours [all]")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        part, specification = given.part
        json.dump(PARTS[part](json.loads(specification)), sys.stdout)
        return
    rows = None if given.full else given.reference_rows
    report = measure(rows, find_source(given.nltk_data), given.limit)
    if given.json:
        print(json.dumps(report, indent=2))
    else:
        show(report, given.full)


if __name__ == "__main__":
    main()
