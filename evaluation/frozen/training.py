"""Many heads of one shape, trained side by side as one batched computation.

Heads that see the same number of rows take the same number of steps. Their parameters are stacked
along a first axis, a step takes a batch of each head's own rows, and one optimizer updates all. The
result is the same as training each head alone, since AdamW works element by element, gradients are
clipped head by head, and no head's loss depends on another's parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from evaluation.learners.base import TrainingOptions, rate_share
from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError

_SCORED_AT_ONCE = 1024


@dataclass(frozen=True)
class RowTable:
    """Rows as heads read them.

    Attributes:
        vectors: which vectors each row reads, shape [rows, 1] or [rows, choices].
        candidates: which candidate each choice is, shape [rows, choices]; -1: no such choice.
        answers: shape [rows].
    """

    vectors: torch.Tensor
    candidates: torch.Tensor
    answers: torch.Tensor

    def take(self, rows: torch.Tensor) -> RowTable:
        """Return some rows, in the shape of ``rows``."""
        return RowTable(self.vectors[rows], self.candidates[rows], self.answers[rows])


@dataclass(frozen=True)
class Head:
    """One head before its training.

    Attributes:
        module: its parameters, to be copied; heads of one chunk have the same shapes.
        rows: the rows that it is fitted on; all heads of a chunk have the same number.
        seed: of the order in which rows are seen.
    """

    module: nn.Module
    rows: RowTable
    seed: int


@dataclass(frozen=True)
class TrainedHeads:
    """Heads after their training.

    Attributes:
        module: any of them, for its forward pass.
        parameters: of all heads, stacked along the first axis.
        losses: cross-entropy of each head's last epoch, nats per row, shape [heads].
    """

    module: nn.Module
    parameters: dict[str, torch.Tensor]
    losses: list[float]

    def of(self, head: int) -> dict[str, torch.Tensor]:
        """Return the parameters of one head."""
        return {name: stacked[head] for name, stacked in self.parameters.items()}


@torch.no_grad()
def score_rows(
    module: nn.Module, parameters: dict[str, torch.Tensor], vectors: torch.Tensor, rows: RowTable
) -> torch.Tensor:
    """Return a head's scores of rows, shape [rows, choices]; -inf where there is no choice."""
    parts = [
        _scores(module, parameters, vectors[part.vectors], part.candidates)
        for start in range(0, len(rows.answers), _SCORED_AT_ONCE)
        for part in [
            rows.take(torch.arange(start, min(start + _SCORED_AT_ONCE, len(rows.answers))))
        ]
    ]
    return torch.cat(parts)


def train_heads(
    heads: Sequence[Head],
    vectors: torch.Tensor,
    options: TrainingOptions,
    learning_rate: float,
) -> TrainedHeads:
    """Train heads side by side: AdamW on the cross-entropy over each row's choices.

    Args:
        heads: heads of one shape, with the same number of rows each.
        vectors: float32, shape [vectors, dimensions], on the device to train on.
        options: how to train.
        learning_rate: the peak.

    Raises:
        KbprobeError: a loss is no longer finite.
    """
    module, count = heads[0].module, len(heads[0].rows.answers)
    table = _stacked([head.rows for head in heads])
    orders = [_order(head.seed, count, options) for head in heads]
    steps = [torch.from_numpy(np.stack(step)) for step in zip(*orders, strict=True)]
    at_head = torch.arange(len(heads)).unsqueeze(1)

    def losses_of(step: int) -> torch.Tensor:
        rows = steps[step]
        batch = RowTable(*(part[at_head, rows] for part in vars(table).values()))
        return _losses(module, weights.parameters(), vectors, batch)

    weights = _Weights([head.module for head in heads], vectors.device)
    weights.flip(torch.autograd.grad(losses_of(0).sum(), weights.leaves))
    optimizer = torch.optim.AdamW(
        weights.groups(options.weight_decay),
        lr=learning_rate,
        betas=options.betas,
        fused=vectors.device.type in ("cpu", "cuda"),
    )
    last_epoch = torch.zeros(len(heads), device=vectors.device)
    per_epoch = len(steps) // options.epochs
    for number, rows in enumerate(steps):
        share = rate_share(options, number, len(steps))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * share
        losses = losses_of(number)
        found = torch.autograd.grad(losses.sum(), weights.leaves)
        # The fused optimizer reads memory in order and ignores the strides of a gradient.
        gradients = [gradient.contiguous() for gradient in found]
        _clip(gradients, options.max_grad_norm)
        for leaf, gradient in zip(weights.leaves, gradients, strict=True):
            leaf.grad = gradient
        optimizer.step()
        if number >= len(steps) - per_epoch:
            last_epoch += losses.detach() * rows.shape[1]
    means = (last_epoch / count).tolist()
    if not all(map(math.isfinite, means)):
        raise KbprobeError(
            f"the loss of a head on {count:,} rows is not finite: training diverged. Use a lower "
            "--learning-rate."
        )
    done = {name: weight.detach() for name, weight in weights.parameters().items()}
    return TrainedHeads(module, done, means)


