"""Partial input: only the choices of each row are shown.

Accuracy above chance without the question comes from the choices themselves (Poliak et al. 2018,
"Hypothesis only baselines in natural language inference"; [W], section 4).
"""

from __future__ import annotations

from dataclasses import replace

from evaluation.items.types import ItemColumns, ProbeSplit, setups_of
from kbprobe.errors import UsageError
from kbprobe.format.setups import QUESTION


def choices_alone(split: ProbeSplit) -> ProbeSplit:
    """Return a split whose questions are empty; ids, choices and answers stay.

    Raises:
        UsageError: rows are not questions followed by choices: a cloze needs its sentence.
    """
    others = sorted(setups_of(split.items) - {QUESTION})
    if others:
        raise UsageError(
            f"--inputs choices: {split.name} has rows of the setup {others[0]}, and only those of "
            f"{QUESTION} can be shown without the question. Leave it out, or name a --config of "
            "questions with choices."
        )
    items = ItemColumns.of([replace(item, question="") for item in split.items])
    return replace(split, items=items, fingerprint=items.fingerprint())
