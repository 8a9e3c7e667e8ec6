"""The networks: each scores the choices of rows, given as sequences of word vectors.

ESIM is that of Chen et al. 2017. The other three are from Mihaylov et al. 2018 (OpenBookQA),
section 4.2, where they are called question match, plausible answer detector and odd-one-out
solver; Richardson and Sabharwal 2020 use them as partial-input models. They read a text with a
bidirectional LSTM and pool its states by element-wise maximum: r = max(BiLSTM(words)).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import nn

from evaluation.learners.words.layers import (
    Comparison,
    Padded,
    RecurrentEncoder,
    Score,
    highest,
    linear,
)


class Batch(NamedTuple):
    """Rows with all their choices.

    Attributes:
        texts: the distinct texts that are read.
        question: the text of each choice's question, shape [choices]; of a network that reads no
            questions, empty.
        choice: the text of each choice, shape [choices].
        row: the row that each choice belongs to, counted from 0, shape [choices].
    """

    texts: Padded
    question: torch.Tensor
    choice: torch.Tensor
    row: torch.Tensor


class Network(nn.Module, ABC):
    """Scores choices; word vectors are not changed.

    A row's scores depend on the row alone, not on others in the batch.
    """

    reads_questions: ClassVar[bool] = True

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights with torch's global generator.

        Args:
            dimensions: of the word vectors.
            units: of each LSTM in each direction, and of the layers between them.
            dropout: share of units left out in training.
        """
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encode = RecurrentEncoder(dimensions, units)

    @abstractmethod
    def forward(self, batch: Batch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""

    def encoded(self, batch: Batch) -> Padded:
        """Return the states of the LSTM for each text."""
        read = Padded(self.dropout(batch.texts.states), batch.texts.lengths)
        states: Padded = self.encode(read)
        return states


class Esim(Network):
    """ESIM: compares the tokens of a question and a choice that correspond to each other."""

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`Network`."""
        super().__init__(dimensions, units, dropout)
        self.compare = Comparison(2 * units, units, dropout)
        self.score = Score(8 * units, units, dropout)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        texts = self.encoded(batch)
        scores: torch.Tensor = self.score(
            self.compare(texts.take(batch.question), texts.take(batch.choice))
        )
        return scores


class ChoiceOnly(Network):
    """How plausible a choice is by itself: score(c) = w · r_c."""

    reads_questions = False

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`Network`."""
        super().__init__(dimensions, units, dropout)
        # Without bias, which all choices of a row would share.
        self.unit = linear(2 * units, 1, bias=False)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        pooled = highest(self.encoded(batch))
        scores: torch.Tensor = self.unit(self.dropout(pooled)).squeeze(-1)
        return scores[batch.choice]


class Attention(nn.Module):
    """A linear unit that compares two vectors: Att(u, v) = w · [u; v; |u - v|; u * v]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.unit = linear(4 * width, 1, bias=False)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return a number for each pair of vectors of shape [n, width]; shape [n]."""
        parts = [first, second, (first - second).abs(), first * second]
        numbers: torch.Tensor = self.unit(torch.cat(parts, dim=-1))
        return numbers.squeeze(-1)


class ChoiceToChoice(Network):
    """How a choice compares with the others of its row: score(c) = sum of Att(r_c, r_d).

    d are the row's other choices; a choice that stands alone scores 0.
    """

    reads_questions = False

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`Network`."""
        super().__init__(dimensions, units, dropout)
        self.attention = Attention(2 * units)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        pooled = self.dropout(highest(self.encoded(batch)))[batch.choice]
        together = batch.row.unsqueeze(0) == batch.row.unsqueeze(1)
        first, second = together.fill_diagonal_(False).nonzero(as_tuple=True)
        compared: torch.Tensor = self.attention(pooled[first], pooled[second])
        return compared.new_zeros(len(pooled)).index_add(0, first, compared)


class QuestionToChoice(Network):
    """How a choice compares with its question: score(c) = Att(r_q, r_c)."""

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`Network`."""
        super().__init__(dimensions, units, dropout)
        self.attention = Attention(2 * units)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        pooled = self.dropout(highest(self.encoded(batch)))
        scores: torch.Tensor = self.attention(pooled[batch.question], pooled[batch.choice])
        return scores
