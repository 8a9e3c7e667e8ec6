"""One model of an endpoint: what it is, and the log-likelihoods that it gives."""

from __future__ import annotations

import hashlib
import json
import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from evaluation.endpoints.answers import (
    TOO_LONG,
    NothingBefore,
    Pair,
    PromptTokens,
    Scored,
    read_answer,
    request_content,
    score_pair,
)
from evaluation.endpoints.client import Client, Limits, RequestRefused
from evaluation.endpoints.store import AnswerStore
from evaluation.models.capabilities import ENDPOINT, Head
from evaluation.models.checkpoint import Checkpoint
from evaluation.models.handle import ModelHandle
from evaluation.models.loading import choose_device, choose_dtype
from kb_cache.servers import printable
from kbprobe.errors import UsageError, did_you_mean, require

if TYPE_CHECKING:
    from evaluation.models.handle import Loaded
    from evaluation.options import ModelOptions


_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def in_threads(
    function: Callable[[_Argument], _Result],
    arguments: Sequence[_Argument],
    count: int,
    stop: Callable[[], None],
) -> Iterator[tuple[int, _Result]]:
    """Call a function with each argument, and yield number and result as they come.

    After an error no further call is begun; the results of those that had begun are yielded
    before it is raised. The threads are daemons: an interruption waits for none of them.

    Args:
        function: what is called, in any of the threads.
        arguments: what it is called with.
        count: of threads.
        stop: called at the first error, so that calls that only wait may end.
    """
    todo = iter(range(len(arguments)))
    lock, stopped = threading.Lock(), threading.Event()
    done: queue.SimpleQueue[tuple[int, _Result | None, BaseException | None] | None]
    done = queue.SimpleQueue()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                number = next(todo, None)
            if number is None:
                break
            try:
                done.put((number, function(arguments[number]), None))
            except BaseException as error:
                stopped.set()
                done.put((number, None, error))  # before what others raise because of stop()
                stop()
        done.put(None)

    running = min(count, len(arguments))
    for _ in range(running):
        threading.Thread(target=work, daemon=True).start()
    first: BaseException | None = None
    try:
        while running:
            ended = done.get()
            if ended is None:
                running -= 1
                continue
            number, result, error = ended
            if error is not None:
                first = first or error
            else:
                yield number, result  # type: ignore[misc]
    finally:
        stopped.set()
        stop()
    if first is not None:
        raise first


FIXED_TEXT = (
    "The capital of a country is the city where its government meets. A robin can fly, and a "
    "penguin cannot, but it swims well."
)
"""The text sent to every model first, to identify it and to measure the length of its tokens."""

_USUAL_TOKENS_PER_BYTE = 0.25
_SAME_MODEL = 0.1
"""Nats a token by which log-probabilities of one model may differ, on average.

Half precision moves them by about 0.02 with the batch that a prompt happens to be in.
"""
_LENGTH = re.compile(r"context|too (long|large|many)|exceed|maximum|max_model_len", re.IGNORECASE)
"""How servers say that a prompt is too long."""


