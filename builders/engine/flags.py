"""Flags: reasons that keep a question out of the clean tier.

A probe is built in one of two tiers. *Clean* holds what a careful person answers; *full* also
holds questions whose gold is right in the knowledge base but which a person may well miss. Each
row of *full* names what keeps it out of *clean*, so that the rules are data that users can inspect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from builders.engine.drops import DropLog
from kbprobe.arrays import Bools, Ints, Some
from kbprobe.format.items import Coded, Ragged


@dataclass(frozen=True)
class Flags:
    """What keeps each line (a question or a row) out of the clean tier.

    Attributes:
        names: the flags in use, in the order in which they were first marked.
        bits: (lines,) bit ``i`` stands for ``names[i]``.

    >>> flags = Flags.none(3).mark("rare_sense", np.array([True, False, True]))
    >>> flags = flags.mark("vague_gold", np.array([True, False, False]))
    >>> flags.counts(), flags.flagged.tolist()
    ({'rare_sense': 2, 'vague_gold': 1}, [True, False, True])
    """

    names: tuple[str, ...]
    bits: Ints

    @classmethod
    def none(cls, lines: int) -> Flags:
        """Return flags of which no line has any."""
        return cls((), np.zeros(lines, dtype=np.int64))

    def mark(self, name: str, lines: Bools) -> Flags:
        """Return the flags with one more: ``lines`` marks those that have it."""
        names = self.names if name in self.names else (*self.names, name)
        return replace(self, names=names, bits=self.bits | (lines << names.index(name)))

    def take(self, lines: Some) -> Flags:
        """Return the flags of some lines."""
        return replace(self, bits=self.bits[lines])

    def narrow(self) -> Flags:
        """Return the flags in as few bytes a line as hold them."""
        kind = np.min_scalar_type(-(1 << len(self.names)))
        return replace(self, bits=self.bits.astype(kind))

    @property
    def flagged(self) -> Bools:
        """(lines,) whether a line has any flag."""
        return np.asarray(self.bits != 0)

    def counts(self) -> dict[str, int]:
        """Return how many lines have each flag."""
        return {name: int((self.bits >> at & 1).sum()) for at, name in enumerate(self.names)}

    def of_tier(self, tier: str, dropped: DropLog) -> Bools:
        """Mark the lines that a tier asks, and count the others in ``dropped`` by flag."""
        if tier == "full":
            return np.ones(self.bits.size, dtype=np.bool_)
        for name, count in self.counts().items():
            dropped[left_out(name)] += count
        return ~self.flagged

    def column(self) -> Ragged:
        """Return the items' column: the names of each line's flags."""
        combinations, line = np.unique(self.bits, return_inverse=True)
        marked = combinations[:, None] >> np.arange(len(self.names)) & 1
        indptr = np.concatenate([[0], np.cumsum(marked.sum(axis=1))]).astype(np.int64)
        names = Coded(pa.array(self.names, pa.string()), np.nonzero(marked)[1].astype(np.int64))
        return Ragged(line.astype(np.int64), indptr, {"": names})


def left_out(flag: str) -> str:
    """Return the words by which counts say that a flag kept questions out of the clean tier."""
    return f"flagged {flag}, see --tier full"
