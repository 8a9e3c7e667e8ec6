"""Many heads of one shape, fitted side by side as one batched computation.

Heads that see the same number of rows take the same number of steps. Their parameters are stacked
along a first axis, a step takes a batch of each head's own rows, and one optimizer updates all. The
result is the same as training each head alone, since AdamW works element by element, gradients are
clipped head by head, and no head's loss depends on another's parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from evaluation.items.types import Item
from evaluation.learners.base import HeadFitting, HeadTraining, TrainingOptions, rate_share
from evaluation.results.metrics import Scores
from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError, UsageError

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
class UntrainedHead:
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
    heads: Sequence[UntrainedHead],
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
        weights.groups(options.settings.weight_decay),
        lr=learning_rate,
        betas=options.settings.betas,
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
        _clip(gradients, options.settings.max_grad_norm)
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
    size = options.settings.train_batch
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
    scored = partial(_scores, module)
    scores = vmap(scored)(parameters, vectors[batch.vectors], batch.candidates)
    # Of all heads at once, since vmap would take the cross-entropy apart.
    losses = nn.functional.cross_entropy(
        scores.flatten(0, 1), batch.answers.flatten(), reduction="none"
    )
    return losses.view(batch.answers.shape).mean(1)


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


_BYTES_OF_CHUNK = {"cpu": 1 << 26}
_MOST_BYTES = 1 << 32
"""About how many bytes of parameters, gradients and moments are held at once. A CPU is slower if
these exceed its cache; other devices are faster the more heads are trained at once."""


@dataclass(frozen=True)
class FeatureRows:
    """The rows of a split as heads read them.

    Attributes:
        table: all rows; those that were not requested point to some other row's vectors.
        tokens: the number of tokens of each choice, all rows' choices one after another.
        notes: counts to report.
    """

    table: RowTable
    tokens: Ints
    notes: Mapping[str, int]


@dataclass(frozen=True)
class HeadCost:
    """The cost of the vectors: texts and tokens encoded, and parameters of the model used."""

    texts: int
    tokens: int
    parameters: int


class HeadPlan(ABC):
    """What differs between learners of heads: their vectors and their modules.

    Attributes:
        vectors: float32 on the device to train on, shape [vectors, dimensions].
        cost: the cost of computing them.
    """

    vectors: torch.Tensor
    cost: HeadCost

    @abstractmethod
    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows of a split that heads cannot read, and why."""

    @abstractmethod
    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[FeatureRows]:
        """Read the vectors of some rows of each split, given by index; called once."""

    def module(self, rows: RowTable, generator: torch.Generator) -> nn.Module:
        """Initialise the module of one fitting, where it reads rows as they are."""
        raise NotImplementedError

    def modules(
        self, fitted: Sequence[RowTable], seeds: Sequence[int]
    ) -> list[tuple[nn.Module, RowTable]]:
        """Make modules of one shape for some fittings, and their rows as the modules read them."""
        return [
            (self.module(rows, torch.Generator().manual_seed(seed)).to(self.vectors.device), rows)
            for rows, seed in zip(fitted, seeds, strict=True)
        ]

    def whole(
        self, parameters: dict[str, torch.Tensor], rows: RowTable, seed: int
    ) -> dict[str, torch.Tensor]:
        """Return the parameters that score any row, from those fitted on some."""
        return parameters


def fit_side_by_side(training: HeadTraining, plan: HeadPlan) -> Iterator[tuple[int, Scores]]:
    """Train the heads of all fittings and yield the scores of each one's rows.

    All processes read vectors; only the first trains and yields.

    Raises:
        UsageError: a split has too few rows that a head can be fitted on.
        KbprobeError: a training diverged, or the vectors cannot be read.
    """
    prepared = _prepare(training, plan)
    if not training.workers.leads:
        return
    chunks, done = _chunks(prepared, plan), 0
    for chunk in chunks:
        training.progress("training heads", done, len(prepared))
        options = chunk[0].fitting.options
        seeds = [one.fitting.seed for one in chunk]
        made = plan.modules([one.fitted for one in chunk], seeds)
        heads = [UntrainedHead(*one, seed) for one, seed in zip(made, seeds, strict=True)]
        trained = train_heads(heads, plan.vectors, options, options.learning_rate)
        for at, one in enumerate(chunk):
            parameters = plan.whole(trained.of(at), one.fitted, one.fitting.seed)
            scored = score_rows(trained.module, parameters, plan.vectors, one.scored.table)
            bits = None
            if len(one.next.answers):
                ahead = score_rows(trained.module, parameters, plan.vectors, one.next)
                chosen = ahead.log_softmax(-1).gather(1, one.next.answers.unsqueeze(1))
                bits = float(-chosen.sum()) / math.log(2)
            fitting = {
                "train_loss": trained.losses[at],
                "next_rows": len(one.next.answers),
                "next_bits": bits,
            }
            yield one.number, _scores_of(one, scored, plan.cost, fitting)
        done += len(chunk)
    training.progress("training heads", done, len(prepared))


