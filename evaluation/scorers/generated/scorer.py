r"""Scores choices by the answers that a model writes when it is shown them with letters.

Which choice an answer names is read strictly, or not at all (:func:`read_choice`). Accepted are, in
this order, a JSON object with a letter as its ``answer``; a boxed letter; the letter or the
choice's text after "answer is" or "Answer:"; an answer that is a letter or the text of a choice;
and one with a line that begins with a letter as lists do (``B.``, ``(B)``, ``**B**``). Of boxes and
statements the last counts, since models reason first. An answer that names several choices names
none. Marked reasoning is no part of the answer (:mod:`evaluation.scorers.generated.reasoning`).
"""

from __future__ import annotations

import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import NamedTuple, Self

import numpy as np

from evaluation.endpoints.chat import ANSWER, Chat, ChatEndpoint, ChatReply, Message
from evaluation.endpoints.served import SentPrompts
from evaluation.items.orders import LETTERS
from evaluation.items.types import Item, choice_starts
from evaluation.results.analyses.generated import UNREAD, Answer
from evaluation.scorers.base import Encoded, Scorer, ScorerInputs, aside, row_sequences
from evaluation.scorers.batching import longest_first
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.entries import ChatOptions, GenerationOptions
from evaluation.scorers.generated.reasoning import without_reasoning
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError
from kbprobe.parsing import json_value

INSTRUCTED = "Question: {question}\n{choices}\nAnswer with the letter of the right choice alone."
"""The default prompt of a chat."""


class PromptedQuestion(NamedTuple):
    """A question as it is put to a model.

    Attributes:
        prompt: the text that is sent or read.
        messages: the conversation that it is made of, as JSON; without a chat one message.
        shown: the choice that each letter names.
    """

    prompt: str
    messages: str
    shown: Sequence[int]


Replies = Callable[[Sequence[PromptedQuestion]], Sequence[ChatReply]]


@dataclass(frozen=True, kw_only=True)
class GeneratedEncoded(Encoded):
    """A sequence for each item: its prompts, one in each order.

    ``lengths``, ``set_aside``, ``notes`` and ``answers`` are filled in when answers arrive, which
    ``replies`` gets.
    """

    asked: Sequence[Sequence[PromptedQuestion]]
    replies: Replies
    choices: Sequence[Sequence[str]]
    set_aside: dict[int, str]
    notes: dict[str, int]
    answers: list[Sequence[Answer]]


