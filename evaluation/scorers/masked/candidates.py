"""Scores candidates with masked language models by logits at a single mask.

The score of a candidate with several pieces is the mean of its pieces' logits at the mask. As
pretrained models were not trained on such means, this is for models that were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch

from evaluation.items.types import Item
from evaluation.scorers.base import Scorer
from evaluation.scorers.masked.scorer import MaskedEncoded, MaskedScorer
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts


@dataclass(frozen=True, kw_only=True)
class CandidateEncoded(MaskedEncoded):
    """Clozes with one mask each; a slot is a choice at the mask of its text.

    Attributes:
        pieces: token ids of the pieces of all choices, one choice after another.
        piece_starts: where the pieces of each choice start, shape [choices + 1].
    """

    pieces: Ints
    piece_starts: Ints


class CandidateScorer(MaskedScorer):
    """Scores the candidates of clozes with the logits of their pieces at the mask.

    Single pieces have the scores that :class:`MaskedScorer` gives them. Rows with a candidate of
    several pieces are counted in the notes as ``several_pieces``.
    """

    score_kind = "logit"
    encode_parts, score_name = Scorer.encode_parts, Scorer.score_name  # whatever the pieces

    def encode(self, items: Sequence[Item]) -> CandidateEncoded:
        """Tokenize all items; see :class:`MaskedScorer` for what is set aside or cut.

        Raises:
            UsageError: a cloze does not hold exactly one mask.
        """
        encoded, several, pieces = self._encoded(items, first=True)
        tokens = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        notes = {**encoded.notes, "several_pieces": several} if several else encoded.notes
        return CandidateEncoded(
            **{**vars(encoded), "choice_tokens": tokens, "notes": notes},
            pieces=np.fromiter(chain.from_iterable(pieces), dtype=np.int64),
            piece_starts=run_starts(tokens),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        values = self.slot_logits(encoded, encoded.slots(sequences)[1])
        scores: Floats = values.cpu().numpy().astype(np.float64)
        return scores

    def slot_logits(self, encoded: CandidateEncoded, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        Candidates of one text share its forward pass.
        """
        texts, text_of_slot = np.unique(encoded.sequence_of(slots), return_inverse=True)
        choices = encoded.slot_choice[slots]
        counts = np.diff(encoded.piece_starts)[choices]
        pieces = encoded.pieces[ragged_ranges(encoded.piece_starts[choices], counts)]
        ids = encoded.padded(texts, encoded.tokens, self._pad)
        logits = self._head.logits(
            self._inputs(ids, encoded.shown(texts)),
            self._to_device(encoded.position[texts]),
            self._to_device(np.unique(pieces)),
        )
        rows, asked = self._to_device(np.repeat(text_of_slot, counts)), self._to_device(pieces)
        slot_of_piece = self._to_device(np.repeat(np.arange(len(slots)), counts))
        of_pieces = logits[rows, asked].float()
        sums = of_pieces.new_zeros(len(slots)).index_add(0, slot_of_piece, of_pieces)
        return sums / self._to_device(counts)
