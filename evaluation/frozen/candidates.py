"""Candidates for a gap: their tokens, their output embeddings, and heads built from these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from evaluation.frozen.heads import CandidateHead
from evaluation.frozen.readers import answer_prompt
from evaluation.frozen.training import HeadPlan, RowTable
from evaluation.items.types import Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.causal.layout import PairTokenizer
from evaluation.scorers.causal.prompts import Rendered
from evaluation.scorers.masked.pieces import Placer, unreadable
from evaluation.scorers.masked.scorer import gap_of_item
from evaluation.scorers.readable import SpecialTexts, unknown_token
from kbprobe.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Pieces = tuple[int, ...]
"""The token ids of a candidate in its context."""


class CandidateHeads(HeadPlan):
    """Heads with the candidates' output embeddings, and a body that the vectors pass first."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    @abstractmethod
    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Return the initial weights of a head.

        Returns:
            Its own body; output embeddings, shape [candidates, dimensions]; and biases.
        """

    def numbered(self, choices: Sequence[Sequence[Hashable]]) -> Ints:
        """Number the candidates of rows, shape [rows, most choices]; -1 if there is none."""
        width = max(map(len, choices), default=0)
        table = np.full((len(choices), width), -1, dtype=np.int64)
        for row, candidates in enumerate(choices):
            for at, candidate in enumerate(candidates):
                table[row, at] = self._numbers.setdefault(candidate, len(self._numbers))
        return table

    def candidates(self) -> list[Hashable]:
        """Return the distinct candidates of all rows, in the order of their numbers."""
        return list(self._numbers)

    def modules(
        self, fitted: Sequence[RowTable], seeds: Sequence[int]
    ) -> list[tuple[nn.Module, RowTable]]:
        """Make heads over the candidates that occur in the rows; others stay as they are."""
        shown = [_shown(rows) for rows in fitted]
        most = max(map(len, shown))
        made: list[tuple[nn.Module, RowTable]] = []
        for rows, own, seed in zip(fitted, shown, seeds, strict=True):
            body, all_weights, all_biases = self.start(seed)
            weight = all_weights.new_zeros(most, all_weights.shape[1])
            bias = all_biases.new_zeros(most)
            weight[: len(own)], bias[: len(own)] = all_weights[own], all_biases[own]
            local = torch.searchsorted(own, rows.candidates.clamp(min=0))
            local = torch.where(rows.candidates < 0, -1, local)
            head = CandidateHead(body, weight, bias)
            made.append((head, RowTable(rows.vectors, local, rows.answers)))
        return made

    def whole(
        self, parameters: dict[str, torch.Tensor], rows: RowTable, seed: int
    ) -> dict[str, torch.Tensor]:
        """Insert the fitted candidates' output embeddings into those of all candidates."""
        own = _shown(rows)
        _, weight, bias = self.start(seed)
        weight, bias = weight.clone(), bias.clone()
        weight[own], bias[own] = parameters["weight"][: len(own)], parameters["bias"][: len(own)]
        return {**parameters, "weight": weight, "bias": bias}


def _shown(rows: RowTable) -> torch.Tensor:
    shown: torch.Tensor = torch.unique(rows.candidates[rows.candidates >= 0])
    return shown


def output_vectors(
    model: PreTrainedModel, candidates: Sequence[Pieces]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a model's output embeddings and biases for candidates, in float32 on the CPU.

    A candidate of several tokens has the mean of its tokens' embeddings.

    Returns:
        Shapes [candidates, dimensions] and [candidates].
    """
    decoder = model.get_output_embeddings()
    flat = torch.tensor([piece for pieces in candidates for piece in pieces])
    counts = torch.tensor([len(pieces) for pieces in candidates])
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
    with torch.no_grad():
        rows = decoder.weight[flat.to(decoder.weight.device)].float().cpu()
        weight = torch.zeros(len(counts), rows.shape[1]).index_add_(0, owner, rows)
        bias = torch.zeros(len(counts))
        if decoder.bias is not None:
            own = decoder.bias[flat.to(decoder.bias.device)].float().cpu()
            bias.index_add_(0, owner, own)
    return weight / counts.unsqueeze(1), bias / counts


def pieces_of(
    items: Sequence[Item], tokenizer: PreTrainedTokenizerBase, capabilities: Capability
) -> tuple[list[list[Pieces]], dict[int, str]]:
    """Tokenize the choices of clozes in context, or after the prompt of a causal LM.

    Returns:
        For each item the tokens of its choices; and the items that cannot be scored, with reasons.
    """
    if Capability.MASKED_SCORES in capabilities:
        placed = Placer(tokenizer).place(
            [gap_of_item(item) for item in items], [item.choices for item in items]
        )
        found = [[tuple(filled.pieces) for filled in row] for row in placed]
    else:
        prompts = [
            Rendered(answer_prompt(item.question), tuple(f" {choice}" for choice in item.choices))
            for item in items
        ]
        pairs = PairTokenizer(tokenizer).encode(prompts)
        found = [[tuple(tokens) for tokens in pair.continuations] for pair in pairs]
    unknown, reasons = unknown_token(tokenizer), SpecialTexts(tokenizer).obstacles(items)
    for row, choices in enumerate(found):
        for text, pieces in zip(items[row].choices, choices, strict=True):
            if reason := unreadable(text, pieces, unknown):
                reasons.setdefault(row, reason)
    return found, reasons
