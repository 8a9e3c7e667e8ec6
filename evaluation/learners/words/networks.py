"""The networks: each scores the choices of rows, given as sequences of word vectors.

ESIM is that of Chen et al. 2017. The other three are from Mihaylov et al. 2018 (OpenBookQA),
section 4.2, where they are called question match, plausible answer detector and odd-one-out
solver; Richardson and Sabharwal 2020 use them as partial-input models. They read a text with a
bidirectional LSTM and pool its states by element-wise maximum: r = max(BiLSTM(words)).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn

from kbprobe.arrays import Ints


class Padded(NamedTuple):
    """A batch of sequences, padded on the right.

    Attributes:
        states: a vector for each token, shape [n, longest, width].
        lengths: tokens of each sequence, at least 1, shape [n].
    """

    states: torch.Tensor
    lengths: torch.Tensor

    @property
    def shown(self) -> torch.Tensor:
        """Tell tokens from padding, shape [n, longest]."""
        places = torch.arange(self.states.shape[1], device=self.states.device)
        return places < self.lengths.unsqueeze(1)

    def take(self, rows: torch.Tensor) -> Padded:
        """Return some of the sequences, each as often as it is named, cut to their longest."""
        lengths = self.lengths[rows]
        return Padded(self.states[:, : int(lengths.max())][rows], lengths)

    def join(self, others: Padded) -> Padded:
        """Return these sequences and the others as one batch: layers run once for both."""
        longest = max(self.states.shape[1], others.states.shape[1])
        both = [
            nn.functional.pad(one.states, (0, 0, 0, longest - one.states.shape[1]))
            for one in (self, others)
        ]
        return Padded(torch.cat(both), torch.cat([self.lengths, others.lengths]))


def padded(vectors: torch.Tensor, tokens: Ints, lengths: Ints) -> Padded:
    """Return sequences as one batch.

    Args:
        vectors: shape [vectors, width].
        tokens: which vector each token has, one sequence after another, shape [tokens].
        lengths: tokens of each sequence, shape [n].
    """
    rows = np.zeros((len(lengths), lengths.max()), dtype=np.int64)
    rows[np.arange(lengths.max()) < lengths[:, None]] = tokens
    device = vectors.device
    return Padded(vectors[torch.from_numpy(rows).to(device)], torch.from_numpy(lengths).to(device))


def linear(width: int, units: int, bias: bool = True) -> nn.Linear:
    """Make a linear layer whose weights are drawn after Glorot and Bengio 2010."""
    layer = nn.Linear(width, units, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class RecurrentEncoder(nn.Module):
    """A bidirectional LSTM: a vector of twice the units for each token.

    Its recurrent weights start orthogonal, which trains faster on few rows.
    """

    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, units, batch_first=True, bidirectional=True)

        for name, weights in self.lstm.named_parameters():
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(weights)
            elif name.startswith("weight_hh"):
                for gate in weights.chunk(4):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(weights)
                if name.startswith("bias_ih"):
                    nn.init.ones_(weights.chunk(4)[1])  # the gate that keeps the state is open

    def forward(self, sequences: Padded) -> Padded:
        """Return the states of both directions, shape [n, longest, 2 * units]."""
        packed = nn.utils.rnn.pack_padded_sequence(
            sequences.states, sequences.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=sequences.states.shape[1]
        )
        return Padded(states, sequences.lengths)


def align(sequences: Padded, others: Padded) -> torch.Tensor:
    """Return for each token what it corresponds to in the other sequence (soft alignment).

    The mean of the other sequence's vectors, weighted by the softmax of their dot products with
    the token's own (equations 11 to 13), shape [n, longest, width].
    """
    products = sequences.states @ others.states.transpose(1, 2)
    products = products.masked_fill(~others.shown.unsqueeze(1), -torch.inf)
    return products.softmax(dim=-1) @ others.states


def pool(sequences: Padded) -> torch.Tensor:
    """Return the average and the maximum of each sequence's vectors, shape [n, 2 * width]."""
    padding = ~sequences.shown.unsqueeze(-1)
    summed = sequences.states.masked_fill(padding, 0).sum(dim=1)
    average = summed / sequences.lengths.unsqueeze(1)
    return torch.cat([average, highest(sequences)], dim=-1)


def highest(sequences: Padded) -> torch.Tensor:
    """Return the element-wise maximum of each sequence's vectors, shape [n, width]."""
    padding = ~sequences.shown.unsqueeze(-1)
    return sequences.states.masked_fill(padding, -torch.inf).amax(dim=1)


