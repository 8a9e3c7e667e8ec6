"""Ranks of choices in the vocabulary: whether answers are among a model's best predictions.

[O] takes a cloze's answers to be viable if they are among a model's ten best predictions. The score
of a choice is minus its rank: at the mask or, for a causal model, that of its first token after the
text before the mask. The report shows the shares (:mod:`evaluation.results.analyses.viability`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluation.items.types import MASK, Item
from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from kbprobe.format.setups import CLOZE

if TYPE_CHECKING:
    import torch

    from kbprobe.arrays import Floats, Ints

_AT_ONCE = 128
"""Number of choices for which the whole vocabulary is compared at a time."""


def minus_ranks(logits: torch.Tensor, rows: Ints, targets: Ints) -> torch.Tensor:
    """Return minus the rank of tokens in the vocabulary (the best has rank 1), shape [n].

    Args:
        logits: shape [rows, vocabulary].
        rows: the row that predicts each token, shape [n].
        targets: the tokens, shape [n].
    """
    import torch

    parts = (
        (logits[rows[here]] > logits[rows[here], targets[here], None]).sum(-1)
        for here in (slice(at, at + _AT_ONCE) for at in range(0, len(rows), _AT_ONCE))
    )
    return -1.0 - torch.cat(list(parts))


def _make_masked(inputs: ScorerInputs) -> Scorer:
    import numpy as np
    import torch

    from evaluation.results.analyses.viability import SCORE
    from evaluation.scorers.masked.scorer import MaskedEncoded, MaskedScorer

    class MaskedRank(MaskedScorer):
        """Ranks single pieces at the mask; rows with candidates of several are set aside."""

        encode_parts = Scorer.encode_parts

        @torch.inference_mode()
        def score(self, encoded: MaskedEncoded, sequences: Ints) -> Floats:
            counts, slots = encoded.slots(sequences)
            rows = np.repeat(np.arange(len(sequences)), counts)
            logits = self._mask_logits(encoded, sequences, None)
            return minus_ranks(logits, rows, encoded.slot_piece[slots]).cpu().double().numpy()

        def score_name(self, items: object) -> str:
            return SCORE

    return MaskedRank(inputs.model, inputs.tokenizer, multi_piece="skip")


def _make_causal(inputs: ScorerInputs) -> Scorer:
    from evaluation.results.analyses.viability import SCORE
    from evaluation.scorers.causal.forward import cell_log_probs
    from evaluation.scorers.causal.layout import CausalEncoded, PairTokenizer, PairTokens
    from evaluation.scorers.causal.prompts import Rendered
    from evaluation.scorers.causal.scorer import CausalScorer

    class FirstTokens(PairTokenizer):
        """Truncates continuations to their first token."""

        def encode(self, rendered: Sequence[Rendered]) -> list[PairTokens]:
            pairs = super().encode(rendered)
            return [PairTokens(pair.context, [c[:1] for c in pair.continuations]) for pair in pairs]

    class CausalRank(CausalScorer):
        """Ranks the first token of each choice after the text before the mask."""

        def __init__(self) -> None:
            super().__init__(inputs.model, inputs.tokenizer)
            self._pairs = FirstTokens(inputs.tokenizer)

        def render(self, item: Item) -> list[tuple[Rendered, float]]:
            return [(Rendered(item.question.partition(MASK)[0], item.choices), 1.0)]

        def score(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
            # A slot is one token, and so one cell.
            return cell_log_probs(self._model, encoded, sequences, minus_ranks)

        def score_name(self, items: object) -> str:
            return SCORE

    return CausalRank()


MASKED_RANK = ScorerEntry(
    name="masked_rank",
    label="masked LM's rank",
    version=1,
    needs=Capability.MASKED_SCORES,
    make=_make_masked,
    setups=(CLOZE,),
)
CAUSAL_RANK = ScorerEntry(
    name="causal_rank",
    label="causal LM's rank",
    version=1,
    needs=Capability.CAUSAL_SCORES,
    make=_make_causal,
    setups=(CLOZE,),
)
