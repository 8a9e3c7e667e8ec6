"""Base of log-likelihood scorers: items become contexts and continuations."""

from __future__ import annotations

import json
import subprocess  # nosec B404 # only runs this interpreter with a script of kbprobe's
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from evaluation.items.types import Item
from evaluation.models.loading import usable_positions
from evaluation.options import CHAT_DATE
from evaluation.scorers.base import Scorer, ScorerInputs
from evaluation.scorers.causal.options import CausalOptions
from evaluation.scorers.causal.prompts import Message, Prompt, Rendered
from evaluation.scorers.readable import SpecialTexts, unknown_token, unreadable_items
from kbprobe.checkpoint_files import first_line
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.processes import python_command, python_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.nn import Module
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

SECONDS = 10.0
"""Time limit for a chat, in seconds. In the long run, chats may take `_EACH` on average."""
_EACH = 0.05
_RENDERER = Path(__file__).with_name("chat_renderer.py")


class ChatTemplate:
    """The chat template of a tokenizer, on a day that is the same in every run.

    Code of a tokenizer's own that renders chats may still read the clock.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, day: str = CHAT_DATE) -> None:
        """Set the tokenizer, and the day (YYYY-MM-DD) that a template is told.

        Raises:
            UsageError: it has no chat template, or several and no default one.
        """
        self._name = tokenizer.name_or_path
        if not tokenizer.chat_template:
            raise UsageError(
                f"--chat: the tokenizer of {self._name!r} has no chat template. Leave it out, or "
                "name an instruction-tuned checkpoint."
            )
        try:
            template = tokenizer.get_chat_template()
        except ValueError as error:
            raise self._unusable(first_line(error)) from error
        self._setting = {"day": day, "chat_template": template, **tokenizer.special_tokens_map}
        self._own = _own_method(tokenizer)
        self._process: subprocess.Popen[bytes] | None = None
        self._left = SECONDS

    def render(self, messages: list[Message]) -> str:
        """Render a chat as text, up to where the model's answer begins.

        Raises:
            KbprobeError: the template has an error, or takes too long or too much memory.
        """
        answer = self._rendered(messages)
        if "text" in answer:
            return answer["text"]
        if messages[0]["role"] == "system" and "text" in self._rendered(messages[1:]):
            raise KbprobeError(
                f"--system: the chat template of {self._name!r} takes no system prompt "
                f"({answer['error'].rstrip('.')}). Leave --system out."
            )
        raise self._unusable(answer["error"])

    def _rendered(self, messages: list[Message]) -> dict[str, str]:
        """Return a chat as ``text``, or an ``error`` of the template."""
        if self._own is not None:
            try:
                own = self._own(messages, tokenize=False, add_generation_prompt=True)
            except Exception as error:  # code of others: any error is possible
                return {"error": f"{type(error).__name__}: {first_line(error)}"}
            return {"text": str(own)}
        process = self._process or self._started()
        began = time.monotonic()
        timer = Timer(self._left, process.kill)
        timer.start()
        try:
            answer = self._asked(process, messages)
        finally:
            timer.cancel()
        self._left = min(self._left - (time.monotonic() - began) + _EACH, SECONDS)
        if answer is None:
            self._process = None
            raise self._unusable(
                f"writing a chat took longer than {SECONDS:g} seconds"
                if process.wait() and self._left <= 2 * _EACH
                else "it made the process end that it was rendered in"
            )
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(  # nosec B603 # no external arguments
            python_command(str(_RENDERER)),
            # Numpy's threads would use up part of the memory limit.
            env=python_environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, self._process)
        if self._asked(self._process, self._setting) is None:
            raise KbprobeError(f"--chat: {_RENDERER} cannot be run with {sys.executable}")
        return self._process

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], question: Any) -> dict[str, str] | None:
        """Return the answer to a line; None if the process has ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # the pipe is broken
            return None
        answer: dict[str, str] | None = json.loads(line) if line.endswith(b"\n") else None
        return answer

    def _unusable(self, problem: str) -> KbprobeError:
        return KbprobeError(
            f"--chat: the chat template of {self._name!r} cannot be used: {problem.rstrip('.')}. "
            "Correct it (chat_template.jinja, or chat_template in tokenizer_config.json), or "
            "leave --chat out."
        )


