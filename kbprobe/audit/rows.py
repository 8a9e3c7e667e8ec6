"""The rows that an audit looks at, and how they are sampled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kbprobe.arrays import Bools, Ints, sorted_unique
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

SCORED_ROWS, FITTED_ROWS = 20_000, 3_000
"""Maximum numbers of rows to score (enough for half a point) and to train on."""

LARGEST_SET = 0.01
"""Maximum share of rows with the same choices; if it is exceeded, whole clusters are sampled."""

MAX_SETS = 4
"""Maximum number of distinct sets of choices in a probe with constant choices."""


class Sample(NamedTuple):
    """The rows used by an audit.

    Attributes:
        split: the split that is scored.
        scored: the rows of it that are scored.
        train: the rows of train that models are fitted on.
    """

    split: int
    scored: Ints
    train: Ints

    @property
    def rows(self) -> Ints:
        """All rows of the sample, ascending."""
        return sorted_unique(np.concatenate([self.scored, self.train]))

    def within(self, rows: Ints) -> Sample:
        """Return the sample as positions in ``rows`` (ascending), which must contain it."""
        scored, train = (np.searchsorted(rows, part) for part in (self.scored, self.train))
        return Sample(self.split, scored, train)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Parallel arrays over rows, at least those of the sample.

    Attributes:
        texts: the distinct texts of choices.
        choices: (rows, K) index into ``texts``, in the order shown; -1 if a row has fewer choices.
        answer: (rows,) the gold's column.
        questions, question: the distinct questions, and (rows,) index into them.
        split: (rows,) 0 train, 1 validation, 2 test.
        cluster: (rows,) integer labels.
        family, family_names: (rows,) the distractor family, as an index into its names.
        sample: the rows to train on and to score.
        natural: whether some answers are right more often than others, as annotators found them.
    """

    texts: pa.Array
    choices: Ints
    answer: Ints
    questions: pa.Array
    question: Ints
    split: Ints
    cluster: Ints
    family: Ints
    family_names: tuple[str, ...]
    sample: Sample
    natural: bool = False

    @property
    def train(self) -> Ints:
        """The rows to train on."""
        return self.sample.train

    @property
    def scored(self) -> Ints:
        """The rows to score."""
        return self.sample.scored

    @cached_property
    def used(self) -> Ints:
        """The rows to train on, then those to score."""
        return np.concatenate([self.train, self.scored])

    @cached_property
    def shown(self) -> Bools:
        """(rows, K) whether there is a choice."""
        return self.choices >= 0

    @cached_property
    def is_gold(self) -> Bools:
        """(rows, K) whether the choice is the gold."""
        return np.asarray(np.arange(self.choices.shape[1]) == self.answer[:, None])

    @cached_property
    def gold(self) -> Ints:
        """(rows,) index of the gold's text."""
        return self.choices[np.arange(self.answer.size), self.answer]


def choose_rows(split: Ints, cluster: Ints, choices: Ints, seed: int) -> Sample:
    """Choose the rows to look at: of test, or else of validation, or else of train.

    At most `SCORED_ROWS` are scored: all rows that show the same choices at a time, so that choice
    groups stay whole, or whole clusters where many rows show the same choices. Models are fitted on
    at most `FITTED_ROWS` of train, whole clusters at a time; on none where train is scored.

    Args:
        split: (rows,) 0 train, 1 validation, 2 test.
        cluster: (rows,) integer labels.
        choices: (rows, K) integer labels; the choices' order says nothing.
        seed: draws the rows where there are more.
    """
    rng = RandomGenerator.of(seed, "audit")
    best = next(code for code in (2, 1, 0) if (split == code).any())
    scored = np.flatnonzero(split == best)
    train = np.flatnonzero((split == SPLITS.index("train")) & (best != 0))
    if scored.size > SCORED_ROWS:
        unit = _together(choices[scored], cluster[scored])
        scored = scored[first_units(unit, SCORED_ROWS, rng.child("rows"))]
    if train.size > FITTED_ROWS:
        train = train[first_units(cluster[train], FITTED_ROWS, rng.child("fit"))]
    return Sample(best, scored, train)


def in_choice_groups(shown: Ints, gold: Ints, width: Ints) -> bool:
    """Return whether all rows are in groups of the same choices, each the gold equally often.

    A probe whose rows all choose among the same few answers has no groups.

    Args:
        shown: (rows,) what the row shows: equal for rows with the same choices.
        gold: (rows,) the right choice.
        width: (rows,) the number of choices.
    """
    _, shown, sizes = np.unique(shown, return_inverse=True, return_counts=True)
    pairs = np.stack([shown.astype(np.int64), gold])
    _, pair, golds = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    size = sizes[shown]
    balanced = golds[pair.reshape(-1)] * width == size
    return bool((balanced & (size <= np.maximum(width, LARGEST_SET * shown.size))).all())


def _together(choices: Ints, cluster: Ints) -> Ints:
    """Return the sampling unit of each row; the rows of a unit are sampled together."""
    sets = RandomGenerator(0).bits(*np.sort(choices, axis=1).T)
    _, same, sizes = np.unique(sets, return_inverse=True, return_counts=True)
    return same if sizes.max() <= LARGEST_SET * same.size else cluster


def first_units(unit: Ints, rows: int, rng: RandomGenerator) -> Bools:
    """Mark the rows of whole units, in seeded order, until no further unit fits within ``rows``.

    A unit that does not fit is passed over, and the next tried.
    """
    units, local, sizes = np.unique(unit, return_inverse=True, return_counts=True)
    keep = np.zeros(units.size, dtype=np.bool_)
    room = rows
    for at in np.argsort(rng.uniform(units), kind="stable"):
        if sizes[at] <= room:
            keep[at] = True
            room -= int(sizes[at])
            if room == 0:
                break
    return np.asarray(keep[local])


def has_constant_choices(choices: Ints, most: int = 1 << 16) -> bool:
    """Return whether all rows choose among the same few answers.

    That is the case if at most ``MAX_SETS`` sets of choices occur (of at most ``most`` different
    choices in all), each in two rows or more on average.

    Args:
        choices: (rows, K) codes of the choices' texts.
        most: how many different choices there may be.
    """
    rows, width = choices.shape
    used = np.bincount(choices.ravel()) > 0
    if not 0 < used.sum() <= min(MAX_SETS * width, most):
        return False
    sets = np.unique(np.sort(choices, axis=1), axis=0).shape[0]
    return bool(sets <= MAX_SETS and 2 * sets <= rows)
