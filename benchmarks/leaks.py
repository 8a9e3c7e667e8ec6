"""Measure how much each way of drawing distractors gives away, and its share of near rows.

    python benchmarks/leaks.py [--rules N] [--limit N] [--seed N] [--json FILE]

Builds wordnet_hypernymy once for each rule, in a temporary folder, and prints the audit results:

- **near**: the share of rows whose distractors are not random.
- **choice-only model**, on the scored split: all rows / the family where it does best. It is
  fitted on the choices of train without their questions. Below chance, its
  **inverse** leaks as much.
- **most general choice**: the same for the choice with the most hyponyms.
- **field oracle**: accuracy reached by knowing only the lexicographer file of the word, on all
  rows / those with near distractors.

All in percent. Families with too few rows to judge are excluded from the maxima. ``--rules`` runs
only the first few rules and ``--limit`` limits the rows of each build, to try the benchmark out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kbprobe
from kbprobe.format.manifest import Audit, read_manifest

PROBE = "wordnet_hypernymy"
RULES: Mapping[str, Mapping[str, Any]] = {
    "paper's families, uniform, full tier": {
        "families": ("paper",),
        "sampling": "uniform",
        "tier": "full",
    },
    "paper's families, uniform": {"families": ("paper",), "sampling": "uniform"},
    "near and random, uniform": {"sampling": "uniform"},
    "near and random, groups (default)": {},
    "the same, random share 0": {"random_share": 0.0},
    "the same, random share 0.5": {"random_share": 0.5},
    "random alone, groups": {"families": ("random",)},
}
BASELINES = ("choice-only model", "choice-only model, inverted", "most general choice")
COLUMNS = ("rows", "near", "choice-only", "inverse", "most general", "field oracle")


def main() -> None:
    """Build with each rule and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rules", type=int, metavar="N", help="How many of the rules [all].")
    parser.add_argument("--limit", type=int, metavar="N", help="Rows of each build [all].")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="Seed of the draws [0].")
    parser.add_argument("--json", type=Path, help="Write the figures to this file as well.")
    options = parser.parse_args()
    limit = {} if options.limit is None else {"limit": options.limit}
    width = max(map(len, RULES))
    print("rule".ljust(width), *(name.rjust(13) for name in COLUMNS))
    measured = {}
    for rule, chosen in list(RULES.items())[: options.rules]:
        measured[rule] = cells = measure({**chosen, **limit}, options.seed)
        print(rule.ljust(width), *(cells[name].rjust(13) for name in COLUMNS), flush=True)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def measure(options: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Return a line of the table: the figures of a build with these options."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / PROBE
        kbprobe.build(PROBE, output=folder, seed=seed, **options)
        manifest = read_manifest(folder)
        counts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["counts"]
    audit = manifest.audit
    if audit is None:
        raise SystemExit(f"no audit of {PROBE} with {dict(options)}")
    random = sum(families.get("random", 0) for families in counts["cells"].values())
    field = audit.oracles["field"].families
    shares = [[1 - random / counts["rows"]]]
    shares += [reached(audit, name) for name in BASELINES]
    shares += [[field[part] for part in ("all", "near") if part in field]]
    written = [" / ".join(f"{100 * share:.1f}" for share in cell) or "-" for cell in shares]
    return dict(zip(COLUMNS, (f"{counts['rows']:,}", *written), strict=True))


def reached(audit: Audit, baseline: str) -> list[float]:
    """Return the accuracy of a baseline on all rows, and on its best family."""
    cells = audit.baselines.get(baseline, {})
    judged = [
        cell.value
        for family, cell in cells.items()
        if family != "all" and cell.verdict != "few rows"
    ]
    return [cells["all"].value, *([max(judged)] if judged else [])] if cells else []


if __name__ == "__main__":
    main()