class SequenceComparison(nn.Module):
    """Compares the tokens of two sequences and sums up what it finds: a vector for each pair.

    Each token's vector, what it is aligned with, their difference and their product go through a
    linear layer and an LSTM of its own; its states are pooled (equations 14 to 19).
    """

    def __init__(self, width: int, units: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Sequential(linear(4 * width, units), nn.ReLU(), nn.Dropout(dropout))
        self.compose = RecurrentEncoder(units, units)

    def forward(self, first: Padded, second: Padded) -> torch.Tensor:
        """Return the pooled comparison of both with each other, shape [n, 8 * units]."""
        compared = self._compared(first, second).join(self._compared(second, first))
        pooled = pool(self.compose(compared))
        return torch.cat(pooled.split(len(first.lengths)), dim=-1)

    def _compared(self, sequences: Padded, others: Padded) -> Padded:
        states, aligned = sequences.states, align(sequences, others)
        parts = [states, aligned, states - aligned, states * aligned]
        return Padded(self.project(torch.cat(parts, dim=-1)), sequences.lengths)


class Score(nn.Module):
    """Makes one number of a vector: a layer with tanh, and a linear unit.

    The unit has no bias, which all choices of a row would share.
    """

    def __init__(self, width: int, units: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            linear(width, units),
            nn.Tanh(),
            nn.Dropout(dropout),
            linear(units, 1, bias=False),
        )

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return a number for each vector, shape [n]."""
        scores: torch.Tensor = self.layers(vectors)
        return scores.squeeze(-1)


class WordBatch(NamedTuple):
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


class WordNetwork(nn.Module, ABC):
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
    def forward(self, batch: WordBatch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""

    def encoded(self, batch: WordBatch) -> Padded:
        """Return the states of the LSTM for each text."""
        read = Padded(self.dropout(batch.texts.states), batch.texts.lengths)
        states: Padded = self.encode(read)
        return states


class Esim(WordNetwork):
    """ESIM: compares the tokens of a question and a choice that correspond to each other."""

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`WordNetwork`."""
        super().__init__(dimensions, units, dropout)
        self.compare = SequenceComparison(2 * units, units, dropout)
        self.score = Score(8 * units, units, dropout)

    def forward(self, batch: WordBatch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        texts = self.encoded(batch)
        scores: torch.Tensor = self.score(
            self.compare(texts.take(batch.question), texts.take(batch.choice))
        )
        return scores


class ChoiceOnly(WordNetwork):
    """How plausible a choice is by itself: score(c) = w · r_c."""

    reads_questions = False

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`WordNetwork`."""
        super().__init__(dimensions, units, dropout)
        # Without bias, which all choices of a row would share.
        self.unit = linear(2 * units, 1, bias=False)

    def forward(self, batch: WordBatch) -> torch.Tensor:
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


class ChoiceToChoice(WordNetwork):
    """How a choice compares with the others of its row: score(c) = sum of Att(r_c, r_d).

    d are the row's other choices; a choice that stands alone scores 0.
    """

    reads_questions = False

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`WordNetwork`."""
        super().__init__(dimensions, units, dropout)
        self.attention = Attention(2 * units)

    def forward(self, batch: WordBatch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        pooled = self.dropout(highest(self.encoded(batch)))[batch.choice]
        together = batch.row.unsqueeze(0) == batch.row.unsqueeze(1)
        first, second = together.fill_diagonal_(False).nonzero(as_tuple=True)
        compared: torch.Tensor = self.attention(pooled[first], pooled[second])
        return compared.new_zeros(len(pooled)).index_add(0, first, compared)


class QuestionToChoice(WordNetwork):
    """How a choice compares with its question: score(c) = Att(r_q, r_c)."""

    def __init__(self, dimensions: int, units: int, dropout: float) -> None:
        """Draw the weights; see :class:`WordNetwork`."""
        super().__init__(dimensions, units, dropout)
        self.attention = Attention(2 * units)

    def forward(self, batch: WordBatch) -> torch.Tensor:
        """Return a score for each choice, shape [choices]."""
        pooled = self.dropout(highest(self.encoded(batch)))
        scores: torch.Tensor = self.attention(pooled[batch.question], pooled[batch.choice])
        return scores


NETWORKS: dict[str, type[WordNetwork]] = {
    "esim": Esim,
    "choice_only": ChoiceOnly,
    "choice_to_choice": ChoiceToChoice,
    "question_to_choice": QuestionToChoice,
}
"""The networks, by the names of their learners."""
