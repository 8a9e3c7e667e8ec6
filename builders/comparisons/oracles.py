"""Oracles for comparisons, which see some of the arguments and know the range of all."""

from __future__ import annotations

import numpy as np

from builders.engine.oracles import Oracle
from kbprobe.arrays import Floats, Ints


def seen_alone(knows: str, below: Floats, extreme: Ints, seen: int, target: float) -> Oracle:
    """Return an oracle that sees only the first arguments of each row.

    The oracle names the extreme of what it sees, or one of the others at random, whichever is more
    likely.

    Args:
        knows: what it knows, in words.
        below: (rows, K) for each argument, the share of the row's possible values that it
            surpasses.
        extreme: (rows,) the position of the argument that surpasses all others.
        seen: how many arguments it sees.
        target: the maximum accuracy it should have.

    >>> below, extreme = np.array([[0.9, 0.1], [0.2, 0.7], [0.6, 0.8]]), np.array([0, 1, 1])
    >>> seen_alone("the first", below, extreme, 1, 0.75).credit
    array([1., 1., 0.])
    """
    hidden = below.shape[1] - seen
    best = below[:, :seen].argmax(axis=1)
    likely = below[:, :seen].max(axis=1) ** hidden
    unsure = np.isclose(likely, (1 - likely) / hidden)
    guesses = likely > (1 - likely) / hidden
    when_seen = (extreme == best).astype(np.float64)
    when_hidden = (extreme >= seen) / hidden
    credit = np.where(guesses, when_seen, when_hidden)
    return Oracle(knows, np.where(unsure, (when_seen + when_hidden) / 2, credit), target)
