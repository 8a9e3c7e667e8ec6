"""Count the questions that a knowledge base allows: by default, and with limits turned off.

    python benchmarks/ceilings.py [PROBE ...] [--option NAME=VALUE ...] [--json]

The last line of a probe is the ceiling of the data: the number of questions without caps, minimum
frequencies and similar limits, so that answers only have to be true. ``--option conceptnet=NAME``
is passed on to the probes that have that option. Nothing is rendered, audited or written.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from builders.engine.probe import Probe, find_probe
from kbprobe.errors import KbprobeError
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

LIMITS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "antonym_negation": {
        "words down to Zipf 2": {"min_zipf": 2.0},
        "also words that look alike": {"min_zipf": 2.0, "look_alikes": True},
        "also indirect antonyms": {"min_zipf": 0.0, "look_alikes": True, "indirect": True},
    },
    "dictionary_wordsense": {
        "definitions that share a word with word or context": {"stem_overlap": "keep"},
        "every context, all of the word's senses": {
            "stem_overlap": "keep",
            "other_pos": True,
        },
    },
    "property_conjunction": {
        "no caps": {"cap_per_gold": 0, "train_rows": 0},
    },
    "property_conjunction_but_not": {
        "no caps": {"cap_per_gold": 0, "train_rows": 0},
    },
    "taxonomy_conjunction": {
        "words down to Zipf 2": {"min_zipf": 2.0},
        "distractors of any level, no caps": {
            "min_zipf": 2.0,
            "level": 1e9,
            "cap_per_gold": 0,
            "cap_per_word": 0,
        },
        "drawn the published way": {"families": ("paper",)},
    },
}
"""Probe -> name of a relaxation -> its options, from mild to complete."""


def count(probe: Probe, given: Mapping[str, Any]) -> dict[str, Any]:
    """Plan a probe and count its rows."""
    options = probe.options.parse(dict(given), probe.name)
    start = time.perf_counter()
    knowledge = probe.open(options)
    opened = time.perf_counter()
    plan = probe.plan(knowledge, options, RandomGenerator.of(0, probe.name))
    return {
        "rows": len(plan),
        "splits": {name: int((plan.split == code).sum()) for code, name in enumerate(SPLITS)},
        "concepts": int(np.unique(plan.concept.codes).size),
        "golds": int(np.unique(plan.nodes[:, 0]).size),
        "dropped": dict(plan.dropped),
        "open_s": round(opened - start, 2),
        "plan_s": round(time.perf_counter() - opened, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("probes", nargs="*", metavar="PROBE", help=f"of {', '.join(LIMITS)}")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    more = dict(one.split("=", 1) for one in arguments.option)
    report: dict[str, dict[str, Any]] = {}
    for name in arguments.probes or LIMITS:
        probe = find_probe(name)
        here = {key: value for key, value in more.items() if key in probe.options.model_fields}
        report[name] = {}
        if not arguments.json:
            print(f"{name}")
        for label, options in {"default": {}, **LIMITS.get(name, {})}.items():
            try:
                found = count(probe, {**options, **here})
            except KbprobeError as error:
                print(f"  {label}: {error}", file=sys.stderr)
                continue
            report[name][label] = found
            if not arguments.json:
                splits = ", ".join(f"{split} {rows:,}" for split, rows in found["splits"].items())
                print(f"  {label}: {found['rows']:,} rows ({splits})")
                if label == "default":
                    for reason, rows in found["dropped"].items():
                        print(f"      left out: {rows:,} {reason}")
    if arguments.json:
        json.dump(report, sys.stdout, indent=2)
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
