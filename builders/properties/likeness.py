"""How like two concepts are: by what ConceptNet joins them to and what they are kinds of."""

from __future__ import annotations

from typing import Any

import numpy as np

from builders.properties.contrast import senses_of
from builders.properties.facts import Evidence
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints

PART = 50_000
"""Pairs that are compared at once: this bounds memory."""

STEPS = 8
"""Weights of features are whole numbers, so that sums are the same on every machine: of a feature
that half of the concepts have, this."""


class Likeness:
    """Likeness of concepts, numbered as in `Evidence`.

    A concept's features are the terms that edges of any weight join it to, and the synsets that it
    names with all that they are kinds of. The rarer a feature, the more it weighs. Likeness is the
    weight of what two concepts share over the geometric mean of their own weights, from 0 to 1; the
    two kinds of features count alike.
    """

    def __init__(self, conceptnet: ConceptNet, wordnet: WordNet, evidence: Evidence) -> None:
        """Collect the features of all concepts."""
        size = len(conceptnet)
        place = np.full(size, -1, dtype=np.int64)
        place[evidence.concept] = np.arange(evidence.concept.size)
        start, end = conceptnet.terms[conceptnet.start], conceptnet.terms[conceptnet.end]
        owner = place[np.concatenate([start, end])]
        joined = _weighted(owner, np.concatenate([end, start]), evidence.concept.size, size)
        concept, synset = senses_of(conceptnet, wordnet)
        owner, synset = place[concept][place[concept] >= 0], synset[place[concept] >= 0]
        walk = wordnet.isa.walk(synset)
        owner = np.concatenate([owner, owner[walk.source]])
        above = np.concatenate([synset, walk.node])
        kinds = _weighted(owner, above, evidence.concept.size, len(wordnet))
        self._tables = joined, kinds
        self._totals = [np.asarray(table.sum(axis=1)).ravel() for table in self._tables]
        owner, which = np.nonzero(evidence.plausible)
        self._properties = _table(owner, which, evidence.plausible.shape)

    def __call__(self, one: Ints, other: Ints) -> Floats:
        """Return the likeness of each pair."""
        total = np.zeros(one.size)
        for table, weight in zip(self._tables, self._totals, strict=True):
            norm = np.sqrt(np.maximum(weight[one], 1) * np.maximum(weight[other], 1))
            total += _shared(table, one, other) / norm
        return total / len(self._tables)

    def share_property(self, one: Ints, other: Ints) -> Bools:
        """Return whether some property is plausible of both concepts of each pair."""
        return np.asarray(_shared(self._properties, one, other) > 0)


def _table(owner: Ints, feature: Ints, shape: tuple[int, ...]) -> Any:
    from scipy.sparse import coo_array

    table = coo_array((np.ones(owner.size, dtype=np.int64), (owner, feature)), shape=shape).tocsr()
    table.data[:] = 1
    return table


def _weighted(owner: Ints, feature: Ints, concepts: int, features: int) -> Any:
    """Return the weights of features, (concepts, features); an owner of -1 is none."""
    table = _table(owner[owner >= 0], feature[owner >= 0], (concepts, features))
    times = np.bincount(table.indices, minlength=features)
    weight = np.round(STEPS * np.log2(concepts / np.maximum(times, 1))).astype(np.int64)
    table.data = weight[table.indices]
    return table


def _shared(table: Any, one: Ints, other: Ints) -> Ints:
    """Return the weight of what each pair of lines has in common."""
    parts = [np.empty(0, dtype=np.int64)]
    for start in range(0, one.size, PART):
        part = slice(start, start + PART)
        common = table[one[part]].minimum(table[other[part]])
        parts.append(np.asarray(common.sum(axis=1)).ravel())
    return np.concatenate(parts)