class GeneratedScorer(Scorer):
    """Scores choices by written answers.

    Each item is asked in several orders of its choices. An order gives a choice the share 1 if the
    answer names it, or the probability of its letter among the letters, where these are known. A
    choice's score is the log of its mean share over the orders whose answer could be read; an item
    without any is set aside.
    """

    def __init__(self, prompt: Prompt, options: GenerationOptions) -> None:
        """Set how items are asked, the system prompt, and the maximum length of an answer."""
        self.prompt, self.max_tokens = prompt, options.max_tokens
        self._system = options.system

    @property
    def by_probability(self) -> bool:
        """Whether choices get the probabilities of their letters."""
        return False

    @abstractmethod
    def chat_text(self, messages: list[Message]) -> str:
        """Return a chat as the text that identifies it, and that is sent or read."""

    def asked(self, item: Item) -> list[PromptedQuestion]:
        """Return an item's prompts, one for each order in which its choices are shown."""
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        chats: list[str] = []

        def to_chat(messages: list[Message]) -> str:
            chats.append(json.dumps([*system, *messages]))
            return self.chat_text([*system, *messages])

        prompts = [one.context for one in self.prompt.render(item, to_chat)]
        chats = chats or [json.dumps([{"role": "user", "content": one}]) for one in prompts]
        return list(map(PromptedQuestion, prompts, chats, self.prompt.shown_orders(item)))

    @abstractmethod
    def estimated_tokens(self, prompts: Sequence[str]) -> Sequence[int]:
        """Return about how many tokens each prompt has."""

    @abstractmethod
    def replies_to(self, asked: Sequence[PromptedQuestion]) -> Replies:
        """Return what gets answers to some of these prompts, about in their order."""

    def encode(self, items: Sequence[Item]) -> GeneratedEncoded:
        """Render all prompts.

        Raises:
            UsageError: an item does not fit the prompt.
        """
        asked = [self.asked(item) for item in items]
        estimates = self.estimated_tokens([one.prompt for own in asked for one in own])
        counts = np.array([len(own) for own in asked], dtype=np.int64)
        rows = np.repeat(np.arange(len(items)), counts)
        lengths = np.bincount(rows, weights=estimates, minlength=len(items)).astype(np.int64)
        ones = np.ones(int(choice_starts(items)[-1]), dtype=np.int64)
        sequences = row_sequences(items, lengths + counts * self.max_tokens, ones)
        order = longest_first(sequences["lengths"])
        return GeneratedEncoded(
            **sequences,
            asked=asked,
            replies=self.replies_to([one for at in order for one in asked[at]]),
            choices=[item.choices for item in items],
            set_aside={},
            notes={},
            answers=[()] * len(items),
        )

    def score(self, encoded: GeneratedEncoded, sequences: Ints) -> Floats:
        """Get answers to some items in all their orders; see :meth:`Scorer.score`."""
        coming = iter(encoded.replies([one for at in sequences for one in encoded.asked[at]]))
        scores = []
        for item in sequences.tolist():
            replies = [next(coming) for _ in encoded.asked[item]]
            found, shares = zip(
                *(
                    self._read(reply, one, encoded.choices[item])
                    for one, reply in zip(encoded.asked[item], replies, strict=True)
                ),
                strict=True,
            )
            encoded.answers[item] = found
            encoded.lengths[item] = sum(reply.tokens for reply in replies)
            if filtered := sum(reply.filtered for reply in replies):
                encoded.notes["filtered"] = encoded.notes.get("filtered", 0) + filtered
            total = np.sum(shares, axis=0)
            if all(answer.choice == UNREAD for answer in found):
                shown = next((one.text for one in found if one.text.strip()), "")
                encoded.set_aside[item] = aside("no answer names one choice", repr(shown.strip()))
                total += 1  # it is not compared
            with np.errstate(divide="ignore"):
                scores.append(np.log(total / total.sum()))
        return np.concatenate(scores)

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is."""
        if self.by_probability:
            return "log of the mean probability of a letter"
        return "log of the share of written answers"

    def _read(
        self, reply: ChatReply, asked: PromptedQuestion, choices: Sequence[str]
    ) -> tuple[Answer, Floats]:
        """Read an answer to a question; return it with the share of each choice."""
        shown = asked.shown
        shares, mass = np.zeros(len(choices)), None
        if self.by_probability:
            own = np.array(letter_shares(reply.first or {}, len(choices)))
            mass = float(own.sum())
            best = np.flatnonzero(own == own.max())
            place = int(best[0]) if len(best) == 1 else None
            if place is not None:
                shares[list(shown)] = own / mass
        else:
            named = [choices[choice] for choice in shown]
            place = read_choice(reply.text, named, cut=reply.cut or reply.filtered)
            if place is not None:
                shares[shown[place]] = 1.0
        choice = UNREAD if place is None else int(shown[place])
        order = "".join(LETTERS[one] for one in shown)
        return Answer(order, asked.messages, reply.text, choice, reply.cut, mass), shares


def prompt_of(
    options: GenerationOptions, examples: Sequence[Item], seed: int, *, chat: bool
) -> Prompt:
    """Return the prompt for some options; by default a chat's prompt says how to answer."""
    text = INSTRUCTED if chat and options.prompt is None else options.prompt
    lettered = options.model_copy(update={"letters": True, "prompt": text})
    return Prompt(lettered, examples, seed, chat)


