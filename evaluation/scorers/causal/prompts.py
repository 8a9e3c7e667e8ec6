"""Prompts for causal models: an item becomes a context and a continuation for each choice.

The default is that of lm-evaluation-harness for multiple choice: the question, one space, the
choice; each example before it is followed by an empty line. A cloze is read as the sentence with
the choice filled in: the text before the mask is the context, the choice and the rest are scored.
The shared text *before* the mask cancels when choices are compared; the text after the mask does
not, since it may fit one choice better than another.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from evaluation.items.orders import LETTERS, Order, drawn_permutation, several_orders
from evaluation.items.types import Item
from evaluation.options import CHAT_DATE
from evaluation.scorers.causal.options import NeutralOptions, PromptOptions
from kbprobe.errors import UsageError
from kbprobe.format.setups import MASK

QUESTION_TEMPLATE = "{question}"
LETTERS_TEMPLATE = "Question: {question}\n{choices}\nAnswer:"

BLANK = "____"
"""The text shown in place of a cloze's gap."""

_BETWEEN_EXAMPLES = "\n\n"

Message = dict[str, str]
"""One turn of a chat: ``role`` and ``content``."""

ToChat = Callable[[list[Message]], str]
"""Renders a chat as text, up to where the model's answer begins."""


class Rendered(NamedTuple):
    """A context and, for each choice of the item in order, the continuation that is scored."""

    context: str
    continuations: tuple[str, ...]


class _QuestionText(NamedTuple):
    """An item's own text: the given text, and what each choice adds, without the space between."""

    text: str
    endings: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True)
