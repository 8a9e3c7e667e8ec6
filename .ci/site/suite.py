"""Build a standard suite, and write its checksums and the figures that pages state of it.

    python .ci/site/suite.py kbprobe-1
    python .ci/site/figures.py

It writes ``builders/engine/data/NAME.sha256`` and ``docs/figures/NAME.json``. This is for a suite
that is not published yet: a published one never changes, and a change to its rows makes another.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from builders.engine.command import run_jobs
from builders.engine.recipe import find_suite, read_recipe
from kbprobe.format.manifest import read_manifest
from kbprobe.format.suite import checksums

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"


def main(name: str) -> None:
    """Build a suite, and write its checksums and figures."""
    path = find_suite(name)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    sums: dict[str, str] = {}
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        recipe = Path(scratch, path.name)
        stated = "".join(line for line in lines if not line.startswith("checksums:"))
        recipe.write_text(stated, "utf-8")
        declared = read_recipe(recipe, Path(scratch, name), {"template": None, "audit": False})
        run_jobs(declared.jobs, overwrite=False, as_json=False, brief=True)
        for request, folder in declared.jobs:
            manifest = read_manifest(folder)
            sums |= checksums(folder.name, manifest)
            rows = [json.loads(line) for line in (folder / "data/test.jsonl").open("rb")]
            random = sum(row["distractor_family"] == "random" for row in rows)
            figures[request.probe.name] = {
                **manifest.counts.splits,
                "clusters": len({row["cluster"] for row in rows}),
                "near": len(rows) - random if random else "–",
                "random": random or "–",
                "chance": 1 / len(rows[0]["choices"]["text"]),
            }
    figures["all"] = {
        "probes": len(figures),
        "test": sum(one["test"] for one in figures.values()),
        "files": len(sums),
    }
    text = "".join(f"{digest}  {file}\n" for file, digest in sorted(sums.items()))
    path.with_suffix(".sha256").write_bytes(text.encode())
    (FIGURES / f"{name}.json").write_bytes(f"{json.dumps(figures, indent=1)}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
