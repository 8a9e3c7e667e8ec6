"""Fine-tuning of the whole network for multiple choice."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from evaluation.learners.base import LearnerEntry, Training
from evaluation.learners.finetune.options import RECORD, FinetuneOptions
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ReadyScorer


def _fit(training: Training) -> AbstractContextManager[ReadyScorer]:
    from evaluation.learners.finetune.kept import finetuned

    return finetuned(training)


def _not_kept_yet(options: FinetuneOptions) -> bool:
    folder = options.keep_checkpoint
    return folder is not None and not (Path(folder) / RECORD).is_file()


FINETUNE = LearnerEntry(
    name="finetune",
    label="fine-tuning",
    version=1,
    needs=Capability.TRAINABLE,
    scorer="multiple_choice",
    fit=_fit,
    options=FinetuneOptions,
    wanted=_not_kept_yet,
)
