"""The scorer of encoder-decoder models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.options import CausalOptions
from kbprobe.format.setups import QUESTION
from kbprobe.options import RARE


class Seq2SeqOptions(CausalOptions):
    """Those of the causal-LM scorer, and what belongs to a choice."""

    score_end: Annotated[bool, RARE] = Field(
        False, description="Also score the end-of-sequence token after each choice."
    )


SEQ2SEQ_LM = ScorerEntry(
    name="seq2seq_lm",
    label="sequence-to-sequence LM",
    version=1,
    needs=Capability.SEQ2SEQ_SCORES,
    make=imported("evaluation.scorers.seq2seq.scorer:Seq2SeqScorer.from_inputs"),
    options=Seq2SeqOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
    # As for causal LMs: longer answers are less likely, right or wrong.
    normalization=lambda options: None if options.letters else "char",
)
