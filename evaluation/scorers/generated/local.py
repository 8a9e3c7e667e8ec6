"""Scores choices by the answers that a causal language model writes here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import cached_property
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Self

import torch

from evaluation.endpoints.chat import ChatReply, Message
from evaluation.items.types import Item
from evaluation.models.loading import refuse_unembedded
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.batching import out_of_memory
from evaluation.scorers.causal.forward import sharing_of
from evaluation.scorers.causal.layout import PairTokenizer
from evaluation.scorers.causal.prompted import ChatTemplate, longest_text
from evaluation.scorers.entries import GenerationOptions
from evaluation.scorers.generated.reasoning import is_marker, opened_reasoning
from evaluation.scorers.generated.scorer import (
    GeneratedEncoded,
    GeneratedScorer,
    PromptedQuestion,
    Replies,
    prompt_of,
)
from evaluation.scorers.likelihoods import TOLERANCES
from evaluation.scorers.readable import SpecialTexts, unreadable_items

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_AT_ONCE = 16
"""Number of prompts that are answered together."""
_TRIAL = (
    "The capital of a country is the city where its government meets, and so",
    "A city by the sea is",
)
_TRIAL_TOKENS = 3


class Decoding(Enum):
    """How a model's answers are decoded: the first way that gives those of plain passes."""

    PADDED = auto()
    """Several prompts together, padded on the left."""
    ALONE = auto()
    """One at a time: the model reads padding, or mixes up the states of several texts."""
    PLAIN = auto()
    """Those of one length together, each token by a pass over the whole text: the model's own way
    of continuing a text gives other tokens, as it counts positions from another number."""


