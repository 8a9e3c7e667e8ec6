"""Scores choices with a causal language model: log-likelihood of each choice after its question.

What is scored, and on which tokens, is as in lm-evaluation-harness (``loglikelihood`` and
``_loglikelihood_tokens``), except for tokenizers that end every text with a token, which belongs to
neither question nor choice. How it is computed differs: a question is read once for all its
choices (:mod:`evaluation.scorers.causal.layout`), and the vocabulary projection runs only where a
token of a choice is predicted.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.models.loading import TokenIds, refuse_unembedded
from evaluation.scorers.base import aside
from evaluation.scorers.causal.forked import is_worth_forking
from evaluation.scorers.causal.forward import Sharing, cell_log_probs, score_sequences, sharing_of
from evaluation.scorers.causal.layout import (
    PACK_TOKENS,
    CausalEncoded,
    LayoutBuilder,
    PairTokenizer,
    PairTokens,
    grow_trees,
)
from evaluation.scorers.causal.prompted import ContextChoices, PromptedScorer, longest_text
from evaluation.scorers.causal.prompts import Prompt, Rendered
from evaluation.scorers.readable import unknown_candidate
from kbprobe.arrays import Floats, Ints

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "window_size",
    "attention_window_size",
    "attention_chunk_size",
    "local_attention",
)
"""Names in configurations of the attention window of some layers."""

_TOKENIZED_AT_ONCE = 256


class CausalScorer(PromptedScorer):
    """Scores choices with a causal language model.

    A choice's score is the log-likelihood of its continuation (nats, summed over its tokens), or
    the mean of it over the orders of a lettered prompt.

    All items that ask the same question share sequences. Whether the model supports this is tested
    once on a fixed text: a model that ignores the positions and masks that it is given (with ALiBi
    or recurrent layers) goes on from a copy of its state after a long question for each choice, and
    reads a short one again, as it does all where its state cannot be copied. Packed sequences stay
    within the model's length and its attention window. Either way, the scores are those of the
    plain forward pass.

    A prompt that is too long loses its beginning and its item is counted in the notes as
    ``truncated``; questions of which a model can share nothing are counted as ``unpacked``. An
    item is set aside if a choice leaves no token to score, or is longer than the model reads, and
    for
    the reasons of :mod:`evaluation.scorers.readable`. No such item is an example in a prompt.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        prompt: Prompt | None = None,
        pack: bool = True,
    ) -> None:
        """Set the loaded model, on its device and in any dtype, and its tokenizer.

        Args:
            model: from ``AutoModelForCausalLM``; it is put into evaluation mode.
            tokenizer: the checkpoint's.
            prompt: how items are put to the model; by default the question, a space, the choice.
            pack: read a question once for all its choices, if the model allows it.

        Raises:
            UsageError: a chat was asked for and the tokenizer has no chat template, or the model
                is not causal.
            KbprobeError: its scores are not finite.
        """
        super().__init__(tokenizer, prompt)
        self._model = model.eval()
        self._pairs = PairTokenizer(tokenizer)
        text_config = getattr(model.config, "text_config", None) or model.config
        self._max_length = longest_text(text_config, tokenizer, network=model)
        self._window = _window(model.config, self._max_length)
        self._supported = sharing_of(model, self._pairs, self._window)
        self.sharing = self._supported if pack else Sharing.NONE
        """How the choices of a question share its reading."""

    def encode(self, items: Sequence[Item]) -> CausalEncoded:
        """Tokenize all items; see :class:`CausalScorer` for what is set aside or cut.

        Raises:
            UsageError: the prompt cannot hold an item.
        """
        starts = choice_starts(items)
        item_of = np.repeat(np.arange(len(items)), np.diff(starts)).tolist()
        numbers = range(len(items))
        contexts = self._contexts(zip(numbers, items, starts[:-1].tolist(), strict=True))
        tokens = [
            pair
            for start in range(0, len(contexts), _TOKENIZED_AT_ONCE)
            for pair in self._pairs.encode(
                [
                    Rendered(one.context, tuple(one.choices))
                    for one in contexts[start : start + _TOKENIZED_AT_ONCE]
                ]
            )
        ]
        set_aside = self._set_aside(items, item_of, self._reasons(contexts, tokens))
        builder = LayoutBuilder()
        choice_tokens = [0.0] * int(starts[-1])
        truncated: set[int] = set()
        unpacked = 0
        for one, (context, continuations) in zip(contexts, tokens, strict=True):
            # Continuations that stand for a choice, by what they cut off from the context.
            by_cut: dict[int, tuple[list[array[int]], list[list[int]]]] = {}
            for continuation, named in zip(continuations, one.choices.values(), strict=True):
                choices = [choice for choice in named if item_of[choice] not in set_aside]
                for choice in choices:
                    choice_tokens[choice] += one.weight * len(continuation)
                # The last token is predicted but not read, so there is room for one more.
                cut = max(0, len(context) + len(continuation) - (self._max_length + 1))
                if cut:
                    truncated.update(item_of[choice] for choice in choices)
                if choices:
                    ends, stand_for = by_cut.setdefault(cut, ([], []))
                    ends.append(continuation)
                    stand_for.append(choices)
            sequences = 0
            for cut, (ends, stand_for) in by_cut.items():
                kept = context[cut:]
                limit = self._most_tokens(len(kept))
                for tree in grow_trees(kept, ends, limit=limit):
                    builder.add(tree, one.item, ends, stand_for, one.weight)
                    sequences += 1
            unpacked += self._supported is Sharing.NONE and sequences > 1
        self._refuse_unembedded(builder.columns["tokens"], builder.columns["cell_target"])
        counts = {"truncated": len(truncated), "unpacked": unpacked}
        return builder.build(
            np.rint(choice_tokens).astype(np.int64),
            set_aside,
            {note: count for note, count in counts.items() if count},
            forked=self.sharing is Sharing.STATE,
        )

    def score(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        return score_sequences(self._model, encoded, sequences)

    def token_log_probs(self, encoded: CausalEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch; return the log-probability of each of their cells."""
        return cell_log_probs(self._model, encoded, sequences)

    def token_texts(self, tokens: Sequence[int]) -> list[str]:
        """Return tokens as they are in the tokenizer's vocabulary."""
        found = self._tokenizer.convert_ids_to_tokens(list(tokens))
        return [str(one) for one in found]

    def _refuse_unembedded(self, read: TokenIds, predicted: TokenIds) -> None:
        refuse_unembedded(self._model, self._tokenizer, [read], [predicted])

    def _most_tokens(self, question: int) -> int:
        """Return the longest sequence that the choices of a question may share; 0: none."""
        if self.sharing is Sharing.NONE:
            return 0
        if self.sharing is Sharing.STATE and not is_worth_forking(question, self._model.device):
            return 0
        return min(self._window, max(PACK_TOKENS, 2 * question))

    def _reasons(
        self, contexts: Sequence[ContextChoices], tokens: Sequence[PairTokens]
    ) -> dict[int, str]:
        """Return the choices that cannot be scored, and why."""
        reasons: dict[int, str] = {}
        for one, pair in zip(contexts, tokens, strict=True):
            found = zip(one.choices.items(), pair.continuations, strict=True)
            for (text, numbers), continuation in found:
                reason = unknown_candidate(text.strip(), continuation, self._unknown)
                if not continuation:
                    reason = "a choice leaves no token to score after its question"
                elif len(continuation) > self._max_length:
                    reason = aside(
                        "a choice longer than the model reads",
                        f"{len(continuation):,} of at most {self._max_length:,} tokens",
                    )
                elif reason is None:
                    continue
                for number in numbers:
                    reasons.setdefault(number, reason)
        return reasons


def _window(config: PretrainedConfig, max_length: int) -> int:
    """Return the maximum length at which the last token sees all others in every layer."""
    text = getattr(config, "text_config", None) or config
    named = [getattr(text, name, None) for name in _WINDOWS]
    return min([max_length, *(int(size) for size in named if isinstance(size, int) and size > 0)])
