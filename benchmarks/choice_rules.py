"""Measure how often rules that see nothing but the choices are right.

    python benchmarks/choice_rules.py PROBE... [--limit N] [--limit-by groups|clusters|rows]

Tries 30 rules on the test split of built probes, or on the rows that ``evaluate-probe --limit N``
draws from it: the longest choice, the first in the alphabet, the second position, and so on. Prints
the lowest and the highest accuracy, and the rule of each. Where rows are in whole choice groups,
every rule is right in exactly one of n rows, n being the number of choices.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if TYPE_CHECKING:
    from evaluation.items.types import ProbeSplit

Rule = Callable[[Sequence[str]], int]
"""Returns the position of the choice that it picks."""


def main() -> None:
    """Print the range of the rules' accuracies on each probe."""
    from evaluation.options import RunOptions
    from evaluation.runs.reading import SplitReader

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("probes", nargs="+", metavar="PROBE", help="Folders of built probes.")
    parser.add_argument("--limit", type=int, metavar="N", help="Rows of each probe [all].")
    parser.add_argument("--limit-by", choices=("groups", "clusters", "rows"), default="groups")
    given = parser.parse_args()
    drawn = {} if given.limit is None else {"limit": given.limit, "limit_by": given.limit_by}
    for probe in given.probes:
        split = SplitReader().rows(probe, RunOptions(**drawn))
        found = accuracies(split)
        low, high = (pick(found, key=found.__getitem__) for pick in (min, max))
        print(
            f"{probe}: {len(split.items):,} rows, {len(found)} rules from "
            f"{float(found[low]):.2%} ({low}) to {float(found[high]):.2%} ({high})"
        )


def accuracies(split: ProbeSplit) -> dict[str, Fraction]:
    """Return the exact accuracy of each rule on some rows."""
    items = list(split.items)
    return {
        name: Fraction(sum(rule(item.choices) == item.answer for item in items), len(items))
        for name, rule in rules().items()
    }


def rules() -> Mapping[str, Rule]:
    """Return the rules by name."""
    traits: dict[str, Callable[[str], float]] = {
        "characters": len,
        "words": lambda text: len(text.split()),
        "characters of a word": lambda text: len(text) / max(len(text.split()), 1),
        "vowels": lambda text: sum(map(text.lower().count, "aeiou")),
        "characters that differ": lambda text: len(set(text)),
        "punctuation": lambda text: sum(not (sign.isalnum() or sign == " ") for sign in text),
        "place in the alphabet": lambda text: sum(
            ord(sign) / 1000.0**power for power, sign in enumerate(text[:4], 1)
        ),
        **{f"letters {letter}": partial(_count, letter) for letter in "eorst"},
        **{f"random number {seed}": partial(_random, seed) for seed in range(2)},
    }
    found = {
        f"{end} {name}": partial(_most, sign, trait)
        for name, trait in traits.items()
        for end, sign in (("most", 1), ("fewest", -1))
    }
    found |= {f"position {place}": partial(_place, place) for place in (0, 1)}
    return found


def _most(sign: int, trait: Callable[[str], float], choices: Sequence[str]) -> int:
    """Pick the choice with most (or fewest) of a trait; of equals the last in the alphabet."""
    return max(range(len(choices)), key=lambda at: (sign * trait(choices[at]), choices[at]))


def _place(place: int, choices: Sequence[str]) -> int:
    return place


def _count(letter: str, text: str) -> int:
    return text.lower().count(letter)


def _random(seed: int, text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}{text}".encode()).digest()[:8])


if __name__ == "__main__":
    main()
