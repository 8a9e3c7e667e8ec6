"""Ranks of choices in the vocabulary: whether answers are among a model's best predictions.

oLMpics takes a cloze's answers to be viable if they are among a model's ten best predictions. The
score of a choice is minus its rank: at the mask or, for a causal model, that of its first token
after the text before the mask. The report shows the shares
(:mod:`evaluation.results.analyses.viability`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch

from evaluation.items.types import Item
from evaluation.results.analyses.viability import SCORE
from evaluation.scorers.base import Scorer, ScorerInputs
from evaluation.scorers.causal.forward import cell_log_probs
from evaluation.scorers.causal.layout import CausalEncoded, PairTokenizer, PairTokens
from evaluation.scorers.causal.prompts import Rendered
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.masked.scorer import MaskedEncoded, MaskedScorer
from kbprobe.arrays import Floats, Ints
from kbprobe.format.setups import MASK

_AT_ONCE = 128
"""Number of choices for which the whole vocabulary is compared at a time."""


def minus_ranks(logits: torch.Tensor, rows: Ints, targets: Ints) -> torch.Tensor:
    """Return minus the rank of tokens in the vocabulary (the best has rank 1), shape [n].

    Args:
        logits: shape [rows, vocabulary].
        rows: the row that predicts each token, shape [n].
        targets: the tokens, shape [n].
    """
    parts = (
        (logits[rows[here]] > logits[rows[here], targets[here], None]).sum(-1)
        for here in (slice(at, at + _AT_ONCE) for at in range(0, len(rows), _AT_ONCE))
    )
    return -1.0 - torch.cat(list(parts))


class MaskedRank(MaskedScorer):
    """Ranks single pieces at the mask; rows with candidates of several are set aside."""

    score_kind = SCORE
    encode_parts, score_name = Scorer.encode_parts, Scorer.score_name

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation."""
        return cls(inputs.model, inputs.tokenizer, multi_piece="skip")

    @torch.inference_mode()
    def score(self, encoded: MaskedEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        counts, slots = encoded.slots(sequences)
        rows = np.repeat(np.arange(len(sequences)), counts)
        logits = self._mask_logits(encoded, sequences, None)
        ranks = minus_ranks(logits, rows, encoded.slot_piece[slots])
        scores: Floats = ranks.cpu().double().numpy()
        return scores


class FirstTokens(PairTokenizer):
    """Truncates continuations to their first token."""

    def encode(self, rendered: Sequence[Rendered]) -> list[PairTokens]:
        """Tokenize many at once."""
        pairs = super().encode(rendered)
        return [PairTokens(pair.context, [c[:1] for c in pair.continuations]) for pair in pairs]


class CausalRank(CausalScorer):
    """Ranks the first token of each choice after the text before the mask."""

    score_kind, score_name = SCORE, Scorer.score_name

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation."""
        scorer = cls(inputs.model, inputs.tokenizer)
        scorer._pairs = FirstTokens(inputs.tokenizer)
        return scorer

    def render(self, item: Item) -> list[tuple[Rendered, float]]:
        """Return the text before the mask, and the choices."""
        return [(Rendered(item.question.partition(MASK)[0], item.choices), 1.0)]

    def score(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch: a slot is one token, and so one cell."""
        return cell_log_probs(self._model, encoded, sequences, minus_ranks)
