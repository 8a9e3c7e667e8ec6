"""Oracles for questions about two properties, which know one of the two."""

from __future__ import annotations

import numpy as np

from builders.engine.oracles import Oracle, Oracles, credit
from builders.properties.facts import Evidence
from builders.properties.rows import PropertyPairs
from kbprobe.arrays import Ints

TARGET = 2 / 3
"""Halfway between chance and certainty, with three choices."""


def property_oracles(
    evidence: Evidence, asking: PropertyPairs, others: Ints, negate: bool
) -> Oracles:
    """Return oracles that know everything about one property, and nothing about the other.

    Args:
        evidence: what concepts have and lack.
        asking: each row's question and gold, properties in the order of the question.
        others: (rows, K - 1) the distractors.
        negate: whether the second property is one that the gold lacks.
    """
    nodes = np.concatenate([asking.gold[:, None], others], axis=1)
    first = ~evidence.lacks[nodes, asking.first[:, None]]
    second = evidence.lacks[nodes, asking.second[:, None]] == negate
    return {
        "first": Oracle("the first property alone", credit(first), TARGET),
        "second": Oracle("the second property alone", credit(second), TARGET),
    }