class Endpoint:
    """One model behind an endpoint.

    An endpoint does not show its weights. A model is identified by the tokens of
    :data:`FIXED_TEXT` and their log-probabilities: if they differ from those seen before at this
    address and under this name, it is another model, and stored answers are not used for it.

    Attributes:
        url: the endpoint's address.
        model: as the endpoint calls it.
        owner: what the list of models calls the server or the model's owner; "" where it does not.
        digest: a hash of what the model is known by.
        tokenizer_digest: a hash of the tokens alone.
        tokens_per_byte: of the fixed text.
    """

    def __init__(
        self, url: str, model: str, root: Path, limits: Limits | None = None, concurrency: int = 8
    ) -> None:
        """Ask for the list of models, and for the log-probabilities of the fixed text.

        Args:
            url: usually ends in ``/v1``.
            model: as the endpoint calls it.
            root: the folder of caches, where answers are kept.
            limits: of requests.
            concurrency: requests at a time.

        Raises:
            UsageError: the address is none, or the endpoint has no such model.
            NoPromptScores: it gives no log-probabilities of prompts.
            EndpointError: it cannot be reached, or answers in a form that is not known.
            BudgetSpent: not even one request is allowed.
            CacheError: the answers cannot be kept.
        """
        self._client = Client(url, limits)
        self.url, self.model = self._client.url, model
        self._concurrency = concurrency
        self.owner = self._listed()
        self.tokens_per_byte = _USUAL_TOKENS_PER_BYTE
        known = self._ask(FIXED_TEXT)
        self.tokens_per_byte = len(known.texts) / len(FIXED_TEXT.encode())
        texts = list(known.texts)
        log_probs = [value for value in known.log_probs if value is not None]
        self._contexts: dict[str, Future[Sequence[str]]] = {}
        self._kept: set[str] = set()
        self._lock = threading.Lock()
        self._store = AnswerStore(self.url, model, root)
        self.digest = self._known_digest(texts, log_probs)
        self.tokenizer_digest = _digest(texts)

    def num_parameters(self) -> int:
        """Return 0: how many there are is not known."""
        return 0

    def estimated_tokens(self, text: str) -> int:
        """Return about how many tokens a prompt has: what is counted before it is sent."""
        return max(1, round(len(text.encode("utf-8", "surrogatepass")) * self.tokens_per_byte))

    def known(self, pair: Pair) -> Scored | None:
        """Return what was answered before; None: the pair has not been sent."""
        return self._store.find(self.digest, pair)

    def scores(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, Scored]]:
        """Send pairs, and yield number and log-likelihood as they are answered, and kept.

        Raises:
            UsageError: nothing precedes a continuation.
            BudgetSpent: the budget ends before the pairs do; what was answered is kept.
            EndpointError: the endpoint gives no answer, or one that cannot be used.
            CacheError: the answers cannot be kept.
        """
        self._client.start()
        for context in {pair.context for pair in pairs} - self._contexts.keys():
            if (known := self._store.find_context(self.digest, context)) is not None:
                self._contexts[context] = Future()
                self._contexts[context].set_result(known)
                self._kept.add(context)
        found = in_threads(self._score, pairs, self._concurrency, self._client.stop)
        for number, scored in found:
            self._store.add(self.digest, pairs[number], scored)
            self._keep_context(pairs[number].context)
            yield number, scored

    def _keep_context(self, context: str) -> None:
        """Keep the tokens of a context, if they were asked for."""
        if context in self._contexts and context not in self._kept:
            self._store.add_context(self.digest, context, self._contexts[context].result())
            self._kept.add(context)

    def _alone(self, context: str) -> Sequence[str]:
        """Return the tokens of a context; several threads may ask, and one sends it."""
        with self._lock:
            tokens = self._contexts.get(context)
            if first := tokens is None:
                tokens = self._contexts[context] = Future()
        if first:
            try:
                tokens.set_result(self._ask(context).texts)
            except BaseException as error:
                with self._lock:
                    del self._contexts[context]
                tokens.set_exception(error)
                raise
        return tokens.result()

    def _score(self, pair: Pair) -> Scored:
        try:
            return score_pair(pair, self._ask(pair.text), self._alone)
        except NothingBefore:
            raise UsageError(
                f"the choice {printable(pair.continuation.strip(), 60)!r} is scored with nothing "
                f"before it, and {self.url} puts no token for the beginning of a text there. Give "
                "the text of that token with --start, such as --start '<|endoftext|>' for GPT-2; "
                "or put something before the choice with --prompt or --neutral."
            ) from None
        except RequestRefused as error:
            if error.status in (400, 413, 422) and _LENGTH.search(error.said):
                return Scored(0.0, 0, 0, TOO_LONG)
            raise

    def _ask(self, text: str) -> PromptTokens:
        """Return the tokens of a text."""
        estimate = self.estimated_tokens(text)
        content = request_content(self.model, text)
        answer = self._client.send("completions", content, estimate)
        found = read_answer(answer, text, self.url)
        self._client.budget.correct(len(found.texts) - estimate)
        return found

    def _listed(self) -> str:
        """Check the model's name against the list of models, and return its owner.

        Servers of a single model take any name, and some have no list.
        """
        try:
            listed = self._client.send("models")
        except RequestRefused as error:
            if error.status in (401, 403):
                raise
            return ""
        models = listed.get("data") if isinstance(listed, dict) else None
        named = {
            one["id"]: one
            for one in (models if isinstance(models, list) else [])
            if isinstance(one, dict) and isinstance(one.get("id"), str)
        }
        if named and self.model not in named:
            shown = ", ".join(printable(name, 60) for name in list(named)[:5])
            raise UsageError(
                f"{self.url} has no model {self.model!r}.{did_you_mean(self.model, named)} It "
                f"has: {shown}. Name one of them with --model."
            )
        owner = named.get(self.model, {}).get("owned_by")
        return printable(owner, 40) if isinstance(owner, str) else ""

    def _known_digest(self, texts: list[str], log_probs: list[float]) -> str:
        for digest, other_texts, other in self._store.models():
            if other_texts != texts or len(other) != len(log_probs):
                continue
            if float(np.mean(np.abs(np.subtract(other, log_probs)))) <= _SAME_MODEL:
                return digest
        digest = _digest([self.url, self.model, texts, log_probs])
        self._store.add_model(digest, texts, log_probs)
        return digest


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


