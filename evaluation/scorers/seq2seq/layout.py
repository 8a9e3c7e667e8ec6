"""Texts for the encoder, and what the decoder is to score for each, as flat arrays."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evaluation.scorers.base import EncodedTokens, Tokens
from evaluation.scorers.causal.layout import grow_trees
from evaluation.scorers.seq2seq.tokens import Ids
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts


class Asked(NamedTuple):
    """A text for the encoder, and the targets whose log-likelihoods are asked for.

    Attributes:
        item: an item that it belongs to.
        source: the tokens that the encoder reads.
        given: the tokens that the decoder is given, at least one.
        targets: token sequences that are scored after them, and the choices that each stands for.
        weight: what their log-likelihoods count in a choice's score.
        cut: whether the beginning of the source was left out to fit.
    """

    item: int
    source: Ids
    given: Ids
    targets: dict[Ids, list[int]]
    weight: float
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Seq2SeqEncoded(EncodedTokens):
    """Sequences of an encoder-decoder model: the tokens are those of the encoder.

    Sequence ``s`` has the decoder's rows ``row_starts[s] .. row_starts[s + 1]``. All of them begin
    with what the decoder is given. A slot is the log-likelihood of one target: the sum over its
    *cells*, each the log-probability of one token after a token of one row.

    Attributes:
        given: tokens that the decoder is given, of all sequences.
        given_starts: where those of each sequence start, shape [sequences + 1].
        row_starts: shape [sequences + 1].
        row_tokens: what each row adds to the given tokens, which may be nothing.
        row_token_starts: where the tokens of each row start, shape [rows + 1].
        cell_starts: slot ``t`` has cells ``cell_starts[t] .. cell_starts[t + 1]``.
        cell_row: the row that predicts each cell's target, shape [cells].
        cell_after: how many of the row's own tokens stand before the target.
        cell_target: the token predicted, shape [cells].
        slot_weight: what a slot's log-likelihood counts in its choice's score, shape [slots].
    """

    given: Tokens
    given_starts: Ints
    row_starts: Ints
    row_tokens: Tokens
    row_token_starts: Ints
    cell_starts: Ints
    cell_row: Ints
    cell_after: Tokens
    cell_target: Tokens
    slot_weight: Floats

    def given_tokens(self, sequences: Ints) -> Ints:
        """Return what the decoder is given for some sequences, equally many tokens: [n, tokens]."""
        counts = np.diff(self.given_starts)[sequences]
        flat = self.given[ragged_ranges(self.given_starts[sequences], counts)]
        return flat.reshape(len(sequences), -1).astype(np.int64)

    def rows_of(self, sequences: Ints) -> tuple[Ints, Ints]:
        """Return how many rows each of some sequences has, and the rows of all of them."""
        counts = np.diff(self.row_starts)[sequences]
        return counts, ragged_ranges(self.row_starts[sequences], counts)

    def padded_rows(self, rows: Ints, filling: int) -> Ints:
        """Lay out the own tokens of some rows, padded on the right, shape [n, longest]."""
        lengths = np.diff(self.row_token_starts)[rows]
        batch = np.full((len(rows), int(lengths.max())), filling, dtype=np.int64)
        here = ragged_ranges(self.row_token_starts[rows], lengths)
        batch[np.arange(batch.shape[1]) < lengths[:, None]] = self.row_tokens[here]
        return batch


_KINDS = {
    **dict.fromkeys(("lengths", "item", "slot_choice", "cell_row"), "q"),
    "slot_weight": "d",
    **dict.fromkeys(("tokens", "given", "row_tokens", "cell_after", "cell_target"), "i"),
}
"""What is collected, and as what type of :class:`array.array`."""

_RUNS = ("slots", "given", "rows", "row_tokens", "cells")
"""The arrays for which the lengths of runs are collected."""


def lay_out(
    asked: Sequence[Asked], choice_tokens: Ints, set_aside: Mapping[int, str], notes: dict[str, int]
) -> Seq2SeqEncoded:
    """Lay out what is asked: each text is a sequence, and targets that it stands for are slots.

    Targets of which one is read on the way to another share a row.
    """
    columns: dict[str, array[Any]] = {name: array(kind) for name, kind in _KINDS.items()}
    runs = {name: array("q") for name in _RUNS}
    for one in asked:
        columns["tokens"].extend(one.source)
        columns["lengths"].append(len(one.source))
        columns["item"].append(one.item)
        columns["given"].extend(one.given)
        runs["given"].append(len(one.given))
        targets = list(one.targets)
        slots, before = 0, len(runs["row_tokens"])
        for tree in grow_trees(one.given, targets, limit=0):
            row = len(runs["row_tokens"])
            own = tree.tokens[len(one.given) :]
            columns["row_tokens"].extend(own)
            runs["row_tokens"].append(len(own))
            for number, after in tree.paths:
                for choice in one.targets[targets[number]]:
                    columns["cell_row"].extend([row] * len(after))
                    columns["cell_after"].extend(at - len(one.given) + 1 for at in after)
                    columns["cell_target"].extend(targets[number])
                    columns["slot_choice"].append(choice)
                    columns["slot_weight"].append(one.weight)
                    runs["cells"].append(len(after))
                    slots += 1
        runs["rows"].append(len(runs["row_tokens"]) - before)
        runs["slots"].append(slots)
    arrays: dict[str, Any] = {name: np.array(held) for name, held in columns.items()}
    return Seq2SeqEncoded(
        **arrays,
        slot_starts=run_starts(runs["slots"]),
        token_starts=run_starts(arrays["lengths"]),
        given_starts=run_starts(runs["given"]),
        row_starts=run_starts(runs["rows"]),
        row_token_starts=run_starts(runs["row_tokens"]),
        cell_starts=run_starts(runs["cells"]),
        choice_tokens=choice_tokens,
        set_aside=set_aside,
        notes=notes,
    )
