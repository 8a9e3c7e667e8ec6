"""Common parts of models behind endpoints: a client, stored answers, and token estimates.

Each answer is stored on disk as soon as it arrives, and never requested again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from evaluation.endpoints.client import Client, PromptLimits
from kbprobe.errors import CacheError, UsageError, did_you_mean
from kbprobe.files import write_file
from kbprobe.files.cache import unusable
from kbprobe.http import BudgetSpent, RequestRefused, printable

logger = logging.getLogger(__name__)

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def in_threads(
    function: Callable[[_Argument], _Result],
    arguments: Sequence[_Argument],
    count: int,
    stop: Callable[[], None],
) -> Iterator[tuple[int, _Result]]:
    """Call a function with each argument; yield the index and result of each as it finishes.

    At the first error ``stop`` is called, so that calls that only wait may end.

    After an error no further call is started; the results of running calls are yielded before it is
    raised. The threads are daemons: an interruption waits for none of them.
    """
    errors: list[BaseException] = []

    def call(number: int) -> list[tuple[int, _Result]]:
        if not errors:
            try:
                return [(number, function(arguments[number]))]
            except BaseException as error:
                errors.append(error)  # before what others raise because of stop()
                stop()
        return []

    with ThreadPool(max(1, min(count, len(arguments)))) as pool:
        try:
            for found in pool.imap_unordered(call, range(len(arguments))):
                yield from found
        finally:
            stop()
    if errors:
        raise errors[0]


USUAL_TOKENS_PER_BYTE = 0.25
_LENGTH = re.compile(r"context|too (long|large|many)|exceed|maximum|max_model_len", re.IGNORECASE)
"""Phrases by which servers report that a prompt is too long."""


_FILTER = re.compile(
    r"content[ _-]?(filter|management|policy|moderation)|ResponsibleAI|moderation|flagged"
    r"|safety|DataInspectionFailed|inappropriate",
    re.IGNORECASE,
)
"""Phrases and codes by which servers report that a filter refuses a prompt."""


class PromptRefused(NamedTuple):
    """Why a server does not answer a prompt: a content filter, or otherwise its length."""

    filtered: bool


def prompt_refused(error: RequestRefused, ask_short: Callable[[], object]) -> PromptRefused:
    """Return why a server refuses a prompt.

    Its words alone do not tell: a quota is "exceeded", too, and the maximum of a parameter. What a
    short question is refused for as well is not the prompt.

    Raises:
        RequestRefused: it refuses other things than the prompt.
    """
    filtered = error.status in (400, 403, 422, 451) and bool(_FILTER.search(error.body))
    if not filtered and not (error.status in (400, 413, 422) and _LENGTH.search(error.said)):
        raise error
    ask_short()
    return PromptRefused(filtered)


def digest_of(content: object) -> str:
    """Hash what identifies a model."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


ENDPOINTS = "endpoints"
"""The folder of all answers, in kbprobe's cache."""

_FILE = "answers.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sealed (
    kind TEXT, key BLOB, content BLOB, seal BLOB, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
