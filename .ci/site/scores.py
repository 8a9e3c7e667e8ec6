"""Read score cards of kbprobe-1, write the figures that pages state of them, and draw them.

    evaluate-probe scorecard probes/kbprobe-1 --model models/smollm2 -o results/smollm2
    evaluate-probe baselines probes/kbprobe-1/wordnet_* --baselines choice_only -o results/baselines
    python .ci/site/scores.py smollm2=results/smollm2 baselines=results/baselines
    python .ci/site/figures.py

Names that are given are replaced or added in ``docs/figures/scores.json``, the others stay; the
baselines of a folder have names of their own. The heat map, ``docs/images/scores.png``, is of all
that were scored on the whole suite.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCORES = DOCS / "figures" / "scores.json"
IMAGE = DOCS / "images" / "scores.png"
SUITE = "kbprobe-1"
PARTS = {"near": "near_accuracy", "random": "random_accuracy", "all": "accuracy"}
"""The rows of a probe by their distractors: name -> the score card's field."""


def read_card(folder: Path) -> dict[str, Any]:
    """Return the figures of a score card of one model.

    Raises:
        SystemExit: it is of another suite, or not of all of its rows.
    """
    card = json.loads((folder / "scorecard.json").read_text("utf-8"))
    if card["suite"] != SUITE or not card["standard"] or len(card["models"]) != 1:
        raise SystemExit(f"{folder} is not the score card of one model on {SUITE}")
    (model,) = card["models"]
    return {
        "overall": {name: read_estimate(one) for name, one in model["overall"].items() if one},
        "probes": {
            one["probe"]: {
                "chance": round(one["chance"], 6),
                **{part: read_estimate(one[field]) for part, field in PARTS.items() if one[field]},
            }
            for one in model["probes"]
        },
    }


def read_baselines(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of each baseline in a folder of the study ``baselines``."""
    summary = json.loads((folder / "baselines.json").read_text("utf-8"))
    baselines: dict[str, dict[str, Any]] = {}
    for row in summary["tables"]["runs"]:
        probes = baselines.setdefault(row["baseline"], {"overall": {}, "probes": {}})["probes"]
        probes[row["probe"]] = {
            "chance": round(row["chance"], 6),
            "all": read_estimate(row["accuracy"]),
        }
    return baselines


def read_estimate(estimate: dict[str, Any]) -> list[float]:
    """Return a value and the ends of its interval."""
    return [round(estimate[part], 6) for part in ("value", "low", "high")]


def in_hundredths(estimate: list[float]) -> str:
    """Return a value and its interval as pages show them: ``72.3 (71.2 to 73.4)``."""
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * n for n in estimate)).replace("-", "−")


def draw(scores: dict[str, Any]) -> None:
    """Draw the accuracy above chance of each model on each probe, near and random rows apart."""
    from matplotlib.figure import Figure

    scores = {name: of for name, of in scores.items() if of["overall"]}
    first = next(iter(scores.values()))["probes"]
    rows = [
        (probe, part)
        for probe, of in first.items()
        for part in PARTS
        if part in of and (part != "all" or "near" not in of)
    ]
    accuracy = np.array(
        [[of["probes"][probe][part][0] for of in scores.values()] for probe, part in rows]
    )
    chance = np.array([[first[probe]["chance"]] for probe, _ in rows])
    figure = Figure(figsize=(2.6 + 1.1 * len(scores), 0.8 + 0.3 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        100 * (accuracy - chance) / (1 - chance), "RdYlBu", aspect="auto", vmin=-100, vmax=100
    )
    for (row, column), share in np.ndenumerate(accuracy):
        axes.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(scores)), [*scores], rotation=20, ha="right", fontsize=8)
    labels = [probe if part == "all" else f"{probe}, {part}" for probe, part in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    figure.colorbar(image, label="points above chance (100: all right)", shrink=0.6)
    figure.savefig(IMAGE, dpi=110)


def main() -> None:
    """Read the score cards given, and draw all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cards", nargs="*", metavar="NAME=DIR")
    scores = json.loads(SCORES.read_text("utf-8")) if SCORES.exists() else {}
    for card in parser.parse_args().cards:
        name, folder = card.split("=", 1)
        if (Path(folder) / "baselines.json").exists():
            scores |= read_baselines(Path(folder))
        else:
            scores[name] = read_card(Path(folder))
    SCORES.write_text(json.dumps(scores, indent=1) + "\n", "utf-8")
    draw(scores)


if __name__ == "__main__":
    main()
