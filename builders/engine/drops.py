"""What was left out on the way to a plan, and the error where nothing is left."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kbprobe.arrays import Bools
from kbprobe.errors import UsageError

NOTHING_LEFT = "no question is left to ask under these options"


class DropLog(Counter[str]):
    """How many questions or rows were left out, by reason.

    >>> log = DropLog()
    >>> keep = log.keep("gold is too rare a word", np.array([True, False, True]))
    >>> dict(log), keep.tolist()
    ({'gold is too rare a word': 1}, [True, False, True])
    """

    def keep(self, reason: str, kept: Bools) -> Bools:
        """Count what a mask leaves out, and return the mask."""
        self[reason] += int(kept.size - np.count_nonzero(kept))
        return kept

    def drop(self, reason: str, dropped: Bools) -> Bools:
        """Count what a mask marks, and return the mask of what stays."""
        self[reason] += int(np.count_nonzero(dropped))
        return ~dropped

    def require(
        self, left: int, remedy: str = "Loosen one of them.", what: str = NOTHING_LEFT
    ) -> None:
        """Make sure that something is left to ask.

        Args:
            left: how many questions there are.
            remedy: what to do where there are none.
            what: what the error says first.

        Raises:
            UsageError: ``left`` is 0; the message lists what was left out, and why.
        """
        if left:
            return
        reasons = "; ".join(f"{reason}: {count:,}" for reason, count in self.items() if count)
        raise UsageError(f"{what} (left out: {reasons or 'nothing'}). {remedy}")
