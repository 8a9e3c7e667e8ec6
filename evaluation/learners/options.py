"""How learners are trained: options that all of them share, and the learning rate's schedule."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from kbprobe.options import Options


class TrainingOptions(Options):
    """How to train.

    Defaults are [O]'s published settings (AdamW, weight decay 0.1, betas (0.9, 0.98), 4 epochs,
    effective batch 16, slanted triangular learning rate with 6% warm-up). Clipping gradients at
    norm 1 and excluding biases and norms from weight decay follow BERT.
    """

    learning_rate: float | None = Field(
        None,
        gt=0,
        description="Peak learning rate; none: the learner's own, 2e-5 for a whole network.",
    )
    epochs: int = Field(
        4, ge=1, description="Passes over the rows; 20 by default for pooled and over word vectors."
    )
    train_batch: int = Field(
        16, ge=1, description="Rows (with all their choices) per step; 32 for partial-input models."
    )
    weight_decay: float = Field(0.1, ge=0, description="For matrices; biases and norms have none.")
    betas: tuple[float, float] = Field((0.9, 0.98), description="Betas of AdamW.")
    warmup: float = Field(
        0.06,
        ge=0,
        lt=1,
        description="Share of the steps spent on warm-up; with a constant rate, of one epoch's.",
    )
    schedule: Literal["slanted", "constant"] = Field(
        "slanted",
        description="How the learning rate changes: slanted (triangular: it falls from its peak "
        "until the last step), or constant, so that more epochs go on from fewer.",
    )
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")


def rate_share(options: TrainingOptions, step: int, steps: int) -> float:
    """Return the share of the peak learning rate at a step (from 0) of all ``steps``."""
    if options.schedule == "slanted":
        return slanted_triangle(step, steps, options.warmup)
    rise = math.floor(steps // options.epochs * options.warmup)
    return min(1.0, (step + 1) / (rise + 1))


def slanted_triangle(step: int, steps: int, warmup: float) -> float:
    """Return the share of the peak learning rate at a step (from 0): fast rise, slow decay.

    Howard and Ruder 2018 (ULMFiT), section 3.2, with their ratio of 32 between peak and minimum.

    >>> [round(slanted_triangle(step, 10, 0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.03, 0.52, 1.0, 0.52, 0.15]
    """
    ratio = 32
    peak = math.floor(steps * warmup)
    height = step / peak if step < peak else 1 - (step - peak) / (steps - peak)
    return (1 + height * (ratio - 1)) / ratio
