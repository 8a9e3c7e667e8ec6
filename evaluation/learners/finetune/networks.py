"""Networks that can be fine-tuned: their head, and how they score the choices of rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.items.types import Item
from evaluation.models.capabilities import CLASSIFIER, MASKED_LM, MULTIPLE_CHOICE, Head
from evaluation.models.checkpoint import Checkpoint
from evaluation.scorers.classifier.scorer import ClassifierScorer
from evaluation.scorers.classifier.tokens import classes_of
from evaluation.scorers.masked.candidates import CandidateScorer
from evaluation.scorers.multiple_choice.scorer import MultipleChoiceScorer
from kbprobe.errors import UsageError
from kbprobe.format.setups import SETUPS

TrainedScorer = MultipleChoiceScorer | CandidateScorer | ClassifierScorer


@dataclass(frozen=True)
class Network:
    """Declares a network that can be fine-tuned.

    Attributes:
        learner: the name of the learner that trains it.
        head: what a checkpoint is loaded with.
        fresh_head: whether a head that the checkpoint lacks is drawn, and trained from there.
        scorer: makes, of a model and its tokenizer, what scores; its scores are trained.
        configured: gives the checkpoint the configuration of the network for the rows to train on,
            with the learner's options; raises UsageError where its own does not suit them.
    """

    learner: str
    head: Head
    fresh_head: bool
    scorer: Callable[[Any, Any], TrainedScorer]
    configured: Callable[[Checkpoint, Sequence[Item], Any], Checkpoint] = (
        lambda checkpoint, _items, _options: checkpoint
    )


def _with_labels(checkpoint: Checkpoint, items: Sequence[Item], options: Any) -> Checkpoint:
    """Write into the configuration what the classes mean, unless a trained head says so itself."""
    if not items or checkpoint.config is None:
        return checkpoint
    setup, stated = items[0].setup, options.class_labels
    config = copy.deepcopy(checkpoint.config)
    if checkpoint.head is CLASSIFIER and checkpoint.random_weights is None:
        own = {int(number): str(name) for number, name in (config.id2label or {}).items()}
        classes = classes_of(setup, own, stated, checkpoint.id)
    elif stated:
        raise UsageError(
            f"--class-labels says what the classes of a trained head mean, and {checkpoint.id} "
            f"({checkpoint.architecture}) has no such head: leave it out"
        )
    else:
        classes = {label: number for number, label in enumerate(SETUPS[setup].labels)}
    config.id2label = {number: label for label, number in classes.items()}
    config.label2id = {label: number for number, label in config.id2label.items()}
    return replace(checkpoint, config=config)


CHOICES = Network("full", MULTIPLE_CHOICE, True, MultipleChoiceScorer)
"""A multiple-choice network: reads each choice with its question."""
CANDIDATES = Network("full_mlm", MASKED_LM, False, CandidateScorer)
"""A whole masked LM: reads the question, and scores candidates at the mask."""
LABELS = Network("full_labels", CLASSIFIER, True, ClassifierScorer, _with_labels)
"""A sequence classifier: reads a text or a pair of texts, and scores labels."""
