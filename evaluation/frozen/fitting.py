"""Fitting the heads of many runs: vectors once, heads in chunks, and the scores of each run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from evaluation.frozen.training import Head, RowTable, score_rows, train_heads
from evaluation.items.types import Item
from evaluation.learners.base import HeadFitting, HeadTraining
from evaluation.results.scores import Scores
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError

_BYTES_OF_CHUNK = {"cpu": 1 << 26}
_MOST_BYTES = 1 << 32
"""Bytes of parameters, gradients and moments held at once. A CPU is slower if these exceed its
cache; other devices are faster the more heads are trained at once."""


@dataclass(frozen=True)
class Rows:
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
class Cost:
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
    cost: Cost

    @abstractmethod
    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows of a split that heads cannot read, and why."""

    @abstractmethod
    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[Rows]:
        """Read the vectors of some rows of each split, given by index; called once."""

    @abstractmethod
    def modules(
        self, fitted: Sequence[RowTable], seeds: Sequence[int]
    ) -> list[tuple[nn.Module, RowTable]]:
        """Make modules of one shape for some fittings, and their rows as the modules read them."""

    @abstractmethod
    def whole(
        self, parameters: dict[str, torch.Tensor], rows: RowTable, seed: int
    ) -> dict[str, torch.Tensor]:
        """Return the parameters that score any row, from those fitted on some."""


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
        heads = [Head(*one, seed) for one, seed in zip(made, seeds, strict=True)]
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
            yield one.number, _scores(one, scored, plan.cost, fitting)
        done += len(chunk)
    training.progress("training heads", done, len(prepared))


@dataclass(frozen=True)
class _Prepared:
    """A fitting with its rows: those fitted on, those drawn next, and those to score."""

    number: int
    fitting: HeadFitting
    fitted: RowTable
    next: RowTable
    scored: Rows
    set_aside: Mapping[int, str]
    notes: Mapping[str, int]


def _prepare(training: HeadTraining, plan: HeadPlan) -> list[_Prepared]:
    """Find out which rows the fittings need, and read those."""
    splits = {id(part): part for one in training.fittings for part in (one.train, one.scored)}
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
        size = max(1, budget // max(held, 1))
        chunks += [group[start : start + size] for start in range(0, len(group), size)]
    return chunks


def _scores(one: _Prepared, found: torch.Tensor, cost: Cost, fitting: dict[str, Any]) -> Scores:
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
