"""Counts of what was left out while planning, and the error if nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from kbprobe.arrays import Bools
from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS
from kbprobe.options import option_name

NOTHING_LEFT = "no question is left to ask under these options"

KEPT_BY = {
    "a shared word gives the gold away": "--stem-overlap keep",
    "the definition holds the word asked about": "--stem-overlap keep",
    "the definition shares a word with the context": "--stem-overlap keep",
    "a word is too rare": "--min-zipf 0",
    "gold is too rare a word": "--min-zipf 0",
    "gold is on the stop list or too near its root": "--stop-golds, --min-depth",
    "gold is too near its root": "--min-depth 0",
    "too few distractors of any family": "--random-share 1",
    "pairs: sentences without one that keeps the balance": "--no-balanced",
}
"""Reasons whose text does not name the option responsible -> that option, if a probe has it."""

MAX_REASONS = 4
"""Maximum number of reasons in a summary of what was left out."""

SHOWN_REASONS = 3
"""Maximum number of reasons given for fewer rows than were asked for."""


def told_drops(
    dropped: Mapping[str, int], options: Collection[str], most: int | None = MAX_REASONS
) -> list[str]:
    """Return a few lines on what was left out of a build and why, largest count first.

    Args:
        dropped: reason -> how many questions or rows.
        options: the options that the build read: a line names the one responsible.
        most: maximum number of lines; None: one for each reason.

    >>> told_drops({"beyond --limit": 20, "a word is too rare": 3000}, ["limit", "min_zipf"])
    ['  3,000: a word is too rare (--min-zipf 0)', '  20: beyond --limit']
    """
    lines = []
    for reason, count in sorted(dropped.items(), key=lambda entry: -entry[1]):
        option = KEPT_BY.get(reason, "")
        field = option.split(",")[0].split(" ")[0].removeprefix("--").removeprefix("no-")
        known = field.replace("-", "_") in options
        lines.append(f"  {count:,}: {reason}" + f" ({option})" * bool(option and known))
    if most and len(lines) > most:
        rest = sum(sorted(dropped.values(), reverse=True)[most - 1 :])
        lines[most - 1 :] = [f"  {rest:,}: {len(lines) - most + 1} other reasons (see the card)"]
    return lines


BEYOND = "beyond "


def beyond(option: str) -> str:
    """Return the reason for which rows are left out that an option asks for no more of."""
    return f"{BEYOND}{option_name(option)}"


def why_fewer(dropped: Mapping[str, int]) -> str:
    """Return why there are no more rows: the most frequent reasons that no row limit gives.

    >>> why_fewer({"beyond --train-rows": 20, "a word is too rare": 3000})
    'left out: a word is too rare (3,000)'
    """
    most = sorted(dropped.items(), key=lambda entry: -entry[1])
    why = [f"{reason} ({count:,})" for reason, count in most if not reason.startswith(BEYOND)]
    if not why:
        return "the sources have no more"
    more = f"; {len(why) - SHOWN_REASONS} other reasons" if len(why) > SHOWN_REASONS else ""
    return f"left out: {'; '.join(why[:SHOWN_REASONS])}{more}"


def told_fewer(manifest: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each option that asks for more rows than there are, or for a split.

    >>> short = {"test_rows": {"asked": 500, "rows": 155, "reason": "too rare"}}
    >>> counts = {"splits": {"train": 90, "validation": 0, "test": 155}, "fewer": short}
    >>> request = {"options": {"split_shares": [0.3, 0.2, 0.5]}}
    >>> told_fewer({"request": request, "counts": counts})
    ['--test-rows 500 gives 155 rows, all that there are (too rare)', 'validation has no rows']
    """
    counts, options = manifest["counts"], manifest["request"]["options"]
    shares = zip(SPLITS, options.get("split_shares", ()), strict=False)
    return [
        f"{option_name(name)} {short['asked']} gives {short['rows']:,} rows, all that there are "
        f"({short['reason']})"
        for name, short in counts.get("fewer", {}).items()
    ] + [f"{split} has no rows" for split, share in shares if share and not counts["splits"][split]]


class DropLog(Counter[str]):
    """How many questions or rows were left out, by reason.

    >>> log = DropLog()
    >>> keep = log.keep("gold is too rare a word", np.array([True, False, True]))
    >>> dict(log), keep.tolist()
    ({'gold is too rare a word': 1}, [True, False, True])
    """

    def keep(self, reason: str, kept: Bools) -> Bools:
        """Count what a mask excludes, and return the mask."""
        self[reason] += int(kept.size - np.count_nonzero(kept))
        return kept

    def drop(self, reason: str, dropped: Bools) -> Bools:
        """Count what a mask marks, and return its inverse."""
        self[reason] += int(np.count_nonzero(dropped))
        return ~dropped

    def sift(self, tests: Mapping[str, Bools], what: str = "") -> Bools:
        """Return the mask of what passes all tests; each test marks failures, counted once.

        ``what`` is put before the reasons.
        """
        left = np.ones_like(next(iter(tests.values())))
        for reason, fails in tests.items():
            left &= self.drop(what + reason, left & fails)
        return left

    def require(
        self, left: int, remedy: str = "Loosen one of them.", what: str = NOTHING_LEFT
    ) -> None:
        """Check that there is something left to ask.

        Args:
            left: the number of questions.
            remedy: what to do if there are none.
            what: the beginning of the error message.

        Raises:
            UsageError: ``left`` is 0; the message lists what was left out, and why.
        """
        if left:
            return
        reasons = "; ".join(f"{reason}: {count:,}" for reason, count in self.items() if count)
        why = f"left out: {reasons}" if reasons else "the knowledge base has nothing that fits them"
        raise UsageError(f"{what} ({why}). {remedy}")
