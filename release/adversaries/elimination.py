"""Elimination: a text that was right in other rows of the split has had its turn, or is favoured.

Each row is answered from the rows of other folds of its own split, of which the answers are known,
without its question. Two ways of making folds: of clusters, so that rows of other concepts show the
same choices; and of rows that show the same choices, in any order. What is right in rows with other
choices must tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from release.adversaries.types import Guesses, Rows

FOLDS = 5


def elimination(rows: Rows) -> Iterator[Guesses]:
    """Take the choice that is least often right in rows of other folds, and the most often right.

    That each of the same choices is right once is how they are balanced: what clusters tell is
    reported, not judged.
    """
    for name, group in (("clusters", rows.cluster), ("choices", _same_choices(rows))):
        fold = _folds(group[rows.scored])
        rate = _right_elsewhere(rows, fold)
        judged = name == "choices"
        yield Guesses(f"elimination:{name}:least", -rate, trained=False, judged=judged)
        yield Guesses(f"elimination:{name}:most", rate, trained=False, judged=judged)


def _right_elsewhere(rows: Rows, fold: Ints) -> Floats:
    """Return the share of the rows of other folds that show a choice in which it is right."""
    choices, gold = rows.choices[rows.scored], rows.is_gold[rows.scored]
    shown = rows.shown[rows.scored]
    counts = np.zeros((2, len(rows.texts), FOLDS))
    line, column = np.nonzero(shown)
    np.add.at(counts[0], (choices[line, column], fold[line]), 1.0)
    np.add.at(counts[1], (choices[line, column], fold[line]), gold[line, column])
    elsewhere = counts.sum(axis=2, keepdims=True) - counts
    rate = np.full(choices.shape, -np.inf)
    times, right = elsewhere[:, choices[line, column], fold[line]]
    mean = 1.0 / shown.sum(axis=1).mean()
    # A text that no other fold shows is as likely as any other.
    rate[line, column] = (right + mean) / (times + 1.0)
    return rate


def _folds(group: Ints) -> Ints:
    """Deal groups into folds, the largest first, each to the fold that has the fewest rows."""
    groups, local, sizes = np.unique(group, return_inverse=True, return_counts=True)
    rows = np.zeros(FOLDS, dtype=np.int64)
    fold = np.zeros(groups.size, dtype=np.int64)
    for at in np.argsort(-sizes, kind="stable"):
        fold[at] = rows.argmin()
        rows[fold[at]] += sizes[at]
    return fold[local]


def _same_choices(rows: Rows) -> Ints:
    """(rows,) a number for each row: rows that show the same choices, in any order, have one."""
    ordered = np.sort(rows.choices, axis=1)
    return np.unique(ordered, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
