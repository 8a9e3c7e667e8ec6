"""MLM-Baseline of [O]: an untrained masked-LM head on the word vectors of a cloze's first words.

The vectors of the first 20 tokens are concatenated and padded with zeros; a token without a
vector, such as the mask, is all zeros. It knows only words and their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import nn

from evaluation.frozen.candidates import CandidateHeads
from evaluation.frozen.heads import FreshBody
from evaluation.frozen.plans import row_table
from evaluation.frozen.training import Cost, Rows, fit_side_by_side
from evaluation.items.types import Item
from evaluation.learners.base import HeadTraining
from evaluation.results.metrics import Scores
from evaluation.vectors.options import word_vectors
from kb_cache.vectors.texts import tokenize
from kb_cache.vectors.types import WordVectors
from kbprobe.arrays import Ints

FIRST = 20
"""Number of tokens of a question that are read."""


def fit_mlm_baseline(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit MLM-Baseline."""
    words = word_vectors(training.fittings[0].options)
    return fit_side_by_side(training, WordPlan(training, words))


class WordPlan(CandidateHeads):
    """Heads on word vectors: body and output embeddings are initialised from the seed."""

    def __init__(self, training: HeadTraining, words: WordVectors) -> None:
        """Set the word vectors."""
        super().__init__()
        self._device, self._words = training.model.device, words

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return nothing: any text can be read."""
        return {}

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[Rows]:
        """Look up the words of some rows of each split."""
        asked = [items[row].question for items, rows in splits for row in rows.tolist()]
        questions = {text: number for number, text in enumerate(dict.fromkeys(asked))}
        tokens = [tokenize(text)[:FIRST] for text in questions]
        flat = [token for row in tokens for token in row]
        distinct = {token: number for number, token in enumerate(dict.fromkeys(flat))}
        known = self._words.rows(list(distinct))
        table = np.zeros((len(distinct), self._words.dimensions), dtype=np.float32)
        table[known >= 0] = self._words.matrix[known[known >= 0]]
        vectors = np.zeros((len(tokens), FIRST, self._words.dimensions), dtype=np.float32)
        for row, own in enumerate(tokens):
            vectors[row, : len(own)] = table[[distinct[token] for token in own]]
        self.vectors = torch.from_numpy(vectors).flatten(1).to(self._device)
        read = [self._rows(items, rows, questions) for items, rows in splits]
        body, weight, bias = self.start(0)
        numbers = sum(part.numel() for part in (*body.parameters(), weight, bias))
        self.cost = Cost(len(questions), len(flat), numbers)
        return read

    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Initialise a head; see :meth:`CandidateHeads.start`."""
        generator = torch.Generator().manual_seed(seed)
        candidates, width = len(self.candidates()), self.vectors.shape[1]
        body = FreshBody(width, generator)
        weight = torch.empty(candidates, width).normal_(0, 0.02, generator=generator)
        bias = torch.zeros(candidates)
        return body.to(self._device), weight.to(self._device), bias.to(self._device)

    def _rows(self, items: Sequence[Item], rows: Ints, questions: Mapping[str, int]) -> Rows:
        places = np.zeros((len(items), 1), dtype=np.int64)
        places[rows, 0] = [questions[items[row].question] for row in rows.tolist()]
        table = self.numbered([item.choices for item in items])
        count = sum(len(item.choices) for item in items)
        return Rows(
            row_table(items, places, table, self._device), np.ones(count, dtype=np.int64), {}
        )
