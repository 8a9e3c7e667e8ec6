"""The scorers of masked LMs: their options, and what they need."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from kbprobe.format.setups import CLOZE
from kbprobe.options import RARE, Options

MultiPiece = Literal["pll", "skip", "error"]


class MaskedOptions(Options):
    """How a masked LM scores choices."""

    multi_piece: Annotated[MultiPiece, RARE] = Field(
        "pll",
        description="Candidates of several tokens: score their pseudo-log-likelihood (pll), set "
        "the item aside (skip), or stop (error).",
    )
    log_probs: Annotated[bool, RARE] = Field(
        False, description="Use log-probabilities over the vocabulary instead of logits."
    )


MASKED_LM = ScorerEntry(
    name="masked_lm",
    label="masked LM",
    version=1,
    needs=Capability.MASKED_SCORES,
    make=imported("evaluation.scorers.masked.scorer:MaskedScorer.from_inputs"),
    options=MaskedOptions,
    wording=CLOZE,
    normalization=lambda _options: "sum",
)
CANDIDATES = ScorerEntry(
    name="candidates",
    label="masked LM trained on candidates",
    version=1,
    needs=Capability.MASKED_SCORES,
    make=imported("evaluation.scorers.masked.candidates:CandidateScorer.from_inputs"),
    setups=(CLOZE,),
)
"""Not registered, since it is meant only for models that a learner trained with these scores."""
