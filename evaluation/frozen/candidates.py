"""Candidates of a gap: what each choice of each row is, and the output vectors they start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from evaluation.frozen.readers import answer_prompt, gap_of
from evaluation.items.types import Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import aside
from evaluation.scorers.causal.pair_tokens import PairTokenizer
from evaluation.scorers.causal.prompts import Rendered
from evaluation.scorers.masked.pieces import Placer
from kbprobe.arrays import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

Pieces = tuple[int, ...]


@dataclass
class Candidates:
    """The distinct candidates of all rows, by the pieces that a tokenizer makes of them.

    Attributes:
        numbers: of each candidate, by its pieces.
    """

    numbers: dict[Pieces, int] = field(default_factory=dict)

    def table(self, pieces: Sequence[Sequence[Pieces]]) -> Ints:
        """Number the choices of rows, shape [rows, most choices]; -1 where there is none."""
        width = max(map(len, pieces), default=0)
        table = np.full((len(pieces), width), -1, dtype=np.int64)
        for row, choices in enumerate(pieces):
            for at, choice in enumerate(choices):
                table[row, at] = self.numbers.setdefault(choice, len(self.numbers))
        return table

    def output_vectors(self, model: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the model's output vectors and biases of all candidates, in float32.

        A candidate of several pieces starts from the mean of its pieces'.

        Returns:
            Shapes [candidates, dimensions] and [candidates].
        """
        decoder = model.get_output_embeddings()
        flat = torch.tensor([piece for pieces in self.numbers for piece in pieces])
        counts = torch.tensor([len(pieces) for pieces in self.numbers])
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
    items: Sequence[Item], tokenizer: PreTrainedTokenizerFast, capabilities: Capability
) -> tuple[list[list[Pieces]], dict[int, str]]:
    """Tokenize the choices of clozes where they stand, or after the prompt of a causal LM.

    Returns:
        For each item the pieces of its choices; and the items that cannot be scored, with reasons.
    """
    if Capability.MASKED_SCORES in capabilities:
        placed = Placer(tokenizer).place(
            [gap_of(item.question) for item in items], [item.choices for item in items]
        )
        found = [[tuple(filled.pieces) for filled in row] for row in placed]
    else:
        prompts = [
            Rendered(answer_prompt(item.question), tuple(f" {choice}" for choice in item.choices))
            for item in items
        ]
        pairs = PairTokenizer(tokenizer).encode(prompts)
        found = [[tuple(tokens) for tokens in pair.continuations] for pair in pairs]
    unknown, reasons = tokenizer.unk_token_id, dict[int, str]()
    for row, choices in enumerate(found):
        for text, pieces in zip(items[row].choices, choices, strict=True):
            if not pieces:
                reason = "a candidate of which the tokenizer leaves nothing"
            elif unknown is not None and unknown in pieces:
                reason = "a candidate with characters unknown to the tokenizer"
            else:
                continue
            reasons[row] = aside(reason, repr(text))
    return found, reasons
