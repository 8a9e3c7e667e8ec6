"""Chat templates of checkpoints, rendered in a process of their own that ends when it must.

A template is a program that strangers wrote. Jinja's sandbox keeps it from the machine, and not
from looping for ever or filling memory; neither can be stopped in this process.
"""

from __future__ import annotations

import json
import os
import subprocess  # nosec B404 # of this interpreter, with a script of ours
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from evaluation.models.files import first_line
from evaluation.scorers.causal.prompts import Message
from kbprobe.errors import KbprobeError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SECONDS = 10.0
"""Most that a chat may take. On average, after that, it may take `_EACH`."""
_EACH = 0.05
_RENDERER = Path(__file__).with_name("chat_renderer.py")


class ChatTemplate:
    """The chat template of a tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Take a tokenizer.

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
        self._setting = {"chat_template": template, **tokenizer.special_tokens_map}
        self._own = _own_method(tokenizer)
        self._process: subprocess.Popen[bytes] | None = None
        self._left = SECONDS

    def render(self, messages: list[Message]) -> str:
        """Write a chat as text, up to where the model's answer begins.

        Raises:
            KbprobeError: the template has an error, or takes too long or too much memory.
        """
        if self._own is not None:
            return str(self._own(messages, tokenize=False, add_generation_prompt=True))
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
        if "text" not in answer:
            raise self._unusable(str(answer["error"]))
        return str(answer["text"])

    def _started(self) -> subprocess.Popen[bytes]:
        # -P: modules next to the script are not to be taken for those of packages.
        self._process = subprocess.Popen(  # nosec B603 # no words of others
            [sys.executable, "-P", str(_RENDERER)],
            # Threads of numpy would take of the memory that the process may hold.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, self._process)
        if self._asked(self._process, self._setting) is None:
            raise KbprobeError(f"--chat: {_RENDERER} cannot be run with {sys.executable}")
        return self._process

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], question: Any) -> dict[str, Any] | None:
        """Return the answer to a line; None: the process has ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # the pipe is broken
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def _unusable(self, problem: str) -> KbprobeError:
        return KbprobeError(
            f"--chat: the chat template of {self._name!r} cannot be used: {problem.rstrip('.')}. "
            "Correct it (chat_template.jinja, or chat_template in tokenizer_config.json), or "
            "leave --chat out."
        )


def _own_method(tokenizer: PreTrainedTokenizerBase) -> Callable[..., Any] | None:
    """Return the method of a tokenizer that writes chats with code of its own; None: it has none.

    Such code came with the checkpoint, and was allowed with ``--trust-remote-code``.
    """
    from transformers import PreTrainedTokenizerBase

    usual = PreTrainedTokenizerBase.apply_chat_template
    own = type(tokenizer).apply_chat_template is not usual
    return tokenizer.apply_chat_template if own else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