_BATCH_TOKENS = 16384
"""Estimated tokens of the prompts between two reports of progress."""
_USUAL_DTYPE = "bfloat16"
"""What servers run models in unless they are told otherwise: it decides what counts as a tie."""


class EndpointHandle(ModelHandle):
    """A model behind an endpoint, for any number of runs."""

    def __init__(self, model: str, options: ModelOptions, root: Path) -> None:
        """Ask the endpoint what it is; ``root`` is the folder of caches, where answers are kept.

        Raises:
            UsageError: the address is none, or the endpoint has no such model.
            KbprobeError: it cannot be reached or used, or torch is not installed.
        """
        from evaluation.endpoints.client import Limits

        for package in ("torch", "transformers", "matplotlib"):
            require(package, "eval", "evaluating models")
        self._endpoint = Endpoint(
            str(options.endpoint),
            model,
            root,
            Limits(
                timeout=options.request_timeout,
                requests=options.max_requests,
                prompt_tokens=options.max_prompt_tokens,
            ),
            options.concurrency,
        )
        owner = self._endpoint.owner
        self.checkpoint = Checkpoint(
            id=model,
            folder=Path(),
            revision=None,
            head=ENDPOINT,
            capabilities=ENDPOINT.gives,
            architecture=f"endpoint ({owner})" if owner else "endpoint",
            config=None,
            weights_sha256=self._endpoint.digest,
            tokenizer_sha256=self._endpoint.tokenizer_digest,
            loading={},
        )
        self.device = choose_device("cpu")
        stated = _USUAL_DTYPE if options.dtype == "auto" else options.dtype
        self.dtype = choose_dtype(stated, self.device)
        self.batch_tokens = options.batch_tokens or _BATCH_TOKENS
        self.seconds = self.training_seconds = 0.0

    @property
    def device_name(self) -> str:
        """Return ``endpoint``: what it runs on is not known."""
        return ENDPOINT.name

    def load(self, head: Head) -> Loaded:
        """Return the :class:`~evaluation.endpoints.endpoint.Endpoint`, and no tokenizer.

        Raises:
            UsageError: weights are asked for.
        """
        if head is not ENDPOINT:
            raise UsageError(
                f"{self.checkpoint.id} is behind an endpoint, and cannot be loaded as a "
                f"{head.label}: leave --scorer and --train out, or name a checkpoint."
            )
        loaded: Any = (self._endpoint, None)
        return cast("Loaded", loaded)


def open_handle(model: str, options: ModelOptions, root: Path) -> ModelHandle:
    """Open a model, here or behind an endpoint: see :class:`ModelHandle`, :class:`EndpointHandle`.

    ``root`` is the folder of caches.

    Raises:
        UsageError: there is no such model.
        KbprobeError: it cannot be fetched, read or reached.
    """
    if options.endpoint is None:
        return ModelHandle(model, options)
    return EndpointHandle(model, options, root)
