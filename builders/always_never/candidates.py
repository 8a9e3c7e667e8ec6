"""Select candidate Always-Never statements for annotation: subject-object pairs, by family.

How often a candidate holds is not known yet. Equally many are drawn from each level of
:mod:`builders.always_never.levels`, from those expected never to hold to those expected always to
hold.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from builders.always_never.levels import (
    COMMON,
    LEVELS,
    SEVERAL,
    UNFIT,
    said_levels,
    size_levels,
    sized,
    support,
)
from builders.always_never.options import SCALE
from builders.always_never.pairs import FAMILIES, Pool, said_of
from builders.always_never.slots import Slots
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.rng import RandomGenerator


def pool(slots: Slots, name: str) -> Pool:
    """Look up a family's words, and what ConceptNet says about their pairs."""
    family = FAMILIES[name]
    subjects, objects = slots.terms(*family.subjects), slots.terms(*family.objects)
    if not family.sources:
        subjects, objects = (
            some.take(np.flatnonzero(sized(some)).tolist()) for some in (subjects, objects)
        )
    fits = [at for at, text in enumerate(objects.text) if text not in family.left_out]
    objects = objects.take(fits)
    return Pool(name, family, subjects, objects, said_of(slots, family, subjects.id, objects))


def levels(pool: Pool, slots: Slots) -> Ints:
    """Return (subjects, objects) the expected level of each pair; UNFIT if not asked about."""
    if not pool.family.sources:
        return size_levels(pool.subjects, pool.objects, pool.name == "smaller")
    return said_levels(pool, slots)


def draw(pool: Pool, slots: Slots, rows: int, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Choose equally many candidates from each level, with no word much more frequent than others.

    Args:
        pool: all pairs.
        slots: where its words come from.
        rows: how many to choose.
        rng: the random generator.

    Returns:
        Subjects and objects, as indices of the pool's words; fewer than ``rows`` if there are not
        enough.
    """
    level = np.where(pool.apart(), levels(pool, slots), UNFIT)
    if pool.proposed is not None:
        level = np.where(pool.proposed, level, UNFIT)
    subjects, objects = pool.subjects.id, pool.objects.id
    race = rng.uniform(subjects[:, None], objects[None, :])
    taken = _Taken(
        _share(rows, subjects.size), _share(2 * rows, objects.size), Counter(), Counter(), []
    )
    # Objects with many statements are drawn equally often for other subjects.
    popular = 1.0 + np.bincount(pool.said.object, minlength=objects.size)
    race = np.where(level > 0, race, race ** np.minimum(popular, 3.0))
    # Start with the rarest level, so that the others make up for what it lacks.
    order = np.argsort(np.bincount(level[level >= 0], minlength=LEVELS), kind="stable")
    for nth, one in enumerate(order.tolist()):
        left = rows - len(taken.pairs)
        taken.add(np.where(level == one, race, 2.0), len(taken.pairs) + left // (LEVELS - nth))
    taken.add(np.where(level != UNFIT, race, 2.0), rows)
    pairs = np.array(sorted(taken.pairs), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _share(rows: int, words: int) -> int:
    """Return how often a word may occur if the rows are spread over all words."""
    return 2 + (3 * rows) // (2 * max(words, 1))


class _Taken(NamedTuple):
    """The pairs chosen so far, and how often each word was chosen."""

    per_subject: int
    per_object: int
    subjects: Counter[int]
    objects: Counter[int]
    pairs: list[tuple[int, int]]

    def add(self, race: Floats, upto: int) -> None:
        """Add pairs, lowest ``race`` first, up to a total of ``upto``; 2 excludes a pair."""
        seen = set(self.pairs)
        width = race.shape[1]
        order = np.argsort(race, axis=None, kind="stable")
        for cell in order[: int((race < 2.0).sum())].tolist():
            if len(self.pairs) >= upto:
                return
            pair = divmod(cell, width)
            if pair in seen or self.subjects[pair[0]] >= self.per_subject:
                continue
            if self.objects[pair[1]] >= self.per_object:
                continue
            self.subjects[pair[0]] += 1
            self.objects[pair[1]] += 1
            self.pairs.append(pair)


def all_said(pool: Pool, slots: Slots) -> tuple[Ints, Ints]:
    """Return the pairs about which ConceptNet says something, including denials.

    Pairs are left out if a single contributor denies them although they are stated of a kind of the
    subject or of many similar things ("elephants never have fur"): it is unknown which is wrong.
    """
    stated, denial = pool.weights(False) > 0, pool.weights(True)
    denied = denial > 0
    doubtful = denied & (denial < SEVERAL) & ~stated & _backed(pool, slots)
    rows, columns = np.nonzero(pool.apart() & (stated | denied) & ~doubtful)
    return rows.astype(np.int64), columns.astype(np.int64)


def grades(pool: Pool, slots: Slots, subjects: Ints, objects: Ints) -> Ints:
    """Grade pairs by what ConceptNet says about them, and by how many people support it.

    ConceptNet does not say how often something holds, so the grades are not a gold standard.

    - never: denied, and stated by nobody;
    - rarely: denied with at least the weight with which it is stated;
    - sometimes: stated with more weight than denied, or by one contributor only;
    - often: stated by several, or by one and also of a kind of the subject or many similar things;
    - always: stated with the family's firm weight, or by several and also of these.

    Args:
        pool: the pairs' words and edges.
        slots: where its words come from.
        subjects: indices of its subjects.
        objects: indices of its objects.

    Returns:
        Indices of the scale.
    """
    yes, no = (pool.weights(negated)[subjects, objects] for negated in (False, True))
    backed, firm = _backed(pool, slots)[subjects, objects], pool.family.firm
    grade = np.select(
        [
            yes == 0,
            (no > 0) & (no >= yes),
            (no > 0) | ((yes < min(SEVERAL, firm)) & ~backed),
            (yes < firm) & ((yes < SEVERAL) | ~backed),
        ],
        [SCALE.index(name) for name in ("never", "rarely", "sometimes", "often")],
        SCALE.index("always"),
    )
    return np.asarray(grade, dtype=np.int64)


def _backed(pool: Pool, slots: Slots) -> Bools:
    """Return (subjects, objects) whether pairs are stated of the subject's kind or kin."""
    if not pool.family.by_nature:
        return np.zeros((pool.subjects.size, pool.objects.size), dtype=np.bool_)
    inherited, share = support(pool, slots)
    return inherited | (share >= COMMON)
