"""One model of an endpoint: its identity, and its log-likelihoods."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import numpy as np

from evaluation.endpoints.answers import (
    FILTERED,
    REQUEST,
    TOO_LONG,
    NothingBefore,
    PromptTokens,
    Scored,
    TokenPair,
    read_answer,
    score_pair,
)
from evaluation.endpoints.served import ServedModel, digest_of, in_threads, prompt_refused
from kbprobe.errors import UsageError
from kbprobe.http import RequestRefused, printable

FIXED_TEXT = (
    "The capital of a country is the city where its government meets. A robin can fly, and a "
    "penguin cannot, but it swims well."
)
"""The text sent to every model first, to identify it and to measure the length of its tokens."""

_SAME_MODEL = 0.1
"""Nats per token by which log-probabilities of one model may differ, on average.

Half precision moves them by about 0.02 with the batch that a prompt happens to be in.
"""


class Endpoint(ServedModel):
    """One model behind a completions endpoint.

    An endpoint does not show its weights. A model is identified by the tokens of
    :data:`FIXED_TEXT` and their log-probabilities: if they differ from those seen before at this
    address and under this name, it is a different model, and stored answers are not used for it.
    """

    def _identify(self, connect: bool) -> None:
        """Request the log-probabilities of the fixed text.

        Raises:
            NoPromptScores: it gives no log-probabilities of prompts.
            BudgetSpent: not even one request is allowed.
        """
        self._contexts: dict[str, Future[Sequence[str]]] = {}
        self._kept: set[str] = set()
        self._lock = threading.Lock()
        if connect:
            known = self._ask(FIXED_TEXT)
            texts = list(known.texts)
            log_probs = [value for value in known.log_probs if value is not None]
            self.digest = self._known_digest(texts, log_probs)
        else:  # It is taken to be the model that answered before, if it was always the same one.
            seen = self.store.models()
            self.digest, texts, _ = seen[0] if len(seen) == 1 else ("", [], [])
        self.tokenizer_digest = digest_of(texts)
        if texts:
            self.tokens_per_byte = len(texts) / len(FIXED_TEXT.encode())

    def known(self, pair: TokenPair) -> Scored | None:
        """Return the stored answer; None if the pair has not been sent."""
        kept = self.store.find("answer", self.digest, *pair)
        return None if kept is None else Scored(*kept)

    def scores(self, pairs: Sequence[TokenPair]) -> Iterator[tuple[int, Scored]]:
        """Send pairs, and yield the index and log-likelihood of each as it arrives and is stored.

        Raises:
            UsageError: nothing precedes a continuation.
            BudgetSpent: the budget ends before the pairs do; what was answered is kept.
            ServerError: the endpoint gives no answer, or one that cannot be used.
            CacheError: the answers cannot be kept.
        """
        self.client.start()
        for context in {pair.context for pair in pairs} - self._contexts.keys():
            if (known := self.store.find("context", self.digest, context)) is not None:
                self._contexts[context] = Future()
                self._contexts[context].set_result(known)
                self._kept.add(context)
        found = in_threads(self._score, pairs, self.concurrency, self.client.stop)
        for number, scored in found:
            self.store.add("answer", scored, self.digest, *pairs[number])
            self._keep_context(pairs[number].context)
            yield number, scored

    def _keep_context(self, context: str) -> None:
        """Keep the tokens of a context, if they were asked for."""
        if context in self._contexts and context not in self._kept:
            tokens = list(self._contexts[context].result())
            self.store.add("context", tokens, self.digest, context)
            self._kept.add(context)

    def _alone(self, context: str) -> Sequence[str]:
        """Return the tokens of a context; it is sent once, even if several threads request it."""
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

    def _score(self, pair: TokenPair) -> Scored:
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
            refused = prompt_refused(error, lambda: self._ask(FIXED_TEXT))
            return Scored(0.0, 0, 0, FILTERED if refused.filtered else TOO_LONG)

    def _ask(self, text: str) -> PromptTokens:
        """Return the tokens of a text."""
        estimate = self.estimated_tokens(text)
        content = {"model": self.model, "prompt": text, **REQUEST}
        answer = self.client.send("completions", content, estimate)
        found = read_answer(answer, text, self.url)
        self.client.budget.correct(len(found.texts) - estimate)
        return found

    def _known_digest(self, texts: list[str], log_probs: list[float]) -> str:
        for digest, other_texts, other in self.store.models():
            if other_texts != texts or len(other) != len(log_probs):
                continue
            if float(np.mean(np.abs(np.subtract(other, log_probs)))) <= _SAME_MODEL:
                return digest
        digest = digest_of([self.url, self.model, texts, log_probs])
        self.store.add_model(digest, texts, log_probs)
        return digest
