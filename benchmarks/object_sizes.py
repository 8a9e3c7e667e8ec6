"""Compare our estimates of things with VerbPhysics, in which people compared pairs of things.

    python benchmarks/object_sizes.py [FOLDER] [--json] [--all]

FOLDER, by default ../shared/data/object_sizes next to the repository, is a clone of
https://github.com/uwnlp/verbphysics (Forbes & Choi, ACL 2017; MIT), of which
``data/verbphysics/objects/train-5/*.csv`` is read; nothing of it is copied. Only pairs are used in
which both things are in our table, under the same word or one of ``ALSO``, and for which most of
the people asked agree on an order. For each dimension it prints how many of these pairs our
estimates order the same way, among all that differ and among those that object_comparison could ask
about, and lists the others.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from builders.comparisons.objects import COLUMNS, Thing, far_apart, load_things
from builders.comparisons.options import ObjectOptions

PEOPLE = (
    *("banker", "brother", "candidate", "daughter", "father", "fool", "friend", "gentleman"),
    *("king", "lady", "lover", "lumberman", "magistrate", "master", "messenger", "parent", "poet"),
    *("servant", "someone", "teacher", "victim", "volunteer", "wife", "worker"),
)

ALSO = {
    "bag": "handbag",
    "bench": "park bench",
    "button": "shirt button",
    "clock": "wall clock",
    "clothes": "coat",
    "coal": "lump of coal",
    "glass": "wine glass",
    "home": "house",
    "knife": "kitchen knife",
    "phone": "smartphone",
    "purse": "handbag",
    "sea": "ocean",
    "ship": "cargo ship",
    "sink": "kitchen sink",
    "store": "shop",
    "world": "earth",
    **dict.fromkeys(("boy", "lad"), "child"),
    **dict.fromkeys(PEOPLE, "person"),
}
"""VerbPhysics' word -> our word for the same thing, if they differ."""

FILES = "data/verbphysics/objects/train-5/*.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "object_sizes"
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="list those within a bucket, too")
    arguments = parser.parse_args()
    if not list(arguments.folder.glob(FILES)):
        raise SystemExit(
            f"{arguments.folder} holds no {FILES}. Clone https://github.com/uwnlp/verbphysics and "
            f"name its folder: python benchmarks/object_sizes.py FOLDER"
        )
    report = compare(arguments.folder)
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    for dimension, found in report.items():
        print(
            f"{dimension}: {found['alike']} of {found['pairs']} pairs alike; of those that could "
            f"be asked about {found['asked_alike']} of {found['asked']}; "
            f"{found['things']} things"
        )
        for one in found["unlike"]:
            if one["asked"] or arguments.all:
                print(
                    f"  {one['more']} said to be more than {one['less']} "
                    f"({one['agree']} people); here {one['estimates'][0]:g}, "
                    f"{one['estimates'][1]:g}"
                )


def compare(folder: Path) -> dict[str, dict[str, Any]]:
    """Compare every dimension; return counts and the pairs that are ordered differently."""
    table = load_things().things
    things = {thing.name: thing for thing in table}
    place = {name: np.array([at]) for at, name in enumerate(things)}
    report: dict[str, dict[str, Any]] = {}
    for dimension, column in COLUMNS.items():
        options = ObjectOptions(dimension=dimension)
        names: set[str] = set()
        counts = dict.fromkeys(("pairs", "alike", "asked", "asked_alike"), 0)
        unlike = []
        for more, less, agree in judged(folder, dimension, things):
            estimates = getattr(more, column), getattr(less, column)
            if None in estimates or estimates[0] == estimates[1]:
                continue
            names |= {more.name, less.name}
            asked = bool(far_apart(table, place[more.name], place[less.name], options)[0])
            alike = estimates[0] > estimates[1]
            for name, holds in zip(counts, (True, alike, asked, asked and alike), strict=True):
                counts[name] += holds
            if not alike:
                unlike.append(
                    {
                        "more": more.name,
                        "less": less.name,
                        "agree": agree,
                        "estimates": estimates,
                        "asked": asked,
                    }
                )
        report[dimension] = {**counts, "things": len(names), "unlike": unlike}
    return report


def judged(
    folder: Path, dimension: str, things: dict[str, Thing]
) -> Iterator[tuple[Thing, Thing, int]]:
    """Yield the pairs in our table for which most people said that the first is more."""
    for path in sorted(folder.glob(FILES)):
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                one, other = (
                    things.get(ALSO.get(line[name], line[name])) for name in ("obj1", "obj2")
                )
                majority, agree = int(line[f"{dimension}-maj"]), int(line[f"{dimension}-agree"])
                if one and other and agree >= 2 and majority in (1, -1):
                    yield (one, other, agree) if majority == 1 else (other, one, agree)


if __name__ == "__main__":
    main()
