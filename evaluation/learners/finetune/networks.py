"""What is fine-tuned: a network with its head, and how the choices of rows are scored by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluation.models.capabilities import MASKED_LM, MULTIPLE_CHOICE, Head
from evaluation.scorers.masked.candidates import CandidateScorer
from evaluation.scorers.multiple_choice.scorer import MultipleChoiceScorer

TrainedScorer = MultipleChoiceScorer | CandidateScorer


@dataclass(frozen=True)
class Network:
    """Declares a network that can be fine-tuned.

    Attributes:
        learner: the name of the learner that trains it.
        head: what a checkpoint is loaded with.
        fresh_head: whether a head that the checkpoint lacks is drawn, and trained from there.
        scorer: makes, of a model and its tokenizer, what scores; its scores are trained.
    """

    learner: str
    head: Head
    fresh_head: bool
    scorer: Callable[[Any, Any], TrainedScorer]


CHOICES = Network("full", MULTIPLE_CHOICE, True, MultipleChoiceScorer)
"""A multiple-choice network: reads each choice with its question."""
CANDIDATES = Network("full_mlm", MASKED_LM, False, CandidateScorer)
"""A whole masked LM: reads the question, and scores candidates at the mask."""
