"""Fine-tuning of the whole network for multiple choice."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import Field

from evaluation.learners.base import LearnerEntry, Training
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import ReadyScorer
from kbprobe.options import Options

RECORD = "finetuning.json"
"""The file in a kept checkpoint that says how it was trained."""


class FinetuneOptions(Options):
    """How to fine-tune.

    Defaults are [O]'s published settings (AdamW, weight decay 0.1, betas (0.9, 0.98), 4 epochs,
    effective batch 16, slanted triangular learning rate with 6% warm-up). No single learning rate
    is published: the default is the middle of [W]'s grid, 1e-5, 2e-5 and 5e-5. Clipping gradients
    at norm 1 and sparing biases and norms from weight decay follow BERT.
    """

    learning_rate: float = Field(2e-5, gt=0, description="Peak learning rate.")
    epochs: int = Field(4, ge=1, description="Passes over the rows.")
    train_batch: int = Field(16, ge=1, description="Rows (with all their choices) of a step.")
    weight_decay: float = Field(0.1, ge=0, description="Of matrices; biases and norms have none.")
    betas: tuple[float, float] = Field((0.9, 0.98), description="Of AdamW.")
    warmup: float = Field(0.06, ge=0, lt=1, description="Share of the steps before the peak.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    keep_checkpoint: str | None = Field(
        None, exclude=True, description="Folder in which to keep the trained checkpoint."
    )


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