class Prompt:
    """How items are put to a causal model, as options say.

    Models prefer some letters to others: unless a lettered prompt names one order, each item is
    asked in several, by default in every rotation of its choices, and a choice's score is the mean
    over them. The choices of examples keep their order. The examples of a question depend only on
    the seed, the question and the set of examples, not on the order of items; items that ask the
    same question get the same examples. None of these asks that question itself.

    Attributes:
        options: the template, letters, orders and examples; a neutral text, if they have one, takes
            the place of the question, after which choices are scored as well, without examples:
            that is subtracted.
        examples: the items from which examples are drawn: the train split.
        seed: the seed of the draw, unless the options name another one.
        chat: put the question into the tokenizer's chat template, as the user's turn; the choice
            is the answer and follows without a space.
        chat_date: the day that is today to the chat template.
    """

    options: PromptOptions = field(default_factory=PromptOptions)
    examples: Sequence[Item] = ()
    seed: int = 0
    chat: bool = False
    chat_date: str = CHAT_DATE

    def __post_init__(self) -> None:
        """Check the template's fields and the number of examples; raises ``UsageError``."""
        letters, shots = self.options.letters, self.options.shots
        check_template(self._template, letters=letters)
        if self.options.orders is not None and not letters:
            raise UsageError("--orders shows lettered choices in orders: give --letters as well")
        if self._neutral is not None and letters:
            raise UsageError(
                "--letters (and the study orders, which sets it) scores the letters of choices, "
                "and --scorer pmi or endpoint_pmi their texts: leave one out"
            )
        if shots and len(self._pool) <= shots:
            raise UsageError(
                f"--shots {shots} needs more than {shots} distinct questions in the "
                f"train split, which has {len(self._pool)}. Ask for fewer, or score without."
            )

    def render(self, item: Item, to_chat: ToChat | None = None) -> list[Rendered]:
        """Render an item: once, or in each order in which its lettered choices are shown.

        ``to_chat``, the tokenizer's chat template, is used if ``chat`` is set.

        Raises:
            UsageError: the item does not fit this prompt.
        """
        shots = [(self._question_text(shot), shot.answer) for shot in self._draw(item.question)]
        texts = [self._question_text(item, shown) for shown in self.shown_orders(item)]
        if self.chat and to_chat is not None:
            return [_as_chat(shots, question, to_chat) for question in texts]
        return [_as_text(shots, question) for question in texts]

    def weighted(self, item: Item, to_chat: ToChat | None = None) -> list[tuple[Rendered, float]]:
        """Render an item, and say what each log-likelihood counts in the score of its choice."""
        rendered = self.render(item, to_chat)
        weighted = [(one, 1 / len(rendered)) for one in rendered]
        if self._neutral is not None:
            bare = replace(self, options=self.options.model_copy(update={"shots": 0}))
            (alone,) = bare.render(replace(item, question=self._neutral), to_chat)
            weighted.append((alone, -1.0))
        return weighted

    @property
    def score_name(self) -> str:
        """What a choice's score is."""
        if self._neutral is not None:
            return "pointwise mutual information"
        return "log-likelihood of a letter" if self.options.letters else "log-likelihood"

    @cached_property
    def order(self) -> Order | None:
        """The only order of lettered choices; None: there are several."""
        return None if self.options.order is None else Order.parse(self.options.order)

    @property
    def _neutral(self) -> str | None:
        return self.options.neutral if isinstance(self.options, NeutralOptions) else None

    @property
    def _template(self) -> str:
        if self.options.prompt is not None:
            return parse_template(self.options.prompt)
        return LETTERS_TEMPLATE if self.options.letters else QUESTION_TEMPLATE

    def shown_orders(self, item: Item) -> Sequence[Sequence[int]]:
        """Return every order in which an item is asked, as the choice in each place."""
        size = len(item.choices)
        if not self.options.letters:
            return [range(size)]
        if self.order is not None:
            return [self.order.places(item.id, size)]
        return several_orders(item.id, size, self.options.orders)

    def _question_text(self, item: Item, shown: Sequence[int] | None = None) -> _QuestionText:
        """Return an item's own text, with choices in the order ``shown`` (None: as they are)."""
        letters = self.options.letters
        if item.setup == "mc_mlm" and not letters:
            return self._cloze(item)
        if not letters:
            return _QuestionText(self._template.format(question=item.question), item.choices, " ")
        size = len(item.choices)
        if size > len(LETTERS):
            raise UsageError(
                f"item {item.id} has {size} choices and there are {len(LETTERS)} letters: "
                "score it without --letters"
            )
        shown = range(size) if shown is None else shown
        named = dict(zip(shown, LETTERS, strict=False))
        lines = [f"{letter}. {item.choices[choice]}" for choice, letter in named.items()]
        text = self._template.format(
            question=item.question.replace(MASK, BLANK), choices="\n".join(lines)
        )
        return _QuestionText(text, tuple(named[choice] for choice in range(size)), " ")

    def _cloze(self, item: Item) -> _QuestionText:
        if self.chat or self._template != QUESTION_TEMPLATE:
            raise UsageError(
                f"item {item.id} is a cloze, which is scored as the filled-in sentence: a chat or "
                "a prompt of one's own has no place for it. Add --letters, or leave them out."
            )
        before, mask, after = item.question.partition(MASK)
        if not mask or MASK in after:
            raise UsageError(f"item {item.id} must hold exactly one {MASK}: {item.question!r}")
        return _QuestionText(before, tuple(choice + after for choice in item.choices), "")

    @cached_property
    def _pool(self) -> list[list[Item]]:
        """The examples by question, in an order that depends only on their texts and ids."""
        by_question: dict[str, list[Item]] = {}
        for item in sorted(self.examples, key=lambda item: (item.question, item.id)):
            by_question.setdefault(item.question, []).append(item)
        return list(by_question.values())

    def _draw(self, question: str) -> list[Item]:
        options, drawn, attempt = self.options, dict[str, Item](), 0
        seed = self.seed if options.shots_seed is None else options.shots_seed
        while len(drawn) < options.shots:
            number = _hashed(seed, question, attempt)
            group = self._pool[number % len(self._pool)]
            example = group[number // len(self._pool) % len(group)]
            if example.question != question:
                drawn.setdefault(example.question, example)
            attempt += 1
        examples = list(drawn.values())
        if options.shots_order is None:
            return examples
        keys = ("order of examples", str(options.shots_order), question)
        return [examples[at] for at in drawn_permutation(len(examples), *keys)]


def parse_template(text: str) -> str:
    r"""Read a template from the command line, where ``\n`` is written for a line break.

    >>> parse_template(r"Q: {question}\nA:")
    'Q: {question}\nA:'
    """
    return text.replace("\\n", "\n")


def check_template(template: str, *, letters: bool) -> None:
    """Check that a template has all required fields, and no others.

    Raises:
        UsageError: a field is missing or unknown.
    """
    expected = {"question", "choices"} if letters else {"question"}
    example = LETTERS_TEMPLATE if letters else "Q: {question}\nA:"
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError as error:
        raise UsageError(f"--prompt {template!r} cannot be read: {error}") from error
    plain = all(not spec and not conversion for _, name, spec, conversion in fields if name)
    if not plain or {name for _, name, _, _ in fields if name is not None} != expected:
        named = " and ".join(f"{{{name}}}" for name in sorted(expected, reverse=True))
        raise UsageError(
            f"--prompt {template!r} must hold {named} and nothing else in braces, such as "
            f"{example!r}. A brace itself is written twice."
        )


def _as_text(shots: Sequence[tuple[_QuestionText, int]], question: _QuestionText) -> Rendered:
    answered = "".join(
        shot.text + shot.delimiter + shot.endings[answer] + _BETWEEN_EXAMPLES
        for shot, answer in shots
    )
    continuations = tuple(question.delimiter + ending for ending in question.endings)
    return Rendered(answered + question.text, continuations)


def _as_chat(
    shots: Sequence[tuple[_QuestionText, int]], question: _QuestionText, to_chat: ToChat
) -> Rendered:
    messages: list[Message] = []
    for shot, answer in shots:
        messages.append({"role": "user", "content": shot.text})
        messages.append({"role": "assistant", "content": shot.endings[answer]})
    messages.append({"role": "user", "content": question.text})
    return Rendered(to_chat(messages), question.endings)


def _hashed(seed: int, question: str, attempt: int) -> int:
    text = f"{seed}\0{attempt}\0{question}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
