"""Training steps, read off the names of checkpoints."""

from __future__ import annotations

import re

_STEP = re.compile(r"(?:step|checkpoint|ckpt|iter)[-_]?(\d+(?:\.\d+)?)([kKmM]?)(?![a-zA-Z\d])")
_LAST = re.compile(r"(?<![a-zA-Z\d.])(\d+)$")
_TIMES = {"": 1, "k": 10**3, "m": 10**6}


def step_of(name: str) -> int | None:
    """Return the training step that a revision or folder is named after.

    >>> [step_of(name) for name in ("step1000", "stage1-step140000-tokens294B", "checkpoint-500")]
    [1000, 140000, 500]
    >>> step_of("seed_0-step_20k"), step_of("1500"), step_of("main"), step_of("v2.1")
    (20000, 1500, None, None)
    """
    if found := _STEP.search(name):
        return round(float(found[1]) * _TIMES[found[2].lower()])
    found = _LAST.search(name)
    return int(found[1]) if found else None


def stem_of(name: str) -> str:
    """Return a folder's name without its training step: what its series share.

    >>> stem_of("runs/bert/checkpoint-500"), stem_of("org/multiberts-seed_0-step_20k")
    ('runs/bert', 'org/multiberts-seed_0')
    """
    return _STEP.sub("", name).rstrip("/-_")
