"""Scores choices with a causal model in vLLM: the log-likelihoods of those loaded otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evaluation.models.loading import TokenIds
from evaluation.models.vllm import VllmModel
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.causal.forward import Sharing
from evaluation.scorers.causal.layout import CausalEncoded, PairTokenizer
from evaluation.scorers.causal.prompted import PromptedScorer, longest_text
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def causal_scorer(inputs: ScorerInputs) -> CausalScorer:
    """Return the scorer of an evaluation, of a model of transformers or of vLLM."""
    kind = VllmScorer if isinstance(inputs.model, VllmModel) else CausalScorer
    return kind.from_inputs(inputs)


class VllmScorer(CausalScorer):
    """Sends each question with each choice; what prompts share is the engine's business."""

    def __init__(
        self,
        model: VllmModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        prompt: Prompt | None = None,
        pack: bool = True,
    ) -> None:
        """Set the engine, the tokenizer, and how items are put; ``pack`` makes no difference.

        Raises:
            UsageError: a chat was asked for and the tokenizer has no chat template.
        """
        PromptedScorer.__init__(self, tokenizer, prompt)
        self._engine, self._pairs = model, PairTokenizer(tokenizer)
        text_config = getattr(model.config, "text_config", None) or model.config
        # The last token of a choice is sent as well, and one token is generated.
        self._max_length = longest_text(text_config, tokenizer) - 2
        self._window = self._max_length
        self._supported, self.sharing = Sharing.MASK, Sharing.NONE

    def _refuse_unembedded(self, read: TokenIds, predicted: TokenIds) -> None:
        """Do nothing: vLLM itself refuses tokens that are not in the model's vocabulary."""

    def score(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
        """Send some sequences; see :meth:`Scorer.score`."""
        return encoded.summed(sequences, self.token_log_probs(encoded, sequences))

    def token_log_probs(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
        """Send some sequences; return the log-probability of each of their cells."""
        slot_counts, _ = encoded.slots(sequences)
        _, counts, cells = encoded.cells(sequences)
        first = np.repeat(encoded.token_starts[sequences], slot_counts)
        starts = run_starts(counts)
        prompts: dict[tuple[int, ...], list[int]] = {}
        for slot, start in enumerate(first.tolist()):
            last = cells[starts[slot + 1] - 1]
            read = encoded.tokens[start : start + encoded.cell_after[last] + 1].tolist()
            prompts.setdefault((*read, int(encoded.cell_target[last])), []).append(slot)
        values = np.empty(len(cells))
        for own, found in zip(
            prompts.values(), self._engine.token_log_probs(list(prompts)), strict=True
        ):
            at = ragged_ranges(starts[own], counts[own])
            # What follows token n is the n-th of the log-probabilities, of all but the first token.
            values[at] = np.array(found)[encoded.cell_after[cells[at]]]
        return values
