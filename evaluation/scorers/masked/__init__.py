"""The masked-LM scorer."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from evaluation.scorers.masked.options import MaskedOptions


def _make(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.masked.scorer import MaskedScorer

    options: MaskedOptions = inputs.options
    return MaskedScorer(
        inputs.model,
        inputs.tokenizer,
        multi_piece=options.multi_piece,
        log_probs=options.log_probs,
    )


MASKED_LM = ScorerEntry(
    name="masked_lm",
    label="masked LM",
    version=1,
    needs=Capability.MASKED_SCORES,
    make=_make,
    options=MaskedOptions,
    normalization=lambda _options: "sum",
)
