"""Measure how building, checking, evaluating and comparing grow with the rows of a probe.

    python benchmarks/growth.py [--sizes 10000,100000,1000000] [--picture FILE] [--json]

Each step is a command in its own process, as users give it, on `wordnet_hypernymy` with uniform
sampling and no caps, cut to each size: `build-probe` (with its audit), `release-probe check`,
`evaluate-probe` without a model (random answers, twice) and `evaluate-probe compare` of
the two. Evaluations are of the test split, about 60% of the rows.

A step's *exponent* is the slope of its processor time over its rows between two sizes, both
logarithmic, after subtracting what it takes with as good as no rows: 1 is linear, 1.05 the target.
Memory per row is the further peak memory for each further row, between the same two sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from processes import ROOT, Finished, Report, run

sys.path.insert(0, str(ROOT))
PROBE = "wordnet_hypernymy"
OPTIONS = (
    *("--families", "paper,near", "--max-hops", "20", "--stem-overlap", "keep", "--tier", "full"),
    *("--sampling", "uniform", "--train-rows", "0", "--cap-per-gold", "0"),
)
ROWS_OF_ONE = 200_000
"""About how many rows one perturbation of each question gives, or more."""
SMALLEST = 300
"""Rows of what stands for none: what each command takes to start."""
SIZES = (10_000, 100_000, 1_000_000)
STEPS = ("build", "check", "evaluate", "compare")
TARGET = 1.05


def steps(rows: int, folder: Path) -> Iterator[tuple[str, Finished]]:
    """Run each step at one size; yield its name, and its time and memory."""
    probe, perturbations = folder / "probe", min(50, max(1, math.ceil(rows / ROWS_OF_ONE)))
    asked = (*OPTIONS, "--perturbations", str(perturbations), "--limit", str(rows))
    yield "build", command("builders.cli", PROBE, *asked, "-o", probe)
    yield "check", command("release.cli", "check", probe)
    results = [folder / name for name in ("first", "second")]
    for seed, out in enumerate(results):
        words = ("-m", "none", "--scorer", "random", "--guess-seed", seed, "--no-cache", "-o", out)
        done = command("evaluation.cli", probe, *words)
    yield "evaluate", done
    yield "compare", command("evaluation.cli", "compare", *results, "-o", folder / "compared")


def command(module: str, *words: object) -> Finished:
    """Run a command of kbprobe in a process; what it finds wrong with rows is no failure."""
    script = (
        f"import sys\nfrom {module} import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as ended: sys.exit(ended.code in (2, 130))"
    )
    return run([sys.executable, "-c", script, *map(str, words)])


def measure(rows: int, scratch: Path) -> Report:
    """Run all steps at one size; return their seconds of processor time and MiB."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    done = dict(steps(rows, folder))
    manifest = json.loads((folder / "probe" / "manifest.json").read_text(encoding="utf-8"))
    shutil.rmtree(folder)
    return {
        "rows": manifest["counts"]["rows"],
        "seconds": {name: one.processor for name, one in done.items()},
        "peak_mib": {name: one.peak_mib for name, one in done.items()},
    }


def growth(lines: Sequence[Report]) -> list[Report]:
    """Return exponents and bytes per row between neighbouring sizes, the first line being none."""
    start, *measured = lines
    found = []
    for small, large in pairwise(measured):
        further = large["rows"] - small["rows"]
        per_row, exponents = {}, {}
        for name in STEPS:
            own = [line["seconds"][name] - start["seconds"][name] for line in (small, large)]
            exponents[name] = (
                math.log(own[1] / own[0]) / math.log(large["rows"] / small["rows"])
                if min(own) > 0
                else None
            )
            mib = large["peak_mib"][name] - small["peak_mib"][name]
            per_row[name] = mib * (1 << 20) / further
        found.append(
            {"from": small["rows"], "to": large["rows"], "exponents": exponents, "bytes": per_row}
        )
    return found


def table(lines: Sequence[Report], between: Sequence[Report]) -> str:
    """Return the measurements as Markdown."""
    head = [f"| rows | {' | '.join(STEPS)} |", f"|{'---:|' * (1 + len(STEPS))}"]
    text = ["Processor time in s, and peak memory in MiB:", "", *head]
    for line in lines:
        cells = (f"{line['seconds'][name]:.1f} s, {line['peak_mib'][name]:,.0f}" for name in STEPS)
        text.append(f"| {line['rows']:,} | {' | '.join(cells)} |")
    text += ["", f"Exponent (target: at most {TARGET}), and bytes per further row:", "", *head]
    for one in between:
        cells = (
            f"{'-' if one['exponents'][name] is None else format(one['exponents'][name], '.2f')}, "
            f"{one['bytes'][name]:,.0f}"
            for name in STEPS
        )
        text.append(f"| {one['from']:,} to {one['to']:,} | {' | '.join(cells)} |")
    return "\n".join(text)


def draw(lines: Sequence[Report], path: Path) -> None:
    """Draw processor time and peak memory over rows, and a linear reference."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    rows = [line["rows"] for line in lines]
    both = ("seconds", "processor time in s"), ("peak_mib", "peak memory in MiB")
    for axes, (what, label) in zip(figure.subplots(1, 2), both, strict=True):
        for name in STEPS:
            axes.loglog(rows, [line[what][name] for line in lines], "o-", label=name)
        last = max(lines[-1][what].values())
        axes.loglog(rows, [last * n / rows[-1] for n in rows], ":", color="grey", label="linear")
        axes.set(xlabel="rows", ylabel=label, ylim=(min(lines[0][what].values()) / 2, None))
        axes.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--picture", type=Path, help="where to draw it (.svg, .pdf, .png)")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    lines = []
    for rows in (SMALLEST, *sorted(map(int, arguments.sizes.split(",")))):
        print(f"{rows:,} rows", file=sys.stderr)
        lines.append(measure(rows, arguments.scratch))
    between = growth(lines)
    if arguments.picture is not None:
        draw(lines, arguments.picture)
    if arguments.json:
        print(json.dumps({"measured": lines, "growth": between}, indent=1))
    else:
        print(table(lines, between))


if __name__ == "__main__":
    main()
