"""Oracles of partial knowledge: what a row needs to be answered.

An oracle knows all that the knowledge base states, but sees or knows only a part of the question:
only the field of the word asked about, say. It keeps the choices that are still possible and picks
one of them at random. Where it does much better than chance, the rest of the question is hardly
needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from builders.engine.options import RANDOM
from kbprobe.arrays import Bools, Floats, Ints, Some


@dataclass(frozen=True)
class Oracle:
    """The results of an oracle.

    Attributes:
        knows: what it knows of a question, in words.
        credit: (rows,) how likely it is right.
        target: its maximum acceptable accuracy over all rows.
    """

    knows: str
    credit: Floats
    target: float

    def take(self, rows: Some) -> Oracle:
        """Return the results on some rows."""
        return Oracle(self.knows, self.credit[rows], self.target)


Oracles = Mapping[str, Oracle]
"""Name -> results of the oracle."""


def credit(possible: Bools) -> Floats:
    """Return how likely a random pick among the possible choices is right.

    Args:
        possible: (rows, K) whether the oracle thinks a choice possible, the gold in column 0. Where
            it excludes all of them, it picks among all.

    >>> credit(np.array([[True, True, False], [False, True, False], [False, False, False]]))
    array([0.5       , 0.        , 0.33333333])
    """
    count = possible.sum(axis=1)
    guess = 1.0 / possible.shape[1]
    return np.asarray(np.where(count == 0, guess, possible[:, 0] / np.maximum(count, 1)))


def report(
    oracles: Oracles, family: Ints, family_names: Sequence[str], hops: Ints
) -> dict[str, object]:
    """Return, JSON-ready, how often each oracle is right: over all rows, by family and by hops.

    ``near`` are the rows of all families but the random one, where there are both.
    """
    families, of_family = np.unique(family, return_inverse=True)
    numbers, of_hops = np.unique(hops, return_inverse=True)
    near = np.array([name != RANDOM for name in family_names])[family]
    made: dict[str, object] = {}
    for name, oracle in oracles.items():
        cells = {"all": float(oracle.credit.mean())}
        if near.any() and not near.all():
            cells["near"] = float(oracle.credit[near].mean())
        cells |= _means(oracle.credit, of_family, [family_names[code] for code in families])
        made[name] = {
            "knows": oracle.knows,
            "target": oracle.target,
            "families": cells,
            "hops": _means(oracle.credit, of_hops, numbers),
        }
    return made


def _means(values: Floats, label: Ints, names: Iterable[object]) -> dict[str, float]:
    totals = np.bincount(label, values) / np.bincount(label)
    return {str(name): float(mean) for name, mean in zip(names, totals, strict=True)}
