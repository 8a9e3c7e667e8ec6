"""The scorer of sequence classifiers: its options, and what it needs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluation.items.types import LABELLED_SETUPS
from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from kbprobe.options import RARE, Options


class ClassifierOptions(Options):
    """What the classes of a checkpoint mean."""

    class_labels: Annotated[tuple[str, ...], RARE] = Field(
        (),
        description="Meaning of each class of the checkpoint in order, such as "
        "unacceptable,acceptable; by default the names in its configuration (id2label).",
    )


CLASSIFIER = ScorerEntry(
    name="classifier",
    label="sequence classifier",
    version=1,
    needs=Capability.CLASS_SCORES,
    make=imported("evaluation.scorers.classifier.scorer:ClassifierScorer.from_inputs"),
    options=ClassifierOptions,
    setups=LABELLED_SETUPS,
)
