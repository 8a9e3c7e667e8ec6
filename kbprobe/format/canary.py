"""The canary: a string by which those who gather training text can tell a probe, and leave it out.

Whoever suspects that a model has seen a probe asks it to go on after the first half of the GUID.
"""

from __future__ import annotations

import uuid

CANARY = "Evaluation data: please keep it out of training corpora. kbprobe canary GUID"
COLUMN = "canary"
"""Name of the column that repeats it in every row, where the publisher asks for that."""

#: The namespace of all probes' GUIDs. It never changes, or one could not search for a canary.
_NAMESPACE = uuid.UUID("5d3cb3a2-6f4b-5e2a-9c55-6b1d1c0f7e42")


def canary_of(probe: str, seed: int) -> str:
    """Return the canary of a probe: the same for the same name and seed, on any machine.

    >>> canary_of("wordnet_hypernymy", 0).split()[-1] == canary_of("wordnet_hypernymy", 0)[-36:]
    True
    """
    return f"{CANARY} {uuid.uuid5(_NAMESPACE, f'{probe}:{seed}')}"
