"""Layers over sequences of word vectors, which the networks are made of.

Padding has no influence: recurrent layers stop at the end of each sequence, attention and pooling
leave padding out. The score of a pair does not depend on what else is in the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn


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


class Comparison(nn.Module):
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