class ChatScorer(GeneratedScorer):
    """Scores choices by answers in a chat; each answer is requested once, and kept."""

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

    def score(self, encoded: GeneratedEncoded, sequences: Ints) -> Floats:
        """Get answers to some items, and count those that are not the object that was asked for."""
        scores = super().score(encoded, sequences)
        if self._wanted == "json":
            texts = [answer.text for at in sequences for answer in encoded.answers[at]]
            if other := sum(_object_letter(text) is None for text in texts):
                encoded.notes["unstructured"] = encoded.notes.get("unstructured", 0) + other
        return scores

    def chat_text(self, messages: list[Message]) -> str:
        """Return a chat as JSON."""
        return json.dumps(messages)

    def estimated_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return about how many tokens each prompt has."""
        return [self._endpoint.estimated_tokens(prompt) for prompt in prompts]

    def replies_to(self, asked: Sequence[PromptedQuestion]) -> Replies:
        """Report how many prompts are to be sent; return what sends new ones, and gets answers.

        Getting answers raises KbprobeError if the endpoint returns no usable ones, or the budget is
        spent.
        """
        endpoint, wanted, most = self._endpoint, self._wanted, self.max_tokens
        known = partial(endpoint.known, wanted=wanted, max_tokens=most)
        send = partial(endpoint.replies, wanted=wanted, max_tokens=most)
        chats = {_chat(one): None for one in asked}
        sent = SentPrompts(endpoint, chats, known, send, attrgetter("messages"))
        todo = self.estimated_tokens([chat.messages for chat in sent.waiting])
        endpoint.announce(todo, len(chats) - len(todo), most)
        return lambda asked: sent.answers(map(_chat, asked))


def _chat(asked: PromptedQuestion) -> Chat:
    return Chat(asked.prompt, len(asked.shown))


_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\(?:text|textbf|mathrm|mathbf)\s*\{)?\s*\(?([A-Za-z])\b")
_STATED = re.compile(r"\banswer(?:\s+is\b|\s*:)[\s:*]*", re.IGNORECASE)
_FIRST_STATED = re.compile(rf"[\W_]*(?:\w+\s+){{0,2}}{_STATED.pattern}", re.IGNORECASE)
"""A statement with which an answer begins."""
_LETTER = re.compile(r"(?:(?:option|choice|letter)\s+)?[*_(\[\"'“]*([A-Z])", re.IGNORECASE)
_AFTER_LETTER = re.compile(r"[)\]*_\"'”.,;:!]|\s*$|\s+(?:because|since|as)\b")
"""What must follow a letter: "the answer is a dog" names none."""
_LISTED = re.compile(r"^[\s*_(\[\"'“]*([A-Z])[)\]*_\"'”.:]+(?:\s+(.*))?$", re.MULTILINE)
_ONE_LETTER = re.compile("[A-Za-z]")
_FENCE = re.compile(r"```\w*+(.*)```", re.DOTALL)  # takes linear time, whatever a model repeats
_LONE = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


def read_choice(text: str, choices: Sequence[str], *, cut: bool = False) -> int | None:
    r"""Return the place of the choice that an answer names; None if it names none, or several.

    What is stated after the beginning of an answer that was ``cut`` is not read: the model was
    still reasoning.

    >>> shown = ["a dog", "a river", "a city"]
    >>> [read_choice(text, shown) for text in ("B", "(b).", "**C. a city**", "A river", "a dog")]
    [1, 1, 2, 1, 0]
    >>> read_choice("A robin is no dog. So the answer is \\boxed{B}.", shown)
    1
    >>> read_choice('```json\n{"answer": "b"}\n```', shown)
    1
    >>> [read_choice(text, shown) for text in ("A dog or a river", "A. a dog\nB. a river", "D")]
    [None, None, None]
    """
    if (letter := _object_letter(text)) is not None:
        return _place(letter, choices)
    answer = without_reasoning(text)
    if boxed := _BOXED.findall(answer):
        return _place(boxed[-1], choices)
    if stated := list(_STATED.finditer(answer)):
        if cut and not _FIRST_STATED.match(answer):
            return None
        said = answer[stated[0 if cut else -1].end() :].partition("\n")[0]
        named_letter = _LETTER.match(said)
        if named_letter and _AFTER_LETTER.match(said, named_letter.end()):
            return _place(named_letter[1], choices)
        return _only(_named(said, choices))
    if lone := _LONE.fullmatch(answer):
        return _place(lone[1], choices)
    if named := _named(answer, choices):
        return _only(named)
    listed: set[int | None] = set()
    for letter, rest in _LISTED.findall(answer):
        place, same = _place(letter, choices), _named(rest, choices)
        listed |= {place} if place in same else {place, *same}
    return _only(listed)


def _object_letter(text: str) -> str | None:
    """Return the letter of an answer that is the object which a schema admits.

    It may stand in a code fence, and the letter may be a small one.
    """
    answer = without_reasoning(text)
    fenced = _FENCE.fullmatch(answer)
    try:
        found = json_value(fenced[1] if fenced else answer, "an answer")
    except UsageError:
        return None
    letter = found.get(ANSWER) if isinstance(found, dict) and len(found) == 1 else None
    return letter if isinstance(letter, str) and _ONE_LETTER.fullmatch(letter) else None


def _only(places: set[int] | set[int | None]) -> int | None:
    return next(iter(places)) if len(places) == 1 else None


def _place(letter: str, choices: Sequence[str]) -> int | None:
    place = LETTERS.find(letter.upper())
    return place if 0 <= place < len(choices) else None


def _named(said: str, choices: Sequence[str]) -> set[int]:
    """Return the choices to which a text is equal."""
    plain = _plain(said)
    return {place for place, text in enumerate(choices) if plain and _plain(text) == plain}


def _plain(text: str) -> str:
    """Return a text without case, surrounding punctuation, and the width of spaces."""
    return _EDGES.sub("", " ".join(text.casefold().split()))


def letter_shares(log_probs: Mapping[str, float], count: int) -> list[float]:
    """Return the probability that an answer's first token is each of the first letters.

    Args:
        log_probs: the most likely tokens, with their log-probabilities (nats).
        count: how many letters were shown.

    >>> [round(one, 3) for one in letter_shares({"A": -0.5, " A": -2.0, "The": -3.0}, 2)]
    [0.742, 0.0]
    """
    shares = [0.0] * count
    for token, log_prob in log_probs.items():
        letter = token.strip(" \n\t▁ĠĊ")
        if len(letter) == 1 and 0 <= (place := LETTERS.find(letter)) < count:
            shares[place] += math.exp(log_prob)
    return shares
