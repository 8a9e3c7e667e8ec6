"""The scorer of multiple-choice heads: what it needs."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs


def _make(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.multiple_choice.scorer import MultipleChoiceScorer

    return MultipleChoiceScorer(inputs.model, inputs.tokenizer)


MULTIPLE_CHOICE = ScorerEntry(
    name="multiple_choice",
    label="multiple-choice model",
    version=1,
    needs=Capability.CHOICE_HEAD,
    make=_make,
)