def _own_method(tokenizer: PreTrainedTokenizerBase) -> Callable[..., Any] | None:
    """Return the method of a tokenizer that renders chats with its own code; None if it has none.

    Such code comes with the checkpoint, and was allowed with ``--trust-remote-code``.
    """
    from transformers import PreTrainedTokenizerBase

    usual = PreTrainedTokenizerBase.apply_chat_template
    own = type(tokenizer).apply_chat_template is not usual
    return tokenizer.apply_chat_template if own else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


_LENGTHS = ("n_positions", "max_position_embeddings", "n_ctx")
_DEFAULT_LENGTH = 2048


@dataclass
class ContextChoices:
    """A context and the continuations that are scored after it.

    Attributes:
        item: the first item with this context.
        context: the text.
        weight: the weight of its log-likelihoods in a choice's score.
        choices: each continuation, with the choices that it stands for, numbered over all items.
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
        self._chat = ChatTemplate(tokenizer, self.prompt.chat_date) if self.prompt.chat else None
        self._special, self._unknown = SpecialTexts(tokenizer), unknown_token(tokenizer)

    @classmethod
    def from_inputs(cls, inputs: ScorerInputs) -> Self:
        """Make the scorer of an evaluation, whose options are :class:`CausalOptions`.

        Raises:
            UsageError: the template cannot be read, or there are too few examples.
        """
        make: Any = cls
        options: CausalOptions = inputs.options
        special = SpecialTexts(inputs.tokenizer)
        examples = [item for item in inputs.examples if special.obstacle(item) is None]
        prompt = Prompt(options, examples, inputs.seed, options.chat, options.chat_date)
        # Those of one family alone, such as whether the end is scored.
        further = options.model_dump(include={"pack", "score_end"})
        scorer: Self = make(inputs.model, inputs.tokenizer, prompt=prompt, **further)
        return scorer

    def score_name(self, items: Sequence[Item]) -> str:
        """Return what a choice's score is."""
        return self.prompt.score_name

    def render(self, item: Item) -> list[tuple[Rendered, float]]:
        """Return an item's contexts with continuations, and the weight of each in the scores.

        Scorers that compare a choice after several contexts override this. A context with a
        negative weight is subtracted, and scored only once for all items that have it.

        Raises:
            UsageError: the item does not fit the prompt.
        """
        return self.prompt.weighted(item, self.to_chat)

    def to_chat(self, messages: list[Message]) -> str:
        """Render a chat with the tokenizer's template; see :class:`ChatTemplate`."""
        self._chat = self._chat or ChatTemplate(self._tokenizer, self.prompt.chat_date)
        return self._chat.render(messages)

    def _contexts(self, items: Iterable[tuple[int, Item, int]]) -> list[ContextChoices]:
        """Return the distinct contexts of items: (number, item, number of its first choice)."""
        contexts: dict[tuple[str, str], ContextChoices] = {}
        for number, item, first_choice in items:
            for (context, continuations), weight in self.render(item):
                # Clozes of different questions may begin the same; a sequence serves one question.
                # Subtracted contexts belong to no question: all items with the choice share them.
                asked = item.question if weight > 0 else ""
                one = contexts.setdefault((asked, context), ContextChoices(number, context, weight))
                for choice, continuation in enumerate(continuations, start=first_choice):
                    one.choices.setdefault(continuation, []).append(choice)
        return list(contexts.values())

    def _set_aside(
        self, items: Sequence[Item], item_of: Sequence[int], reasons: Mapping[int, str]
    ) -> dict[int, str]:
        """Return the items that are not scored, given why choices of the ``item_of`` are not."""
        set_aside: dict[int, str] = {}
        for choice, reason in reasons.items():
            set_aside.setdefault(item_of[choice], reason)
        set_aside |= self._special.obstacles(items)
        if self.prompt.options.letters:  # The choices are in the prompt, not in the scored text.
            set_aside |= unreadable_items(items, self._tokenizer)
        return set_aside


def longest_text(
    config: PretrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
    names: tuple[str, ...] = _LENGTHS,
    network: Module | None = None,
) -> int:
    """Return the maximum number of tokens that a model reads.

    It is that of lm-evaluation-harness, but not more than the tables of positions hold.

    Args:
        config: the model's, or that of its encoder or decoder.
        tokenizer: the model's.
        names: how the configuration may call the number.
        network: the model, or the part; None: it is not in memory.
    """
    length = next(filter(None, (getattr(config, name, None) for name in names)), None)
    if length is None:
        length = tokenizer.model_max_length
        length = length if length and length < VERY_LARGE_INTEGER else _DEFAULT_LENGTH
    return min([int(length), *([] if network is None else usable_positions(network))])
