"""Measure what the questions of built probes give away: one line for each probe and family.

    python benchmarks/hardness.py probes/wordnet_hypernymy probes/wordnet_definitions
    python benchmarks/hardness.py probes/* --encoder all-MiniLM-L6-v2 --json hardness.json

For each probe: rows, distinct (question, answer) pairs and rows per cluster; the share of rows with
random distractors; the accuracy of oracles with partial knowledge (all rows / near families). For
each family on the scored split: how often the choice most similar to the question is right, by word
vectors without function words and by a sentence encoder (``--encoder``), and the accuracy of the
strongest adversary that sees only the choices. All in percent.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kbprobe.audit.adversaries import DeepRows, elimination, likeness, meaning, read, surface
from kbprobe.audit.verdicts import Shortcut, credit_of
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from release.checks.deep import cues_of


def main() -> None:
    """Measure each probe and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("probes", nargs="+", type=Path, help="Folders of built probes.")
    parser.add_argument("--encoder", default="", help="A sentence encoder, folder or id.")
    parser.add_argument("--json", type=Path, help="Write the figures to this file as well.")
    options = parser.parse_args()
    figures = {}
    for folder in options.probes:
        figures[folder.name] = found = measured(folder, options.encoder)
        about = ", ".join(f"{name} {value}" for name, value in found["probe"].items())
        print(f"{folder.name}: {about}")
        for family, cells in found["families"].items():
            print(f"  {family:22}" + "  ".join(f"{name} {value}" for name, value in cells.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measured(folder: Path, encoder: str) -> dict[str, Any]:
    """Measure a built probe."""
    manifest = read_manifest(folder)
    counts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    rows = read(folder, manifest, DEFAULT_CONFIG, seed=0, cues=cues_of(manifest, encoder))
    if rows is None:
        return {"probe": {"rows": counts["counts"]["rows"]}, "families": {}}
    family = np.array(rows.family_names)[rows.family[rows.scored]]
    sizes = {name: int((family == name).sum()) for name in rows.family_names}
    oracles = (counts["audit"] or {}).get("oracles", {})
    probe = {
        "rows": counts["counts"]["rows"],
        "pairs": counts["counts"]["question_answer_pairs"],
        "rows a cluster": counts["counts"]["mean_cluster"],
        "random": percent(sizes.get("random", 0) / max(sum(sizes.values()), 1)),
        **{
            f"{name} oracle": "/".join(
                percent(oracle["families"][part])
                for part in ("all", "near")
                if part in oracle["families"]
            )
            for name, oracle in oracles.items()
        },
    }
    families: dict[str, dict[str, Any]] = {name: {"rows": size} for name, size in sizes.items()}
    strongest = dict.fromkeys(sizes, 0.0)
    for shortcut in adversaries(rows):
        scores = np.where(rows.shown[rows.scored], shortcut.scores, -np.inf)
        right = credit_of(scores, rows.answer[rows.scored])
        for name in sizes:
            share = float(right[family == name].mean())
            if shortcut.judged:
                strongest[name] = max(strongest[name], share)
            elif shortcut.name.startswith("similar:"):
                families[name][shortcut.name] = percent(share)
    for name, share in strongest.items():
        families[name]["choices alone"] = percent(share)
    return {"probe": probe, "families": families}


def adversaries(rows: DeepRows) -> Iterator[Shortcut]:
    """Yield adversaries that see only the choices, and those that also see the question."""
    if rows.train.size:
        yield surface(rows)
        if rows.cues.encoder:
            yield meaning(rows)
        yield meaning(replace(rows, cues=rows.cues._replace(encoder="")))
    yield from likeness(rows)
    yield from elimination(rows)


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