@dataclass(frozen=True)
class _Prepared:
    """A fitting with its rows: those fitted on, those drawn next, and those to score."""

    number: int
    fitting: HeadFitting
    fitted: RowTable
    next: RowTable
    scored: FeatureRows
    set_aside: Mapping[int, str]
    notes: Mapping[str, int]


def _prepare(training: HeadTraining, plan: HeadPlan) -> list[_Prepared]:
    """Find out which rows the fittings need, and read those."""
    parts = {id(part): part for one in training.fittings for part in (one.train, one.scored)}
    splits = {name: list(part) for name, part in parts.items()}
    aside = {name: plan.set_aside(part) for name, part in splits.items()}
    needed = {name: np.zeros(len(part), dtype=np.bool_) for name, part in splits.items()}
    drawn = []
    for one in training.fittings:
        rows = np.array([row for row in one.order if row not in aside[id(one.train)]])
        if len(rows) < one.count:
            raise UsageError(_too_few(one, aside[id(one.train)], len(rows)))
        drawn.append(rows[: max(one.options.next_size or 0, one.count)])
        needed[id(one.train)][drawn[-1]] = True
        needed[id(one.scored)] |= True
        needed[id(one.scored)][list(aside[id(one.scored)])] = False
    read = plan.read([(part, np.flatnonzero(needed[name])) for name, part in splits.items()])
    rows_of = dict(zip(splits, read, strict=True))
    prepared = []
    for number, (one, rows) in enumerate(zip(training.fittings, drawn, strict=True)):
        train, scored = rows_of[id(one.train)], rows_of[id(one.scored)]
        order = torch.from_numpy(rows).to(train.table.answers.device)
        fitted, later = (
            train.table.take(part) for part in (order[: one.count], order[one.count :])
        )
        notes = {**scored.notes, "train_set_aside": len(aside[id(one.train)])}
        notes = {name: count for name, count in notes.items() if count}
        prepared.append(_Prepared(number, one, fitted, later, scored, aside[id(one.scored)], notes))
    return prepared


def _too_few(fitting: HeadFitting, aside: Mapping[int, str], usable: int) -> str:
    reason = next(iter(aside.values()), "")
    return (
        f"--train {fitting.count:,} asks for more rows than a head can be fitted on: "
        f"{len(aside):,} of the {len(fitting.train):,} are set aside ({reason}). "
        f"Use --train {usable} or less."
    )


def _chunks(prepared: Sequence[_Prepared], plan: HeadPlan) -> list[list[_Prepared]]:
    """Group fittings that take the same steps, as many as should be held at once."""
    alike: dict[Any, list[_Prepared]] = {}
    for one in prepared:
        options = one.fitting.options.model_copy(update={"next_size": None})
        shape = (one.fitted.candidates.shape[1], one.fitted.vectors.shape[1], one.fitting.count)
        alike.setdefault((*shape, options.model_dump_json()), []).append(one)
    budget = _BYTES_OF_CHUNK.get(plan.vectors.device.type, _MOST_BYTES)
    chunks = []
    for group in alike.values():
        ((module, _),) = plan.modules([group[0].fitted], [0])
        # A parameter, its gradient and its two moments.
        held = 16 * sum(weight.numel() for weight in module.parameters() if weight.requires_grad)
        # A chunk of few heads takes hardly less time than one of many: rather exceed the budget.
        parts = max(1, round(held * len(group) / budget))
        size = -(-len(group) // parts)
        chunks += [group[start : start + size] for start in range(0, len(group), size)]
    return chunks


def _scores_of(
    one: _Prepared, found: torch.Tensor, cost: HeadCost, fitting: dict[str, Any]
) -> Scores:
    shown = (one.scored.table.candidates >= 0).cpu().numpy()
    numbers = found.cpu().numpy().astype(np.float64)
    for row in one.set_aside:
        numbers[row] = np.nan
    return Scores(
        scores=numbers[shown],
        tokens=one.scored.tokens,
        set_aside=one.set_aside,
        notes=one.notes,
        score_name="logit",
        sequences=cost.texts,
        sequence_tokens=cost.tokens,
        parameters=cost.parameters,
        fitting=fitting,
    )