class _Weights:
    """The parameters of all heads, stacked along a first axis.

    Attributes:
        leaves: those that are trained. A matrix whose gradient comes transposed is held
            transposed, so that no step has to transpose its gradient.
    """

    def __init__(self, modules: Sequence[nn.Module], device: torch.device) -> None:
        stacked, _ = stack_module_state(list(modules))
        own = dict(modules[0].named_parameters())
        self._fixed = {n: w.detach().to(device) for n, w in stacked.items()}
        self._names = [name for name, weight in own.items() if weight.requires_grad]
        self.leaves = [self._fixed.pop(name).requires_grad_(True) for name in self._names]
        self._flipped = [False] * len(self.leaves)

    def flip(self, gradients: Sequence[torch.Tensor]) -> None:
        """Store matrices transposed if their gradients are."""
        for at, gradient in enumerate(gradients):
            if gradient.dim() > 2 and not gradient.is_contiguous() and gradient.mT.is_contiguous():
                self.leaves[at] = self.leaves[at].detach().mT.contiguous().requires_grad_(True)
                self._flipped[at] = True

    def parameters(self) -> dict[str, torch.Tensor]:
        """Return all parameters by name, as the modules hold them."""
        leaves = zip(self._names, self.leaves, self._flipped, strict=True)
        return self._fixed | {name: leaf.mT if flip else leaf for name, leaf, flip in leaves}

    def groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Divide the leaves into matrices, which get weight decay, and the others."""
        # The first axis is that of the heads: a matrix has three.
        matrices = [leaf for leaf in self.leaves if leaf.dim() > 2]
        others = [leaf for leaf in self.leaves if leaf.dim() <= 2]
        groups = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return [group for group in groups if group["params"]]


def _order(seed: int, count: int, options: TrainingOptions) -> list[Ints]:
    """Return the rows of each step: a permutation determined by the seed in every epoch."""
    size = options.train_batch
    return [
        shuffled[start : start + size]
        for epoch in range(options.epochs)
        for shuffled in [np.random.default_rng([seed, epoch]).permutation(count)]
        for start in range(0, count, size)
    ]


def _losses(
    module: nn.Module,
    parameters: dict[str, torch.Tensor],
    vectors: torch.Tensor,
    batch: RowTable,
) -> torch.Tensor:
    """Return the mean cross-entropy of each head's batch, shape [heads]."""

    def loss(
        own: dict[str, torch.Tensor],
        read: torch.Tensor,
        candidates: torch.Tensor,
        answers: torch.Tensor,
    ) -> torch.Tensor:
        return nn.functional.cross_entropy(_scores(module, own, read, candidates), answers)

    read = vectors[batch.vectors]
    computed: torch.Tensor = vmap(loss)(parameters, read, batch.candidates, batch.answers)
    return computed


def _scores(
    module: nn.Module, own: dict[str, torch.Tensor], read: torch.Tensor, candidates: torch.Tensor
) -> torch.Tensor:
    """Return one head's scores of the rows whose vectors are given, shape [rows, choices]."""
    shown = candidates.clamp(min=0)
    scores: torch.Tensor = functional_call(module, own, (read, shown))
    return scores.masked_fill(candidates < 0, -math.inf)


def _clip(gradients: Sequence[torch.Tensor], norm: float) -> None:
    """Clip the gradients of each head to a norm, in place, as ``clip_grad_norm_`` does for one."""
    norms = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
    factor = (norm / (torch.linalg.vector_norm(torch.stack(norms), dim=0) + 1e-6)).clamp(max=1.0)
    if factor.device.type == "cpu" and bool((factor == 1.0).all()):
        return
    for gradient in gradients:
        gradient.mul_(factor.view(-1, *(1,) * (gradient.dim() - 1)))


def _stacked(tables: Sequence[RowTable]) -> RowTable:
    parts = zip(*(vars(table).values() for table in tables), strict=True)
    return RowTable(*map(torch.stack, parts))
