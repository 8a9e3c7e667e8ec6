"""Measure how building, checking, evaluating and comparing grow with the rows of a probe.

    python benchmarks/growth.py [--sizes 10000,100000,1000000] [--json] [--picture FILE]
    python benchmarks/growth.py --recorded benchmarks/growth.json --picture docs/images/growth.svg

Each step is a command in its own process, as users give it, on `wordnet_hypernymy` with uniform
sampling and no caps, cut to each size: `build-probe` (with its audit), `release-probe check`,
`evaluate-probe` without a model (random answers, twice: the faster counts) and `evaluate-probe
compare` of the two. Evaluations are of the test split, about three quarters of the rows, and write
their page. `--recorded` prints and draws what `--json` printed.

A step's *exponent* is the slope of its processor time over the rows that it processes between two
sizes, both logarithmic, after subtracting what it takes with as good as no rows: 1 is linear, 1.05
the target. There is none where the smaller size takes hardly longer than no rows. Memory per row is
the further peak memory for each further row, between the same two sizes.

A build draws all rows, once for each perturbation, before it is cut: up to 300,000 rows its time
grows by rendering, auditing (at most 20,000 rows) and writing alone. `build_scale.py` has builds
that are not cut. Evaluating and comparing resample clusters, of which there are thousands whatever
the rows, and take that much less than in proportion to them.
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

from processes import ROOT, Finished, Report, positive, run

sys.path.insert(0, str(ROOT))
PROBE = "wordnet_hypernymy"
OPTIONS = (
    *("--families", "paper,near", "--max-hops", "20", "--stem-overlap", "keep", "--tier", "full"),
    *("--sampling", "uniform", "--train-rows", "0", "--cap-per-gold", "0"),
)
ROWS_OF_ONE = 300_000
"""About how many rows one perturbation of each question gives, or more."""
SMALLEST = 300
"""Rows of what stands for none: what each command takes to start."""
SIZES = (10_000, 100_000, 1_000_000)
STEPS = ("build", "check", "evaluate", "compare")
TARGET = 1.05
LEAST = 0.1
"""The least time above the start that an exponent is computed from, as a share of the start."""


def steps(rows: int, folder: Path) -> Iterator[tuple[str, Finished]]:
    """Run each step at one size; yield its name, and its time and memory."""
    probe, perturbations = folder / "probe", min(50, max(1, math.ceil(rows / ROWS_OF_ONE)))
    asked = (*OPTIONS, "--perturbations", str(perturbations), "--limit", str(rows))
    yield "build", command("builders.cli", PROBE, *asked, "-o", probe)
    yield "check", command("release.cli", "check", probe)
    results = [folder / name for name in ("first", "second")]
    done = []
    for seed, out in enumerate(results):
        words = ("-m", "none", "--scorer", "random", "--guess-seed", seed, "--no-cache", "-o", out)
        done.append(command("evaluation.cli", probe, *words))
    yield "evaluate", min(done, key=lambda one: one.processor)
    yield "compare", command("evaluation.cli", "compare", *results, "-o", folder / "compared")


def command(module: str, *words: object) -> Finished:
    """Run a command of kbprobe in a process; what it finds wrong with rows is no failure."""
    script = (
        f"import sys\nfrom {module} import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as ended: sys.exit(ended.code in (2, 130))"
    )
    return run([sys.executable, "-c", script, *map(str, words)])


def measure(rows: int, scratch: Path) -> Report:
    """Run all steps at one size; return their rows, seconds of processor time and MiB."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    done = dict(steps(rows, folder))
    manifest = json.loads((folder / "probe" / "manifest.json").read_text(encoding="utf-8"))
    shutil.rmtree(folder)
    every, tested = manifest["counts"]["rows"], manifest["counts"]["splits"]["test"]
    return {
        "rows": {"build": every, "check": every, "evaluate": tested, "compare": tested},
        "seconds": {name: one.processor for name, one in done.items()},
        "peak_mib": {name: one.peak_mib for name, one in done.items()},
    }


def growth(lines: Sequence[Report]) -> list[Report]:
    """Return exponents and bytes per row between neighbouring sizes, the first line being none."""
    start, *measured = lines
    found = []
    for small, large in pairwise(measured):
        exponents: dict[str, float | None] = {}
        per_row = {}
        for name in STEPS:
            fixed, rows, more = start["seconds"][name], small["rows"][name], large["rows"][name]
            own = [line["seconds"][name] - fixed for line in (small, large)]
            exponents[name] = None
            if min(own) > LEAST * fixed:
                exponents[name] = math.log(own[1] / own[0]) / math.log(more / rows)
            mib = large["peak_mib"][name] - small["peak_mib"][name]
            per_row[name] = mib * (1 << 20) / (more - rows)
        sizes = {"from": small["rows"]["build"], "to": large["rows"]["build"]}
        found.append({**sizes, "exponents": exponents, "bytes": per_row})
    return found


def table(lines: Sequence[Report], between: Sequence[Report]) -> str:
    """Return the measurements as Markdown."""
    head = [f"| rows | {' | '.join(STEPS)} |", f"|{'---:|' * (1 + len(STEPS))}"]
    text = ["Processor time in s, and peak memory in MiB:", "", *head]
    for line in lines:
        cells = (f"{line['seconds'][name]:.1f} s, {line['peak_mib'][name]:,.0f}" for name in STEPS)
        text.append(f"| {line['rows']['build']:,} | {' | '.join(cells)} |")
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
    from matplotlib.ticker import LogLocator

    from evaluation.report.figures import new_figure, styled

    with styled({"svg.hashsalt": path.stem}):
        figure = new_figure(9, 4.5)
        both = ("seconds", "processor time in s"), ("peak_mib", "peak memory in MiB")
        for axes, (what, label) in zip(figure.subplots(1, 2), both, strict=True):
            for name in STEPS:
                rows = [line["rows"][name] for line in lines]
                axes.loglog(rows, [line[what][name] for line in lines], "o-", label=name)
            rows = [line["rows"]["build"] for line in lines]
            last = max(lines[-1][what].values())
            linear = [last * n / rows[-1] for n in rows]
            axes.loglog(rows, linear, ":", color="grey", label="linear")
            least = min(min(line[what].values()) for line in lines)
            axes.set(xlabel="rows", ylabel=label, ylim=(least / 2, None))
            axes.minorticks_off()
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda number, _place: f"{number:,.10g}")
            axes.legend()
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def sizes_of(text: str) -> list[int]:
    """Read numbers between commas."""
    return [positive(size) for size in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", type=sizes_of, default=SIZES)
    parser.add_argument("--recorded", type=Path, help="what --json printed, not to be run again")
    parser.add_argument("--picture", type=Path, help="where to draw it (.svg, .pdf, .png)")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.recorded is not None:
        lines = json.loads(arguments.recorded.read_text(encoding="utf-8"))["measured"]
    else:
        # The very first build also compiles its knowledge base.
        measure(SMALLEST, arguments.scratch)
        lines = []
        for rows in (SMALLEST, *sorted(arguments.sizes)):
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
