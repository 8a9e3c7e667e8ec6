"""Silver labels: what ConceptNet states and denies of a pair, and how firmly, as a grade.

ConceptNet does not say how often something holds. Its weights tell how many people said so, and
its negated relations that some said the contrary. The grade follows both; it is no gold standard.
"""

from __future__ import annotations

import numpy as np

from builders.always_never.candidates import Pool
from builders.always_never.labels import SCALE
from kbprobe.arrays import Ints

FIRM, SEVERAL = 4.0, 2.0
"""Weights from which several people, and many, stand behind a statement."""


def grades(pool: Pool, subjects: Ints, objects: Ints) -> Ints:
    """Grade pairs, each of which ConceptNet says something of.

    never: denied, and stated by nobody; rarely: denied at least as firmly as stated; sometimes:
    stated more firmly than denied, or by one voice alone; often: stated by several and denied by
    nobody; always: by many.

    Args:
        pool: the pairs' words and edges.
        subjects: places in its subjects.
        objects: places in its objects.

    Returns:
        Places in the scale.
    """
    said, shape = pool.said, (pool.subjects.size, pool.objects.size)
    stated, denied = np.zeros(shape), np.zeros(shape)
    for table, lines in ((stated, ~said.negated), (denied, said.negated)):
        np.maximum.at(table, (said.subject[lines], said.object[lines]), said.weight[lines])
    yes, no = stated[subjects, objects], denied[subjects, objects]
    grade = np.select(
        [yes == 0, (no > 0) & (no >= yes), (no > 0) | (yes < SEVERAL), yes < FIRM],
        [SCALE.index(name) for name in ("never", "rarely", "sometimes", "often")],
        SCALE.index("always"),
    )
    return np.asarray(grade, dtype=np.int64)
