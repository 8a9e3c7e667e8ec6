"""What scorers of log-likelihoods share: items become contexts, and what is scored after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from evaluation.items.types import Item
from evaluation.scorers.base import Scorer, ScorerInputs
from evaluation.scorers.causal.chat import ChatTemplate
from evaluation.scorers.causal.options import CausalOptions
from evaluation.scorers.causal.prompts import Message, Prompt, Rendered
from evaluation.scorers.readable import SpecialTexts, unknown_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PretrainedConfig, PreTrainedTokenizerBase

_LENGTHS = ("n_positions", "max_position_embeddings", "n_ctx")
_DEFAULT_LENGTH = 2048


@dataclass
class ContextChoices:
    """One context, and what is scored after it.

    Attributes:
        item: the first item that has it.
        context: its text.
        weight: what its log-likelihoods count in a choice's score.
        choices: each continuation, and the choices that it stands for, numbered through all items.
    """

    item: int
    context: str
    weight: float
    choices: dict[str, list[int]] = field(default_factory=dict)


class PromptedScorer(Scorer):
    """Scores choices by the log-likelihood of texts after a prompt."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt | None = None) -> None:
        """Take the tokenizer, and how items are put to the model: by default, as they are.

        Raises:
            UsageError: a chat was asked for and the tokenizer has no chat template.
        """
        self._tokenizer = tokenizer
        self.prompt = prompt or Prompt()
        """How items are put to the model."""
        self._chat = ChatTemplate(tokenizer) if self.prompt.chat else None
        self._special, self._unknown = SpecialTexts(tokenizer), unknown_token(tokenizer)

    def score_name(self, items: Sequence[Item]) -> str:
        """Say what a choice's score is."""
        return "log-likelihood of a letter" if self.prompt.letters else "log-likelihood"

    def render(self, item: Item) -> list[tuple[Rendered, float]]:
        """Write an item out: contexts with continuations, and what each counts in the scores.

        A scorer that compares a choice after several contexts overrides this. A context with a
        negative weight is subtracted, and scored once for all items that have it.

        Raises:
            UsageError: the prompt cannot hold the item.
        """
        rendered = self.prompt.render(item, self.to_chat)
        return [(one, 1 / len(rendered)) for one in rendered]

    def to_chat(self, messages: list[Message]) -> str:
        """Write a chat as the tokenizer's template has it; see :class:`ChatTemplate`."""
        self._chat = self._chat or ChatTemplate(self._tokenizer)
        return self._chat.render(messages)

    def _contexts(self, items: Iterable[tuple[int, Item, int]]) -> list[ContextChoices]:
        """Return the distinct contexts of items: (number, item, number of its first choice)."""
        contexts: dict[tuple[str, str], ContextChoices] = {}
        for number, item, first_choice in items:
            for (context, continuations), weight in self.render(item):
                # Clozes of different questions may begin alike; a sequence serves one question.
                # What is subtracted is of no question: all that show a choice share it.
                asked = item.question if weight > 0 else ""
                one = contexts.setdefault((asked, context), ContextChoices(number, context, weight))
                for choice, continuation in enumerate(continuations, start=first_choice):
                    one.choices.setdefault(continuation, []).append(choice)
        return list(contexts.values())


def prompt_of(inputs: ScorerInputs) -> Prompt:
    """Return the prompt of an evaluation, whose options are :class:`CausalOptions`.

    Raises:
        UsageError: the template cannot be read, or there are too few examples.
    """
    options: CausalOptions = inputs.options
    special = SpecialTexts(inputs.tokenizer)
    examples = [item for item in inputs.examples if special.obstacle(item) is None]
    return Prompt.from_options(options, examples, inputs.seed, chat=options.chat)


def longest_text(
    config: PretrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
    names: tuple[str, ...] = _LENGTHS,
) -> int:
    """Return the most tokens that a model reads, found as lm-evaluation-harness finds it."""
    for name in names:
        length = getattr(config, name, None)
        if length is not None:
            return int(length)
    length = tokenizer.model_max_length
    return int(length) if length and length < VERY_LARGE_INTEGER else _DEFAULT_LENGTH
