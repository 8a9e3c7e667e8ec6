"""The scorer of multiple-choice heads: what it needs."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry

MULTIPLE_CHOICE = ScorerEntry(
    name="multiple_choice",
    label="multiple-choice model",
    version=1,
    needs=Capability.CHOICE_HEAD,
    make=imported("evaluation.scorers.multiple_choice.scorer:MultipleChoiceScorer.from_inputs"),
)
