"""Pointwise mutual information: how much a question raises the log-likelihood of a choice.

A language model favours answers that are likely in any context. Holtzman et al. 2021 (PMI over the
domain, section 3) compare each choice after its question with the same choice after a neutral
text. With the default, an empty text, the score is that of lm-evaluation-harness's
``acc_mutual_info``.
"""

from __future__ import annotations

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from evaluation.scorers.causal.options import CausalOptions, NeutralOptions
from kbprobe.errors import UsageError
from kbprobe.format.setups import QUESTION


class PmiOptions(CausalOptions, NeutralOptions):
    """Those of the causal-LM scorer, and the neutral text."""


def _make(inputs: ScorerInputs) -> Scorer:
    from dataclasses import replace

    from evaluation.items.types import Item
    from evaluation.models.capabilities import is_encoder_decoder
    from evaluation.scorers.causal.prompted import PromptedScorer, prompt_of
    from evaluation.scorers.causal.prompts import Rendered
    from evaluation.scorers.causal.scorer import CausalScorer
    from evaluation.scorers.seq2seq.scorer import Seq2SeqScorer

    if inputs.options.letters:
        raise UsageError(
            "--letters (and the study orders, which sets it) scores the letters of choices, and "
            "--scorer pmi their texts: leave one out"
        )

    class Pmi(PromptedScorer):
        """Subtracts the log-likelihood after the neutral text, scored once per choice."""

        def render(self, item: Item) -> list[tuple[Rendered, float]]:
            neutral = replace(item, question=inputs.options.neutral)
            (alone,) = self.prompt.without_shots().render(neutral, self.to_chat)
            return [*super().render(item), (alone, -1.0)]

        def score_name(self, items: object) -> str:
            return "pointwise mutual information"

    class CausalPmi(Pmi, CausalScorer):
        """PMI with a causal LM: the neutral text is the context."""

    class Seq2SeqPmi(Pmi, Seq2SeqScorer):
        """PMI with an encoder-decoder model: the neutral text is in the encoder."""

    scorer = Seq2SeqPmi if is_encoder_decoder(inputs.model.config) else CausalPmi
    prompt, pack = prompt_of(inputs), inputs.options.pack
    return scorer(inputs.model, inputs.tokenizer, prompt=prompt, pack=pack)


PMI = ScorerEntry(
    name="pmi",
    label="PMI",
    version=1,
    needs=Capability.LIKELIHOODS,
    make=_make,
    options=PmiOptions,
    setups=(QUESTION,),
    uses_train=lambda options: options.shots > 0,
)
