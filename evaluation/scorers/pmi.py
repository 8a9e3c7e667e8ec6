"""Pointwise mutual information: how much a question raises the log-likelihood of a choice.

A language model favours answers that are likely in any context. Holtzman et al. 2021 (PMI over the
domain, section 3) compare each choice after its question with the same choice after a neutral
text. With the default, an empty text, the score is that of lm-evaluation-harness's
``acc_mutual_info``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.models.capabilities import Capability, is_encoder_decoder
from evaluation.scorers.base import ScorerEntry, ScorerInputs
from evaluation.scorers.causal.options import CausalOptions, NeutralOptions
from kbprobe.format.setups import QUESTION

if TYPE_CHECKING:
    from evaluation.scorers.causal.prompted import PromptedScorer


class PmiOptions(CausalOptions, NeutralOptions):
    """Those of the causal-LM scorer, and the neutral text."""


def likelihood_scorer(inputs: ScorerInputs) -> PromptedScorer:
    """Make the log-likelihood scorer of a causal LM, or of an encoder-decoder model."""
    from evaluation.scorers.causal.scorer import CausalScorer
    from evaluation.scorers.seq2seq.scorer import Seq2SeqScorer

    kind = Seq2SeqScorer if is_encoder_decoder(inputs.model.config) else CausalScorer
    return kind.from_inputs(inputs)


PMI = ScorerEntry(
    name="pmi",
    label="PMI",
    version=1,
    needs=Capability.LIKELIHOODS,
    make=likelihood_scorer,
    options=PmiOptions,
    setups=(QUESTION,),
    uses_train=lambda options: options.shots > 0,
)
