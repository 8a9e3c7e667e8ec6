"""Heads on a model's vectors: the candidates' output embeddings, or one linear layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from evaluation.frozen.candidates import CandidateHeads, Pieces, output_vectors, pieces_of
from evaluation.frozen.heads import LabelHead, ModelBody, UnitHead
from evaluation.frozen.readers import (
    ANSWER_VECTOR,
    LAST_VECTOR,
    MASK_VECTOR,
    MAX_VECTOR,
    PAIR_VECTOR,
    Text,
    VectorKind,
    VectorReader,
)
from evaluation.frozen.store import VECTORS, VectorStore
from evaluation.frozen.training import Cost, HeadPlan, Rows, RowTable, fit_side_by_side
from evaluation.items.types import Item
from evaluation.learners.base import HeadTraining
from evaluation.models.capabilities import Capability, head_that_gives
from evaluation.models.loading import load_tokenizer
from evaluation.results.metrics import Scores
from evaluation.scorers.readable import unreadable_items
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import SETUPS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_AT_ONCE = 4096
_TOKENS_AROUND = 16
"""Upper bound on the special tokens that tokenizers add to a pair, and on unused positions."""


def row_table(
    items: Sequence[Item], vectors: Ints, candidates: Ints, device: torch.device
) -> RowTable:
    """Return rows as heads read them; the arrays are those of :class:`RowTable`."""
    answers = np.array([item.answer for item in items], dtype=np.int64)
    parts = (torch.from_numpy(part).to(device) for part in (vectors, candidates, answers))
    return RowTable(*parts)


class ModelPlan(HeadPlan):
    """A plan whose vectors are computed by a model, once for each text."""

    def __init__(self, training: HeadTraining, kind: VectorKind) -> None:
        """Set the kind of vectors; the model is loaded only when needed."""
        self._training, self._kind = training, kind

    def _load(self) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        return self._training.model.load(head_that_gives(self._kind.needs))

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows that the model does not read as they are; its weights stay unloaded."""
        return unreadable_items(items, load_tokenizer(self._training.model.checkpoint))

    def _reader(self) -> VectorReader:
        return self._kind.reader(*self._load())

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[Rows]:
        """Read the vectors of some rows of each split; see :meth:`HeadPlan.read`."""
        numbers: dict[Text, int] = {}
        places = [self._places(items, rows, numbers) for items, rows in splits]
        model = self._training.model
        checkpoint = model.checkpoint
        content = {
            "kind": {"name": self._kind.name, "version": self._kind.version},
            "weights": checkpoint.weights_sha256,
            "tokenizer": checkpoint.tokenizer_sha256,
            "model_args": dict(checkpoint.loading),
            "dtype": model.dtype_name,
            "device": model.device.type,
        }
        store = VectorStore(self._training.folder / VECTORS, content, checkpoint.id)
        found = store.get(
            list(numbers),
            self._reader,
            model.batch_tokens,
            self._training.workers,
            self._training.progress,
        )
        self.cost = Cost(len(numbers), found.tokens, found.parameters)
        self.vectors = self._ready(torch.from_numpy(found.vectors).to(model.device))
        return [self._rows(items, place) for (items, _), place in zip(splits, places, strict=True)]

    def _places(self, items: Sequence[Item], rows: Ints, numbers: dict[Text, int]) -> Ints:
        """Number the texts of some rows, shape [items, texts of a row]; 0 for the others."""
        texts = {row: self._kind.texts(items[row]) for row in rows.tolist()}
        width = max(map(len, texts.values()), default=1)
        places = np.zeros((len(items), width), dtype=np.int64)
        for row, own in texts.items():
            places[row, : len(own)] = [numbers.setdefault(text, len(numbers)) for text in own]
        return places

    def _ready(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the vectors as the heads read them."""
        return vectors

    def _rows(self, items: Sequence[Item], places: Ints) -> Rows:
        raise NotImplementedError


class CandidatePlan(ModelPlan, CandidateHeads):
    """Heads that start from the model's own output embeddings."""

    def __init__(
        self,
        training: HeadTraining,
        kind: VectorKind,
        body: Callable[[PreTrainedModel], nn.Module] | None = None,
        trained: bool = False,
    ) -> None:
        """Set the layers between the vectors and the output embeddings.

        Args:
            training: what is to be fitted.
            kind: one vector per row.
            body: makes these layers from the model; None: there are none.
            trained: whether these layers are trained as well.
        """
        ModelPlan.__init__(self, training, kind)
        CandidateHeads.__init__(self)
        self._make_body, self._trained = body, trained
        self._body: nn.Module = nn.Identity()
        self._pieces: dict[int, list[list[Pieces]]] = {}

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows with a candidate that the tokenizer cannot represent, and why."""
        _, tokenizer = self._load()
        self._pieces[id(items)], reasons = pieces_of(items, tokenizer, self._kind.needs)
        return reasons

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[Rows]:
        """Read vectors, and the output embeddings that the candidates start from."""
        model, _ = self._load()
        if self._make_body is not None:
            self._body = self._make_body(model)
        rows = super().read(splits)
        weight, bias = output_vectors(model, cast(list[Pieces], self.candidates()))
        device = self.vectors.device
        self._output_vectors = weight.to(device), bias.to(device)
        return rows

    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Return the model's own weights; see :meth:`CandidateHeads.start`."""
        body = copy.deepcopy(self._body) if self._trained else nn.Identity()
        return body, *self._output_vectors

    def _ready(self, vectors: torch.Tensor) -> torch.Tensor:
        if self._trained:
            return vectors
        with torch.inference_mode():
            parts = [self._body(part) for part in vectors.split(_AT_ONCE)]
        return torch.cat(parts).clone()

    def _rows(self, items: Sequence[Item], places: Ints) -> Rows:
        pieces = self._pieces[id(items)]
        counts = [len(choice) for row in pieces for choice in row]
        several = sum(any(len(choice) > 1 for choice in row) for row in pieces)
        table = row_table(items, places, self.numbered(pieces), self.vectors.device)
        return Rows(table, np.array(counts, dtype=np.int64), {"several_pieces": several})


class UnitPlan(ModelPlan):
    """Heads of one linear layer on the vector of each question-choice pair."""

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows that the model does not read, those with too long a choice included.

        The model is loaded only if there are choices that may be too long.
        """
        checkpoint = self._training.model.checkpoint
        limit = load_tokenizer(checkpoint).model_max_length
        limit = min(limit, getattr(checkpoint.config, "max_position_embeddings", None) or limit)
        # Apart from special tokens, no tokenizer produces more tokens than bytes.
        rows = [
            row
            for row, item in enumerate(items)
            if max(len(text.encode("utf-8", "surrogatepass")) for text in item.choices)
            > limit - _TOKENS_AROUND
        ]
        reasons = dict(super().set_aside(items))
        if rows:
            found = self._reader().set_aside([items[row] for row in rows])
            reasons |= {rows[at]: reason for at, reason in found.items()}
        return reasons

    def _rows(self, items: Sequence[Item], places: Ints) -> Rows:
        counts = np.array([len(item.choices) for item in items])
        width = max(places.shape[1], int(counts.max(initial=1)))
        places = np.pad(places, ((0, 0), (0, width - places.shape[1])))
        candidates = np.where(np.arange(width) < counts[:, None], 0, -1)
        ones = np.ones(int(counts.sum()), dtype=np.int64)
        return Rows(row_table(items, places, candidates, self.vectors.device), ones, {})

    def module(self, rows: RowTable, generator: torch.Generator) -> nn.Module:
        """Initialise a linear layer."""
        return UnitHead(self.vectors.shape[1], generator)


class LabelPlan(ModelPlan):
    """Small classifiers of texts: a score for each label of the rows' setup."""

    def _rows(self, items: Sequence[Item], places: Ints) -> Rows:
        labels = SETUPS[items[0].setup].labels
        number_of = {label: number for number, label in enumerate(labels)}
        numbers = [[number_of[label] for label in item.choices] for item in items]
        ones = np.ones(sum(map(len, numbers)), dtype=np.int64)
        table = row_table(items, places, np.array(numbers, dtype=np.int64), self.vectors.device)
        return Rows(table, ones, {})

    def module(self, rows: RowTable, generator: torch.Generator) -> nn.Module:
        """Initialise a classifier; its rows have a choice for every label."""
        return LabelHead(self.vectors.shape[1], rows.candidates.shape[1], generator)


def fit_linear(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit a language model's output embeddings.

    Raises:
        UsageError: the model has none.
    """
    checkpoint = training.model.checkpoint
    if Capability.MASKED_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, MASK_VECTOR, ModelBody)
    elif Capability.CAUSAL_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, ANSWER_VECTOR)
    else:
        raise UsageError(
            f"--learner linear trains a language model's output embeddings, but {checkpoint.id} "
            f"({checkpoint.architecture}) has none. Use --learner frozen."
        )
    return fit_side_by_side(training, plan)


def fit_mlp(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit the whole head of a masked LM."""
    plan = CandidatePlan(training, MASK_VECTOR, ModelBody, trained=True)
    return fit_side_by_side(training, plan)


def fit_frozen(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit a linear layer on the vectors of question-choice pairs."""
    causal = Capability.CAUSAL_SCORES in training.model.checkpoint.capabilities
    kind = LAST_VECTOR if causal else PAIR_VECTOR
    return fit_side_by_side(training, UnitPlan(training, kind))


def fit_pooled(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit small classifiers of labels on texts."""
    return fit_side_by_side(training, LabelPlan(training, MAX_VECTOR))