"""
"""Each row has a checksum of its content and key; a damaged one is requested again."""
_MODELS = "SELECT key, content, seal FROM sealed WHERE kind = 'model'"
_ENTRY = "SELECT key, content, seal FROM sealed WHERE kind = ? AND key = ?"
_BUSY = 60.0
"""Seconds that another process may write."""


class AnswerStore:
    """The stored answers of one model of an endpoint; for one thread, and several processes."""

    def __init__(self, url: str, model: str, root: Path) -> None:
        """Open the store of a model at an endpoint, or make it in the folder of all caches.

        Raises:
            CacheError: the folder cannot be written, or the file is damaged.
        """
        name = hashlib.sha256(json.dumps([url, model]).encode()).hexdigest()[:32]
        self._folder = root / ENDPOINTS / name
        about = self._folder / "about.json"
        with self._usable():
            if not about.is_file():
                write_file(about, json.dumps({"endpoint": url, "model": model}))
            self._connection = sqlite3.connect(
                self._folder / _FILE, timeout=_BUSY, isolation_level=None
            )
            # Damaged text must fail the checksum of its row, not the reading of the whole file.
            self._connection.text_factory = bytes
            # Commits do not wait for the disk, but neither a kill nor a power cut damages the file.
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def models(self) -> list[tuple[str, list[str], list[float]]]:
        """Return the models so far: their digests, and tokens and log-probabilities of a text."""
        with self._usable():
            rows = self._connection.execute(_MODELS).fetchall()
            return [tuple(found) for row in rows if (found := _opened("model", *row)) is not None]

    def add_model(self, digest: str, tokens: Sequence[str], log_probs: Sequence[float]) -> None:
        """Store a model that answered; see :meth:`models`."""
        self._add("model", digest.encode(), (digest, list(tokens), list(log_probs)))

    def find(self, kind: str, *request: str) -> Any:
        """Return the stored answer to a request; None if it has not been sent.

        Args:
            kind: ``answer``, ``context`` (its tokens, where it was sent alone) or ``reply``.
            request: the digest of the model, and the texts that were sent.
        """
        with self._usable():
            row = self._connection.execute(_ENTRY, (kind, _key(*request))).fetchone()
            return None if row is None else _opened(kind, *row)

    def add(self, kind: str, content: Any, *request: str) -> None:
        """Store an answer that JSON can represent; see :meth:`find`."""
        self._add(kind, _key(*request), content)

    def _add(self, kind: str, key: bytes, content: Any) -> None:
        told = json.dumps(content).encode()
        with self._usable():
            self._connection.execute(
                "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?)",
                (kind, key, told, _seal(kind, key, told)),
            )

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unusable(self._folder, error) from error
        except (sqlite3.Error, ValueError) as error:
            raise CacheError(
                f"{self._folder / _FILE}, which holds the answers of an endpoint, cannot be used "
                f"({error}). If it is damaged, remove it: what it holds is asked again."
            ) from error


def _seal(kind: str, key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((kind.encode(), key.hex().encode(), content))).digest()


def _opened(kind: str, key: Any, content: Any, seal: Any) -> Any:
    """Return the content of a row; None if it is damaged."""
    whole = isinstance(key, bytes) and isinstance(content, bytes)
    return json.loads(content) if whole and _seal(kind, key, content) == seal else None


def _key(*request: str) -> bytes:
    return hashlib.blake2b(json.dumps(request).encode(), digest_size=16).digest()


class ServedModel:
    """One model behind an endpoint.

    Attributes:
        owner: the server or the model's owner, from the list of models; "" if not stated.
        store: the answers so far.
        tokens_per_byte: the estimated number of tokens per byte of text.
        digest: a hash of what identifies the model.
        tokenizer_digest: a hash of what is known of the tokenizer.
    """

    digest: str
    tokenizer_digest: str

    def __init__(
        self,
        url: str,
        model: str,
        root: Path,
        limits: PromptLimits | None = None,
        concurrency: int = 8,
        *,
        connect: bool = True,
        send_key: bool = True,
    ) -> None:
        """Ask for the list of models, and identify the model.

        Args:
            url: usually ends in ``/v1``.
            model: as the endpoint calls it.
            root: the folder of caches, where answers are kept.
            limits: of requests.
            concurrency: requests at a time.
            connect: whether to ask; False: only to tell what would be sent.
            send_key: whether the endpoint gets the key.

        Raises:
            UsageError: the address is none, or the endpoint has no such model.
            ServerError: it cannot be reached, or answers in a form that is not known.
            CacheError: the answers cannot be kept.
        """
        self.client = Client(url, limits, send_key=send_key)
        self.url, self.model, self.concurrency = self.client.url, model, concurrency
        self.tokens_per_byte = USUAL_TOKENS_PER_BYTE
        self.owner = self._listed() if connect else ""
        self.store = AnswerStore(self.url, model, root)
        self._identify(connect)

    def _identify(self, connect: bool) -> None:
        """Set the digests, without asking the endpoint unless to ``connect``."""
        raise NotImplementedError

    def num_parameters(self) -> int:
        """Return 0, since the number is unknown."""
        return 0

    def estimated_tokens(self, text: str) -> int:
        """Return about how many tokens a prompt has, which is counted before it is sent."""
        return max(1, round(len(text.encode("utf-8", "surrogatepass")) * self.tokens_per_byte))

    def announce(self, tokens: Sequence[int], answered: int, most: int = 0) -> None:
        """Report how much is to be sent, before the first prompt is.

        Args:
            tokens: the estimated number of tokens of each prompt.
            answered: prompts that were answered before.
            most: the largest number of tokens of an answer; 0: none are written.
        """
        if tokens:
            written = f" and at most {len(tokens) * most:,} tokens of answers" if most else ""
            logger.warning(
                "%s: %s prompts to send, about %s tokens%s; %s were answered before.",
                *(self.url, f"{len(tokens):,}", f"{sum(tokens):,}", written, f"{answered:,}"),
            )

    def _listed(self) -> str:
        """Check the model's name against the list of models, and return its owner.

        Servers of a single model take any name, and some have no list.
        """
        try:
            listed = self.client.send("models")
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


class SentPrompts(Generic[_Argument, _Result]):
    """The prompts of a run: later ones are under way while answers to earlier ones are read.

    Attributes:
        waiting: the prompts without a stored answer, in the order in which they are sent.
    """

    def __init__(
        self,
        model: ServedModel,
        prompts: Iterable[_Argument],
        known: Callable[[_Argument], _Result | None],
        send: Callable[[Sequence[_Argument]], Iterator[tuple[int, _Result]]],
        text_of: Callable[[_Argument], str],
    ) -> None:
        """Look up stored answers; nothing is sent before the first new answer is asked for.

        Args:
            model: answers the prompts.
            prompts: in the order in which their answers will be asked for.
            known: returns the stored answer to a prompt.
            send: sends prompts, and yields index and answer of each as it arrives.
            text_of: returns the text of a prompt.
        """
        answers = {one: known(one) for one in dict.fromkeys(prompts)}
        self.waiting = [one for one, answer in answers.items() if answer is None]
        self._answers = {one: answer for one, answer in answers.items() if answer is not None}
        self._model, self._text_of, self._total = model, text_of, len(answers)
        self._coming = send(self.waiting)

    def answers(self, prompts: Iterable[_Argument]) -> list[_Result]:
        """Return the answers to some of the prompts.

        Raises:
            BudgetSpent: the budget ends first; the message says how much is left.
        """
        prompts = list(prompts)
        try:
            for one in prompts:
                while one not in self._answers:
                    self._take(*next(self._coming))
        except BudgetSpent as error:
            left = [one for one in self.waiting if one not in self._answers]
            tokens = sum(self._model.estimated_tokens(self._text_of(one)) for one in left)
            raise BudgetSpent(
                f"{error}: {len(self._answers):,} of {self._total:,} prompts are answered, and "
                f"kept. {len(left):,} prompts are left, about {tokens:,} tokens: run the same "
                "command again to go on."
            ) from error
        return [self._answers[one] for one in prompts]

    def _take(self, number: int, answer: _Result) -> None:
        self._answers[self.waiting[number]] = answer
        if len(self._answers) == self._total:
            next(self._coming, None)  # The threads end.
