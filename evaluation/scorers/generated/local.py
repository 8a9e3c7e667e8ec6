"""Scores choices by the answers that a causal language model writes here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import torch

from evaluation.endpoints.chat import Message, Reply
from evaluation.items.types import Item
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.causal.prompted import ChatTemplate, longest_text
from evaluation.scorers.entries import GenerationOptions
from evaluation.scorers.generated.reasoning import is_marker, opened_reasoning
from evaluation.scorers.generated.scorer import Asked, GeneratedEncoded, GeneratedScorer, prompt_of
from evaluation.scorers.readable import SpecialTexts, unreadable_items

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_AT_ONCE = 16
"""Number of prompts that are answered together."""


class LocalScorer(GeneratedScorer):
    """Scores choices by answers that are decoded greedily.

    A chat ends where the model ends its turn; without a chat template an answer is the first line.
    A prompt that leaves no room for an answer has none.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        options: GenerationOptions,
        examples: Sequence[Item] = (),
        seed: int = 0,
    ) -> None:
        """Set the loaded model, on its device, its tokenizer, and how items are asked.

        Raises:
            UsageError: a chat was asked for and the tokenizer has no chat template.
        """
        special = SpecialTexts(tokenizer)
        examples = [item for item in examples if special.obstacle(item) is None]
        prompt = prompt_of(options, examples, seed, chat=options.chat)
        super().__init__(prompt, options)
        self._model, self._tokenizer = model.eval(), tokenizer
        self._template = ChatTemplate(tokenizer, options.chat_date) if options.chat else None
        added: dict[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
        self._specials = {at for at, token in added.items() if token.special}
        self._markers = {at for at in self._specials if is_marker(str(added[at].content))}
        text_config = getattr(model.config, "text_config", None) or model.config
        self._longest = longest_text(text_config, tokenizer)

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are :class:`GenerationOptions`."""
        return cls(*inputs)

    def encode(self, items: Sequence[Item]) -> GeneratedEncoded:
        """Render all prompts; see :mod:`evaluation.scorers.readable` for what is set aside."""
        encoded = super().encode(items)
        return replace(encoded, set_aside=dict(unreadable_items(items, self._tokenizer)))

    def chat_text(self, messages: list[Message]) -> str:
        """Return a chat as its template writes it."""
        assert self._template is not None
        return self._template.render(messages)

    def estimated_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return how many tokens each prompt has."""
        return [len(ids) for ids in self._ids(prompts)]

    def replies(self, asked: Sequence[Asked]) -> list[Reply]:
        """Get answers to some prompts, those of similar length together."""
        ids = self._ids([one.prompt for one in asked])
        room = self._longest - self.max_tokens
        found = {at: Reply("", len(own), True) for at, own in enumerate(ids) if len(own) > room}
        todo = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        todo = [at for at in todo if at not in found]
        for start in range(0, len(todo), _AT_ONCE):
            some = todo[start : start + _AT_ONCE]
            for at, reply in zip(some, self._written([ids[at] for at in some]), strict=True):
                opened = opened_reasoning(asked[at].prompt) if self._template else ""
                found[at] = reply._replace(text=opened + reply.text)
        return [found[at] for at in range(len(ids))]

    def _ids(self, prompts: Sequence[str]) -> list[list[int]]:
        """Tokenize prompts, with special tokens unless a chat template has written them."""
        if not prompts:
            return []
        written = str(self._tokenizer.bos_token or "\0")
        ids: list[list[int]] = self._tokenizer(
            list(prompts),
            add_special_tokens=not prompts[0].startswith(written),
            verbose=False,
        )["input_ids"]
        return ids

    @torch.inference_mode()
    def _written(self, ids: Sequence[Sequence[int]]) -> list[Reply]:
        """Decode the answers to some prompts."""
        longest, device = max(map(len, ids)), self._model.device
        padding = [[0] * (longest - len(own)) for own in ids]
        inputs = [[*pad, *own] for pad, own in zip(padding, ids, strict=True)]
        shown = [[*pad, *[1] * len(own)] for pad, own in zip(padding, ids, strict=True)]
        ends = self._ends()
        further: dict[str, Any] = {}
        if self._template is None:
            further = {"stop_strings": ["\n"], "tokenizer": self._tokenizer}
        written = self._model.generate(
            torch.tensor(inputs, device=device),
            attention_mask=torch.tensor(shown, device=device),
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            max_new_tokens=self.max_tokens,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,
            **further,
        )[:, longest:].tolist()
        replies = []
        for own, new in zip(ids, written, strict=True):
            stop = next((at for at, token in enumerate(new) if token in ends), len(new))
            text = self._text(new[:stop])
            first, line_end, _ = text.partition("\n")
            ended = stop < len(new) or (self._template is None and bool(line_end))
            text = first if self._template is None else text
            replies.append(Reply(text, len(own) + stop, not ended and stop >= self.max_tokens))
        return replies

    def _text(self, ids: Sequence[int]) -> str:
        """Decode an answer without special tokens, other than those that mark reasoning."""
        if self._markers.isdisjoint(ids):
            return str(self._tokenizer.decode(ids, skip_special_tokens=True))
        dropped = self._specials - self._markers
        kept = [token for token in ids if token not in dropped]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))

    def _ends(self) -> list[int]:
        """Return the tokens that end an answer."""
        known = getattr(self._model.generation_config, "eos_token_id", None)
        ends = known if isinstance(known, list) else [known]
        return sorted({one for one in (*ends, self._tokenizer.eos_token_id) if one is not None})
