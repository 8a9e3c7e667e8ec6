"""The causal-LM scorer."""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.options import CausalOptions
from kbprobe.format.setups import QUESTION

CAUSAL_LM = ScorerEntry(
    name="causal_lm",
    label="causal LM",
    version=1,
    needs=Capability.CAUSAL_SCORES,
    make=imported("evaluation.scorers.causal.scorer:CausalScorer.from_inputs"),
    options=CausalOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
    # Longer answers are less likely, right or wrong; letters all have the same length.
    normalization=lambda options: None if options.letters else "char",
)