class LocalScorer(GeneratedScorer):
    """Scores choices by answers that are decoded greedily.

    A chat ends where the model ends its turn; without a chat template an answer is the first line.
    A prompt that leaves no room for an answer has none. An answer is that of plain passes over its
    prompt alone: how a model allows that to be computed is tested once (:class:`Decoding`).
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
            UsageError: a chat was asked for and the tokenizer has no chat template, or the
                tokenizer ends every text with a token that cannot be left out.
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
        self._longest = longest_text(text_config, tokenizer, network=model)
        self._pairs = PairTokenizer(tokenizer)

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

    def replies_to(self, asked: Sequence[PromptedQuestion]) -> Replies:
        """Return :meth:`replies`."""
        return self.replies

    def replies(self, asked: Sequence[PromptedQuestion]) -> list[ChatReply]:
        """Get answers to some prompts, those of similar length together."""
        ids = self._ids([one.prompt for one in asked])
        room = self._longest - self.max_tokens
        found = {at: ChatReply("", len(own), True) for at, own in enumerate(ids) if len(own) > room}
        todo = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        todo = [at for at in todo if at not in found]
        for some in self._together(todo, ids):
            for at, reply in zip(some, self._written([ids[at] for at in some]), strict=True):
                opened = opened_reasoning(asked[at].prompt) if self._template else ""
                found[at] = reply._replace(text=opened + reply.text)
        return [found[at] for at in range(len(ids))]

    def _ids(self, prompts: Sequence[str]) -> list[list[int]]:
        """Tokenize prompts; see :class:`evaluation.scorers.causal.layout.TextTokenizer`."""
        ids = self._pairs.texts(prompts)
        refuse_unembedded(self._model, self._tokenizer, list(ids.values()))
        return [list(ids[prompt]) for prompt in prompts]

    def _together(
        self, todo: Iterable[int], ids: Sequence[Sequence[int]]
    ) -> Iterator[Sequence[int]]:
        """Divide prompts, sorted by length, into those that are answered together."""
        decoding = self._decoding
        size = 1 if decoding is Decoding.ALONE else _AT_ONCE
        for _, group in groupby(todo, lambda at: len(ids[at]) * (decoding is Decoding.PLAIN)):
            while some := list(islice(group, size)):
                yield some

    @cached_property
    def _decoding(self) -> Decoding:
        """How answers are decoded, tested on fixed texts.

        Raises:
            UsageError: the model is not causal.
            KbprobeError: its scores are not finite, or it cannot run here.
        """
        sharing_of(self._model, self._pairs, self._longest)
        room = max(1, self._longest - _TRIAL_TOKENS)
        trial = [own[:room] for own in self._ids(_TRIAL)]
        ways = {Decoding.PADDED: [trial], Decoding.ALONE: [[own] for own in trial]}
        for decoding, batches in ways.items():
            try:
                if all(map(self._continues_as_plainly, batches)):
                    return decoding
            except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
                # Raised by models that have no way of their own to continue a text.
                if out_of_memory(error):
                    raise
        return Decoding.PLAIN

    @torch.inference_mode()
    def _continues_as_plainly(self, ids: Sequence[Sequence[int]]) -> bool:
        """Return whether tokens are predicted as in a plain pass over each text alone."""
        found = self._generated(
            ids,
            max_new_tokens=_TRIAL_TOKENS,
            eos_token_id=None,
            output_logits=True,
            return_dict_in_generate=True,
        )
        coarse = TOLERANCES[torch.bfloat16]
        quantized = getattr(self._model, "is_quantized", False)
        allowed = coarse if quantized else TOLERANCES.get(self._model.dtype, coarse)
        logits = torch.stack(found.logits, dim=1).float().log_softmax(-1)
        new = found.sequences[:, -_TRIAL_TOKENS:].tolist()
        for own, written, predicted in zip(ids, new, logits, strict=True):
            tokens = torch.tensor([[*own, *written]], device=self._model.device)
            plain = self._model(input_ids=tokens, use_cache=False).logits[0].float()
            plain = plain[len(own) - 1 : -1].log_softmax(-1)
            if not bool((plain - predicted).abs().mean() <= allowed):
                return False
        return True

    def _generated(self, ids: Sequence[Sequence[int]], **options: Any) -> Any:
        """Decode greedily by the model's own method."""
        longest, device = max(map(len, ids)), self._model.device
        padding = [[0] * (longest - len(own)) for own in ids]
        inputs = [[*pad, *own] for pad, own in zip(padding, ids, strict=True)]
        shown = [[*pad, *[1] * len(own)] for pad, own in zip(padding, ids, strict=True)]
        generate: Any = self._model.generate
        return generate(
            torch.tensor(inputs, device=device),
            attention_mask=torch.tensor(shown, device=device),
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            **options,
        )

    def _plainly_generated(self, ids: Sequence[Sequence[int]], ends: Sequence[int]) -> torch.Tensor:
        """Decode greedily by plain passes over prompts of one length."""
        tokens = torch.tensor(ids, device=self._model.device)
        length, ended = tokens.shape[1], [False] * len(ids)
        while tokens.shape[1] < length + self.max_tokens and not all(ended):
            new = self._model(input_ids=tokens, use_cache=False).logits[:, -1].argmax(-1)
            new[torch.tensor(ended, device=new.device)] = ends[0] if ends else 0
            tokens = torch.cat([tokens, new[:, None]], dim=1)
            ended = [
                not {*ends}.isdisjoint(own)
                or (self._template is None and "\n" in str(self._tokenizer.decode(own)))
                for own in tokens[:, length:].tolist()
            ]
        return tokens

    @torch.inference_mode()
    def _written(self, ids: Sequence[Sequence[int]]) -> list[ChatReply]:
        """Decode the answers to some prompts."""
        longest, ends = max(map(len, ids)), self._ends()
        if self._decoding is Decoding.PLAIN:
            tokens = self._plainly_generated(ids, ends)
        else:
            line = {"stop_strings": ["\n"], "tokenizer": self._tokenizer}
            tokens = self._generated(
                ids,
                max_new_tokens=self.max_tokens,
                eos_token_id=ends or None,
                pad_token_id=ends[0] if ends else 0,
                **(line if self._template is None else {}),
            )
        written = tokens[:, longest:].tolist()
        replies = []
        for own, new in zip(ids, written, strict=True):
            stop = next((at for at, token in enumerate(new) if token in ends), len(new))
            text = self._text(new[:stop])
            first, line_end, _ = text.partition("\n")
            ended = stop < len(new) or (self._template is None and bool(line_end))
            text = first if self._template is None else text
            replies.append(ChatReply(text, len(own) + stop, not ended and stop >= self.max_tokens))
        return replies

    def _text(self, ids: list[int]) -> str:
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
