"""Fine-tuning of whole networks: for multiple choice, for labels, and masked LMs over candidates.

[O], section 3.1, trains masked LMs whole on the cross-entropy of the candidates at the mask
(``full_mlm``), and multiple-choice networks on that of the choices (``full``). [F] fine-tunes
encoders with a classifier of labels (``full_labels``).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from evaluation.items.types import LABELLED_SETUPS
from evaluation.learners.base import ModelLearner, Training, TrainingOptions
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ReadyScorer
from evaluation.scorers.classifier import CLASSIFIER, ClassifierOptions
from evaluation.scorers.entries import CANDIDATES, MULTIPLE_CHOICE
from kbprobe.format.setups import CLOZE
from kbprobe.options import RARE, Metavar

RECORD = "finetuning.json"
"""The file in a kept checkpoint that says how it was trained."""


LEARNING_RATE = 2e-5
"""The default: no single rate is published; this is the middle of [W]'s grid, 1e-5, 2e-5, 5e-5."""


class FinetuneOptions(TrainingOptions):
    """How to fine-tune a whole network."""

    facts_first: Annotated[bool, RARE] = Field(
        False,
        description="Train on all single facts that the probe's questions combine, those of every "
        "split, before the rows.",
    )
    keep_checkpoint: Annotated[str | None, Metavar("DIR")] = Field(
        None, exclude=True, description="Save the trained checkpoint in this folder."
    )


class LabelsOptions(FinetuneOptions, ClassifierOptions):
    """How to fine-tune a network that gives labels, and what the classes of its head mean."""


def _fit(training: Training, network: str) -> AbstractContextManager[ReadyScorer]:
    from evaluation.learners.finetune import training as networks
    from evaluation.learners.finetune.kept import finetuned

    return finetuned(training, getattr(networks, network))


def _not_kept_yet(options: FinetuneOptions) -> bool:
    folder = options.keep_checkpoint
    return folder is not None and not (Path(folder) / RECORD).is_file()


FULL = ModelLearner(
    name="full",
    label="fine-tuning",
    version=2,
    needs=Capability.TRAINABLE,
    scorer=MULTIPLE_CHOICE,
    learning_rate=LEARNING_RATE,
    fit=partial(_fit, network="CHOICES"),
    options=FinetuneOptions,
    wanted=_not_kept_yet,
)
FULL_MLM = ModelLearner(
    name="full_mlm",
    label="fine-tuning",
    version=1,
    needs=Capability.MASKED_SCORES | Capability.TRAINABLE,
    scorer=CANDIDATES,
    learning_rate=LEARNING_RATE,
    fit=partial(_fit, network="CANDIDATES"),
    options=FinetuneOptions,
    wanted=_not_kept_yet,
    setups=(CLOZE,),
)
FULL_LABELS = ModelLearner(
    name="full_labels",
    label="fine-tuning",
    version=1,
    needs=Capability.TRAINABLE,
    scorer=CLASSIFIER,
    learning_rate=LEARNING_RATE,
    fit=partial(_fit, network="LABELS"),
    options=LabelsOptions,
    wanted=_not_kept_yet,
    setups=LABELLED_SETUPS,
)
