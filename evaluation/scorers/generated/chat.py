"""Scores choices by the answers of a chat model behind an endpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from evaluation.endpoints.chat import Reply
from evaluation.items.types import Item
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.entries import ChatOptions
from evaluation.scorers.generated.scorer import GeneratedEncoded, GeneratedScorer, prompt_of

if TYPE_CHECKING:
    from evaluation.endpoints.chat import ChatEndpoint, Message


class ChatScorer(GeneratedScorer):
    """Scores choices by answers in a chat; an answer is sent for once, and kept."""

    divisible = False  # Answers are kept one by one, and all prompts are counted beforehand.

    def __init__(
        self, endpoint: ChatEndpoint, options: ChatOptions, examples: Sequence[Item], seed: int
    ) -> None:
        """Set the endpoint, and how items are asked."""
        super().__init__(prompt_of(options, examples, seed, chat=True), options)
        self._endpoint, self._wanted = endpoint, options.answers

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are :class:`ChatOptions`."""
        return cls(inputs.model, inputs.options, inputs.examples, inputs.seed)

    @property
    def by_probability(self) -> bool:
        """Whether choices get the probabilities of their letters."""
        return self._endpoint.gives_letters(self._wanted, self.max_tokens)

    def encode(self, items: Sequence[Item]) -> GeneratedEncoded:
        """Render all prompts, and report how many are to be sent."""
        encoded = super().encode(items)
        prompts = {one.prompt for own in encoded.asked for one in own}
        known = self._endpoint.known
        left = [one for one in prompts if known(one, self._wanted, self.max_tokens) is None]
        self._endpoint.announce(
            self.estimated_tokens(left), len(prompts) - len(left), self.max_tokens
        )
        return encoded

    def chat_text(self, messages: list[Message]) -> str:
        """Return a chat as JSON."""
        return json.dumps(messages)

    def estimated_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return about how many tokens each prompt has."""
        return [self._endpoint.estimated_tokens(prompt) for prompt in prompts]

    def replies(self, prompts: Sequence[str]) -> list[Reply]:
        """Have some prompts answered; only new ones are sent.

        Raises:
            KbprobeError: the endpoint returns no usable answers, or the budget is spent.
        """
        endpoint, wanted, most = self._endpoint, self._wanted, self.max_tokens
        known = partial(endpoint.known, wanted=wanted, max_tokens=most)
        send = partial(endpoint.replies, wanted=wanted, max_tokens=most)
        return endpoint.answered(prompts, known, send, str)
